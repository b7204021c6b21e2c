package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/verify"
	"github.com/etrun-go/etrun/internal/collect"
	"github.com/etrun-go/etrun/runtime/metrics"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
)

// errDiffers means that a self-test got different results.
var errDiffers = errors.New("results differ")

// served is a model and facts about the program opened last.
type served struct {
	*Model
	metrics *metrics.Collector
	counts  *counts
	log     *slog.Logger
	body    int64     // maximum bytes of a request
	warned  sync.Once // about missing isolation

	limited bool         // the memory of all models is limited
	left    func() int64 // what it leaves, nil if it is not limited
	detail  bool         // metrics of each step of a language model

	mu     sync.Mutex
	usage  *usage // of the current load
	quiet  bool   // who loads it logs the error
	digest string
	files  *modelFiles                             // of the current load
	steps  map[*etrun.Program]map[string][]float64 // see verify.OutputSteps
}

// config returns the model's configuration for package serve.
func (m *served) config() serve.Config {
	queue := m.Queue
	if queue == 0 {
		queue = -1 // 0 is the default there
	}
	var start func(context.Context) (serve.Program, error)
	if m.Isolate {
		start = m.openIsolated
	}
	var attach func(context.Context, *etrun.Program) (serve.Attachment, error)
	kind := ""
	if m.Tokenizer != "" {
		attach, kind = m.openText, openai.KindText
		if m.Embedding.Wanted(m.Tokenizer) {
			kind = openai.KindVector
		}
	}
	return serve.Config{Name: m.Name, Version: m.Version, OnDemand: m.isOnDemand(m.limited), Idle: m.Idle,
		Memory: m.memory, Size: m.fileBytes, Unloaded: m.unloaded,
		Attach: attach, Kind: kind, Start: start, Open: m.openObserved, Check: m.check, Loaded: m.loaded, Methods: m.Methods,
		Observer: m.metrics.Model(m.Name, ""), Instances: m.instances(), Queue: queue,
		Timeout: m.timeout(), MaxBatch: m.MaxBatch, BatchDelay: m.BatchDelay,
		Sequences: serve.SequenceLimits{Max: m.Sequences, Idle: m.SequenceIdle, Bytes: int64(m.SequenceMemory)}}
}

// inside observes a program, without its waits, which package serve reports.
type inside struct{ *metrics.Model }

// Wants returns all kinds but waits.
func (i inside) Wants() trace.Kinds { return i.Model.Wants() &^ trace.Pools }

func (m *served) openObserved(ctx context.Context) (*etrun.Program, error) {
	ctx = m.confined(ctx)
	files, use := m.begin()
	p, err := m.open(ctx, files, etrun.WithObserver(use))
	if err != nil {
		return nil, err
	}
	m.metrics.Model(m.Name, m.known(files.digest()))
	m.note(p)
	return p, nil
}

// begin begins a load with no files.
func (m *served) begin() (*modelFiles, *usage) {
	observer := inside{m.metrics.Model(m.Name, m.known(""))}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files, m.usage = &modelFiles{trust: m.Trust}, &usage{inside: observer, texts: m.Tokenizer != "", detail: m.detail}
	return m.files, m.usage
}

// usage counts the memory of a program.
type usage struct {
	inside
	texts  bool // a language model
	detail bool
	bytes  atomic.Int64
}

// passes reports whether an event has metrics. Those of a language model are of texts and tokens; without detail not of each step,
// and never of the functions that only return its metadata, which are as many as eight, and run once.
func (u *usage) passes(e *trace.Event) bool {
	switch {
	case !u.texts:
		return true
	case strings.HasPrefix(e.Method, "get_") || strings.HasPrefix(e.Method, "use_"):
		return e.Err != nil && e.Kind != trace.Execute
	}
	return u.detail || e.Kind != trace.Begin && e.Kind != trace.Execute
}

// Observe implements etrun.Observer.
func (u *usage) Observe(e *trace.Event) {
	if e.Kind == trace.Memory {
		u.bytes.Add(e.Bytes)
	}
	if u.passes(e) {
		u.inside.Observe(e)
	} else if e.Err != nil {
		u.Fail(e.Reason)
	}
}

// memory returns the memory of the program of the current load.
func (m *served) memory() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.usage.bytes.Load()
}

// unloaded logs the unload of a model that is loaded on demand.
func (m *served) unloaded(why string) { m.log.Info("model unloaded", "model", m.Name, "reason", why) }

// loading returns the files of the current load.
func (m *served) loading() *modelFiles {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files
}

// known records the digest of the current program's files.
func (m *served) known(digest string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if digest != "" {
		m.digest = digest
	}
	return m.digest
}

// note finds the steps of quantized outputs, before loading releases bytes.
func (m *served) note(p *etrun.Program) {
	steps := make(map[string][]float64)
	for i := range p.Spec().Methods {
		if method := &p.Spec().Methods[i]; len(casesOf(p.Bundle(), method.Name)) > 0 {
			steps[method.Name] = verify.OutputSteps(p, method)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps = map[*etrun.Program]map[string][]float64{p: steps}
}

// check runs the test cases of a bundle; without any, the method is run on random inputs.
func (m *served) check(ctx context.Context, method *etrun.Method) error {
	cases := casesOf(method.Program().Bundle(), method.Name())
	if len(cases) == 0 {
		return serve.TryMethod(ctx, method)
	}
	steps := m.stepsOf(method)
	for i := range cases {
		differences, _, err := verify.Case(ctx, method, &cases[i], verify.Tolerance, steps)
		if err == nil && len(differences) > 0 {
			err = fmt.Errorf("%w: %s", errDiffers, strings.Join(differences, "; "))
		}
		if err = errors.Join(err, method.Reset()); err != nil {
			return fmt.Errorf("method %q, case %d: %w", method.Name(), i, err)
		}
	}
	return nil
}

// stepsOf returns the steps of a method's outputs.
func (m *served) stepsOf(method *etrun.Method) []float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.steps[method.Program()][method.Name()]
}

// casesOf returns the test cases of a method.
func casesOf(b *pte.Bundle, method string) (cases []pte.Case) {
	if b == nil {
		return nil
	}
	for _, s := range b.Suites {
		if s.Method == method {
			cases = append(cases, s.Cases...)
		}
	}
	return cases
}

// quieten sets whether who loads the model logs the error.
func (m *served) quieten(quiet bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.quiet = quiet
}

// loaded logs and counts each load.
func (m *served) loaded(err error) {
	collect.Loaded()
	m.counts.reloaded(m.Name, err)
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.quiet {
			m.log.Error("model not loaded", "model", m.Name, "path", m.Path, "error", err)
		}
		return
	}
	attributes := []any{"model", m.Name, "path", m.Path, "sha256", m.known("")}
	if files := m.loading(); len(files.paths) > 0 { // isolated ones are known here only if they are signed
		attributes = append(attributes, "files", files.digests)
	}
	m.log.Info("model loaded", attributes...)
}
