package metrics

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/etrun-go/etrun/runtime/trace"
)

// Model is an etrun.Observer that counts the events of the programs it observes.
type Model struct {
	c    *Collector
	name string

	inFlight  prometheus.Gauge
	wait      table[prometheus.Observer] // of models with a pool, under no name
	rejected  prometheus.Counter
	methods   table[*method]             // by name
	delegates table[prometheus.Observer] // by backend
	stages    table[prometheus.Observer] // by name
	errors    table[prometheus.Counter]  // by reason
	memory    table[prometheus.Gauge]    // by kind
	waiting   atomic.Pointer[func() int]

	mu       sync.Mutex
	digest   string
	loaded   map[string]bool
	backends map[string]map[string]bool // by method
}

// method is the series of one method.
type method struct {
	duration   prometheus.Observer
	ok, failed prometheus.Counter
}

func newModel(c *Collector, name string) *Model {
	m := &Model{c: c, name: name, loaded: make(map[string]bool), backends: make(map[string]map[string]bool)}
	m.inFlight, m.rejected = c.inFlight.WithLabelValues(name), c.rejected.WithLabelValues(name)
	m.wait.make = func(string) prometheus.Observer { return c.wait.WithLabelValues(name) }
	m.methods.make = m.newMethod
	m.delegates.make = func(backend string) prometheus.Observer { return c.delegates.WithLabelValues(name, backend) }
	m.stages.make = func(stage string) prometheus.Observer { return c.load.WithLabelValues(name, stage) }
	m.errors.make = func(reason string) prometheus.Counter { return c.errors.WithLabelValues(name, reason) }
	m.memory.make = func(kind string) prometheus.Gauge { return c.memory.WithLabelValues(name, kind) }
	return m
}

// SetQueue sets the function that returns the number of callers waiting for the model, which only
// its pools can report: func() int { return pool.Stats().Waiting }. It is called at each scrape.
func (m *Model) SetQueue(waiting func() int) { m.waiting.Store(&waiting) }

// Wants returns all kinds except single instructions, nodes and values.
func (m *Model) Wants() trace.Kinds {
	return trace.Executes | trace.Delegates | trace.Loads | trace.Pools | trace.Memories
}

// Observe counts an event.
func (m *Model) Observe(e *trace.Event) {
	switch e.Kind {
	case trace.Begin:
		m.inFlight.Inc()
	case trace.Execute:
		m.inFlight.Dec()
		m.methods.get(e.Method).count(e)
	case trace.Delegate:
		m.delegates.get(e.Backend).Observe(e.Duration().Seconds())
	case trace.Wait:
		m.waited(e)
	case trace.Stage, trace.Load, trace.Open:
		if stage := m.c.stage(e); stage != "" {
			m.stages.get(stage).Observe(e.Duration().Seconds())
		}
		m.note(e)
	case trace.Memory:
		m.memory.get(e.Name).Add(float64(e.Bytes))
	}
	if e.Err != nil && wholes.Has(e.Kind) {
		m.Fail(e.Reason)
	}
}

// Fail counts a failure by its reason, for observers that do not pass all events on.
func (m *Model) Fail(reason string) { m.errors.get(reason).Inc() }

// stage returns under which stage the time of an event counts, empty for none: with detail each stage, else the sums of them.
func (c *Collector) stage(e *trace.Event) string {
	switch {
	case c.detail && e.Kind == trace.Stage:
		return e.Name
	case !c.detail && e.Kind == trace.Open:
		return "open"
	case !c.detail && e.Kind == trace.Load:
		return "load"
	}
	return ""
}

// wholes are the kinds whose failures count; their parts report the same failures.
const wholes trace.Kinds = 1<<trace.Open | 1<<trace.Load | 1<<trace.Wait | 1<<trace.Execute

func (h *method) count(e *trace.Event) {
	if e.Err != nil {
		h.failed.Inc()
		return
	}
	h.ok.Inc()
	h.duration.Observe(e.Duration().Seconds())
}

func (m *Model) waited(e *trace.Event) {
	if e.Reason == "busy" {
		m.rejected.Inc()
		return
	}
	m.wait.get("").Observe(e.Duration().Seconds())
}

// note records a method's backends, and that it is loaded.
func (m *Model) note(e *trace.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case e.Err != nil:
	case e.Kind == trace.Load && !m.loaded[e.Method]:
		m.loaded[e.Method] = true
		m.c.info.WithLabelValues(m.name, e.Method, m.digest).Set(1)
	case e.Backend != "":
		if m.backends[e.Method] == nil {
			m.backends[e.Method] = make(map[string]bool)
		}
		m.backends[e.Method][e.Backend] = true
	}
}

// setDigest replaces the digest when one program replaces another. An empty one keeps the last one.
func (m *Model) setDigest(sha256 string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sha256 != "" && m.digest != sha256 {
		m.c.info.DeletePartialMatch(prometheus.Labels{"model": m.name})
		m.digest = sha256
		clear(m.loaded)
		clear(m.backends)
		m.methods.now.Store(nil)
	}
}

// newMethod creates the series of a method at its first run, when all its delegates are compiled.
func (m *Model) newMethod(name string) *method {
	m.mu.Lock()
	defer m.mu.Unlock()
	backend := strings.Join(slices.Sorted(maps.Keys(m.backends[name])), "+")
	if backend == "" {
		backend = "portable"
	}
	return &method{duration: m.c.inference.WithLabelValues(m.name, name, backend),
		ok: m.c.inferences.WithLabelValues(m.name, name, "ok"), failed: m.c.inferences.WithLabelValues(m.name, name, "error")}
}

// table caches a value per key. Lookups take no lock.
type table[T any] struct {
	make func(key string) T
	mu   sync.Mutex
	now  atomic.Pointer[map[string]T] // replaced, never modified
}

func (t *table[T]) get(key string) T {
	if now := t.now.Load(); now != nil {
		if x, ok := (*now)[key]; ok {
			return x
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	next := make(map[string]T)
	if now := t.now.Load(); now != nil {
		if x, ok := (*now)[key]; ok {
			return x
		}
		maps.Copy(next, *now)
	}
	x := t.make(key)
	next[key] = x
	t.now.Store(&next)
	return x
}
