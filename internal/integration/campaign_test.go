//go:build linux

package integration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnnguard"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// Limits on the programs of a campaign.
const (
	campaignMemory = 64 << 20
	campaignTime   = 5 * time.Second
	largestSeed    = 256 << 10 // of the corpus's programs
)

// TestPrograms loads and runs whole programs with modified fields, values or bytes, at the declared
// sizes and smaller ones, half of them lowered, on the native engine and the one in Go. No panic may
// reach Execute's recover, and no call may hang or return an error without a class. The native engine
// is used if the library supports their graphs; its memory is between inaccessible pages.
func TestPrograms(t *testing.T) {
	c := &campaign.Campaign{Test: "TestPrograms", Usual: 1200, Memory: campaignMemory + 64<<20,
		Counters: campaignCounters, Start: startPrograms(changedProgram)}
	c.Run(t)
}

// TestProgramBytes is TestPrograms with modified fields and bytes only.
func TestProgramBytes(t *testing.T) {
	c := &campaign.Campaign{Test: "TestProgramBytes", Usual: 600, Memory: campaignMemory + 64<<20,
		Counters: campaignCounters, Start: startPrograms(changedBytes)}
	c.Run(t)
}

var campaignCounters = []string{"programs", "refused", "calls", "calls at smaller sizes"}

// campaignProgram is a program of a file.
type campaignProgram struct {
	name string
	data []byte
}

// startPrograms returns the start of a campaign over programs that changed has modified.
func startPrograms(changed func(data []byte, seed uint64, r *rand.Rand) ([]byte, []string)) func(*testing.T, *campaign.Process) func(uint64) error {
	return func(t *testing.T, p *campaign.Process) func(seed uint64) error {
		if lib, err := xnn.Open(xnntest.Path()); err == nil {
			err = xnnguard.Install(lib)
			t.Log("guard of the library: ", err)
		}
		list := campaignPrograms(t)
		return func(seed uint64) error {
			r := rand.New(rand.NewPCG(seed, 9))
			from := list[r.IntN(len(list))]
			data, changes := changed(from.data, seed, r)
			xnnguard.Set(xnnguard.Options{Poison: byte(seed), Underrun: seed%3 == 0})
			p.Count(0, 1)
			run := &programRun{seed: seed, operators: etrun.DefaultOperators()}
			err := inTime(campaign.MaxTime, func() error { return run.all(data) })
			p.Count(2, run.calls)
			p.Count(3, run.smaller)
			if run.calls == 0 {
				p.Count(1, 1)
			}
			if f, ok := errors.AsType[*campaign.Finding](err); ok {
				f.Message = fmt.Sprintf("%s with %q: %s", from.name, changes, f.Message)
			}
			return err
		}
	}
}

// campaignPrograms are the programs of testdata, and those of the corpus.
func campaignPrograms(t *testing.T) (list []campaignProgram) {
	var names []string
	for _, folder := range []string{testdata(), filepath.Join(root, "text", "testdata")} {
		filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if ext := filepath.Ext(path); err == nil && (ext == ".pte" || ext == ".bpte") {
				names = append(names, path)
			}
			return err
		})
	}
	if len(names) < 30 {
		t.Fatalf("only %d programs in testdata", len(names))
	}
	for _, name := range append(names, campaign.Corpus(".pte")...) {
		if data, err := os.ReadFile(name); err == nil && len(data) <= largestSeed {
			list = append(list, campaignProgram{name, data})
		}
	}
	return list
}

// changedProgram changes fields or bytes of a file, or what the operators are called with.
func changedProgram(data []byte, seed uint64, r *rand.Rand) ([]byte, []string) {
	p, err := pte.Parse(data, pte.Limits{})
	if err != nil || seed%4 < 2 {
		return changedBytes(data, seed, r)
	}
	m := &callMutator{Rand: r, program: p}
	for range 1 + r.IntN(4) {
		m.change()
	}
	return ptetest.Write(p, ptetest.Layout{}), m.log
}

// changedBytes changes fields or bytes of a file.
func changedBytes(data []byte, seed uint64, r *rand.Rand) ([]byte, []string) {
	return ptetest.Mutate(data, seed, 1+r.IntN(4))
}

// inTime returns a finding if f does not end within a limit. f's goroutine then remains.
func inTime(limit time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		stacks := make([]byte, 1<<16)
		return &campaign.Finding{Kind: "hang", Message: string(stacks[:goruntime.Stack(stacks, true)])}
	}
}

// programRun runs the methods of a program.
type programRun struct {
	seed           uint64
	operators      *kernels.Set
	calls, smaller int // that completed
}

// all loads the methods of a program and calls each. An error is a finding.
func (r *programRun) all(data []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), campaignTime)
	defer cancel()
	lowering := []etrun.Lowering{etrun.LowerOff, etrun.LowerAll}[r.seed%2]
	engine := []xnnpack.Engine{xnnpack.EngineAuto, xnnpack.EngineGo}[r.seed/8%2]
	p, err := etrun.Parse(data, etrun.WithLowering(lowering), etrun.WithLimits(etrun.Limits{PlannedBytes: campaignMemory, Instructions: 2000}),
		etrun.WithMaxMemory(campaignMemory), etrun.WithThreads(1+int(r.seed/16%2)), etrun.WithOperatorSet(r.operators),
		etrun.WithDelegates(xnnpack.Backend{Library: xnntest.Path(), Engine: engine}, ethosu.Backend{}))
	if err != nil {
		return classed(err)
	}
	defer p.Close()
	for _, name := range p.MethodNames()[:min(len(p.MethodNames()), 8)] {
		m, err := p.Load(ctx, name)
		if err == nil {
			err = errors.Join(r.callAll(ctx, m), m.Close())
		}
		if err := classed(err); err != nil {
			return err
		}
	}
	return nil
}

// callAll calls a method at the declared sizes, twice at smaller ones, and again at the declared ones.
func (r *programRun) callAll(ctx context.Context, m *etrun.Method) error {
	for call := range uint64(4) {
		smaller := call == 1 || call == 2
		var err error
		if smaller {
			err = executeSmaller(ctx, m, r.seed+call)
		} else {
			err = execute(ctx, m, r.seed)
		}
		switch {
		case classed(err) != nil || ctx.Err() != nil:
			return err
		case err == nil:
			r.calls++
			if smaller {
				r.smaller++
			}
		}
	}
	return nil
}

// executeSmaller runs a method with random inputs below their upper bounds, where these vary.
func executeSmaller(ctx context.Context, m *etrun.Method, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 2))
	for i, in := range m.Meta().Inputs {
		if in.Kind != tensor.KindTensor || in.Dynamism == tensor.Static {
			continue
		}
		in.Sizes = slices.Clone(in.Sizes)
		for d, n := range in.Sizes {
			in.Sizes[d] = oneSize(r, n)
		}
		x := in.NewTensor()
		for k := range x.Data {
			x.Data[k] = byte(r.Uint32()) & 0x3f
		}
		if err := m.SetInput(i, x); err != nil {
			return err
		}
	}
	return m.Execute(ctx)
}

// oneSize returns the bound of a size, less, or 1 or 0.
func oneSize(r *rand.Rand, bound int) int {
	sizes := [...]int{bound, bound, max(bound-1, 0), min(bound, 1), r.IntN(bound + 1), r.IntN(bound + 1), 0}
	return sizes[r.IntN(len(sizes))]
}

// classed returns nil for an error that a hostile program may cause, else a finding.
func classed(err error) error {
	if p, ok := errors.AsType[*etrun.PanicError](err); ok {
		return &campaign.Finding{Kind: "panic", Message: fmt.Sprintf("%v\n%s", err, p.Stack)}
	}
	for _, class := range []error{nil, etrun.ErrFormat, etrun.ErrUnsupported, etrun.ErrMissing, etrun.ErrInput, etrun.ErrMemory,
		etrun.ErrExecute, etrun.ErrDevice, context.DeadlineExceeded} {
		if errors.Is(err, class) {
			return nil
		}
	}
	return &campaign.Finding{Kind: "error", Message: err.Error()}
}

// TestProgramsFindings requires that TestPrograms finds a panic of an operator, a hang and an error
// without a class.
func TestProgramsFindings(t *testing.T) {
	data, err := os.ReadFile(testdata("pte", "conv_portable.pte"))
	if err != nil {
		t.Fatal(err)
	}
	set := replaced("aten::convolution.out", func(kernels.Func) kernels.Func {
		return func(*kernels.Ctx, kernels.Args) error { panic("planted") }
	})
	hang := make(chan struct{})
	defer close(hang)
	for kind, err := range map[string]error{
		"panic": (&programRun{operators: set}).all(data),
		"hang":  inTime(time.Millisecond, func() error { <-hang; return nil }),
		"error": classed(errors.New("planted")),
	} {
		if f, ok := errors.AsType[*campaign.Finding](err); !ok || f.Kind != kind {
			t.Errorf("got %v, want a finding of the kind %s", err, kind)
		}
	}
	if err := (&programRun{operators: etrun.DefaultOperators()}).all(data); err != nil {
		t.Errorf("the program as it is: %v", err)
	}
}
