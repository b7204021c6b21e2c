package etrun_test

import (
	"context"
	"errors"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/runtime/trace"
)

// TestObserverPanics checks that the call fails, and that everything works without the observer, or
// after it stops panicking.
func TestObserverPanics(t *testing.T) {
	for kind := range trace.Kinds(16) {
		if !trace.Everything.Has(trace.Kind(kind)) || trace.Kind(kind) == trace.Move || trace.Kind(kind) == trace.Jump || trace.Kind(kind) == trace.Free {
			continue
		}
		t.Run(trace.Kind(kind).String(), func(t *testing.T) {
			var panics atomic.Bool
			o := trace.Func{Kinds: 1 << kind, Do: func(*trace.Event) {
				if panics.Load() {
					panic("a fault of the observer")
				}
			}}
			with := []etrun.Option{etrun.WithDelegates(all.Backends()...), etrun.WithLowering(etrun.LowerRewrite), etrun.WithObserver(o)}
			path := "testdata/digits/xnnpack.pte"
			if trace.Kind(kind) == trace.Operator {
				path = "testdata/digits/portable.pte"
			}
			run := func() (err error) {
				p, err := etrun.Open(path, with...)
				if err != nil {
					return err
				}
				defer p.Close()
				pool, err := p.NewPool("", 1)
				if err != nil {
					return err
				}
				defer pool.Close()
				err = pool.Do(t.Context(), func(m *etrun.Method) error {
					setOnes(t, m)
					err := m.Execute(t.Context())
					panics.Store(false)
					if err == nil {
						return nil
					}
					return errors.Join(err, m.Execute(t.Context()))
				})
				panics.Store(false)
				return errors.Join(err, pool.Do(t.Context(), func(m *etrun.Method) error {
					setOnes(t, m)
					return m.Execute(t.Context())
				}))
			}
			panics.Store(true)
			err := run()
			p, ok := errors.AsType[*etrun.PanicError](err)
			if !ok || p.Value != "a fault of the observer" || !errors.Is(err, etrun.ErrPanic) || !strings.Contains(err.Error(), "observer panicked") ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one PanicError", err)
			}
			panics.Store(false)
			if err := run(); err != nil {
				t.Errorf("with the panic over: %v", err)
			}
		})
	}
}

// TestObserveInPool has four concurrent callers, one observer of the program, and another one of
// every third run, which must receive only that run.
func TestObserveInPool(t *testing.T) {
	var executes, instructions atomic.Int64
	counts := trace.Func{Kinds: trace.Executes | trace.Instructions | trace.Nodes | trace.Pools, Do: func(e *trace.Event) {
		switch e.Kind {
		case trace.Execute:
			executes.Add(1)
		case trace.Operator:
			instructions.Add(1)
		}
	}}
	for _, path := range observed[:2] {
		p, err := etrun.Open(path, etrun.WithDelegates(all.Backends()...), etrun.WithLowering(etrun.LowerRewrite), etrun.WithObserver(counts),
			etrun.WithThreads(2))
		if err != nil {
			t.Fatal(err)
		}
		pool, err := p.NewPool("", 4)
		if err != nil {
			t.Fatal(err)
		}
		executes.Store(0)
		const callers, each = 8, 15
		var wg sync.WaitGroup
		for caller := range callers {
			wg.Go(func() {
				for round := range each {
					r := everything()
					err := pool.Do(t.Context(), func(m *etrun.Method) error {
						if round%3 == caller%3 {
							if err := m.Observe(r); err != nil {
								return err
							}
						}
						setOnes(t, m)
						return m.Execute(t.Context())
					})
					if err != nil {
						t.Error(err)
					}
					if round%3 == caller%3 {
						checkExecute(t, r.Events)
					} else if len(r.Events) > 0 {
						t.Errorf("%d events of another caller", len(r.Events))
					}
				}
			})
		}
		wg.Wait()
		if n := executes.Load(); n != callers*each {
			t.Errorf("%s: told of %d executes, want %d", path, n, callers*each)
		}
		if pool.Close() != nil || p.Close() != nil {
			t.Error("does not close")
		}
	}
	if instructions.Load() == 0 {
		t.Error("no instructions")
	}
}

// TestObserveIsRefused limits memory to less than measuring nodes needs.
func TestObserveIsRefused(t *testing.T) {
	path := "testdata/pte/named_data.pte"
	loads := func(limit int) bool {
		p, err := etrun.Open(path, etrun.WithDelegates(all.Backends()...), etrun.WithMaxMemory(int64(limit)+1))
		if err != nil {
			return false
		}
		defer p.Close()
		m, err := p.Load(t.Context(), "")
		if err != nil {
			return false
		}
		return m.Close() == nil
	}
	least := sort.Search(1<<24, loads)
	m := load(t, path, etrun.WithDelegates(all.Backends()...), etrun.WithMaxMemory(int64(least)+1))
	setOnes(t, m)
	if err := m.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Observe(everything()); !errors.Is(err, etrun.ErrMemory) {
		t.Errorf("nodes: got %v, want a memory limit", err)
	}
	if err := m.Observe(&trace.Recorder{Kinds: trace.Executes}); err != nil {
		t.Errorf("executes: %v", err)
	}
	if err := m.Execute(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestObserverAllocatesNothing checks the steady state, also with observers that are set and
// removed.
func TestObserverAllocatesNothing(t *testing.T) {
	var n atomic.Int64
	counts := trace.Func{Kinds: trace.Everything, Do: func(*trace.Event) { n.Add(1) }}
	var own etrun.Observer = counts
	for _, path := range observed[:4] {
		with := etrun.WithDelegates(all.Backends()...)
		m, bare := load(t, path, with, etrun.WithObserver(counts)), load(t, path, with)
		setOnes(t, m)
		setOnes(t, bare)
		for name, f := range map[string]func(){
			"of the program": func() {
				if err := m.Execute(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
			"of one execute in two": func() {
				if err := errors.Join(bare.Observe(own), bare.Execute(t.Context()), bare.Observe(nil), bare.Execute(t.Context())); err != nil {
					t.Fatal(err)
				}
			},
		} {
			n.Store(0)
			f()
			if n.Load() == 0 {
				t.Errorf("%s, %s: no events", path, name)
			}
			if allocs := testing.AllocsPerRun(20, f); allocs != 0 {
				t.Errorf("%s, observer %s: %g allocations, want 0", path, name, allocs)
			}
		}
	}
}

var _ = []etrun.Observer{&trace.Recorder{}, trace.Func{}}

// BenchmarkObserver measures runs without an observer, and with observers of more and more kinds.
func BenchmarkObserver(b *testing.B) {
	var n atomic.Int64
	for _, path := range append(benchModels(b, "mobilenet_v2/xnnpack"), "testdata/pte/map_loop.pte") {
		for _, c := range []struct {
			name  string
			kinds trace.Kinds
		}{{"none", 0}, {"executes", trace.Executes}, {"delegates", trace.Executes | trace.Delegates},
			{"instructions", trace.Executes | trace.Instructions}, {"nodes", trace.Everything}} {
			b.Run(benchName(path)+"/"+c.name, func(b *testing.B) {
				var options []etrun.Option
				if c.kinds != 0 {
					options = append(options, etrun.WithObserver(trace.Func{Kinds: c.kinds, Do: func(*trace.Event) { n.Add(1) }}))
				}
				m := benchMethod(b, path, 1, options...)
				ctx := context.Background()
				if err := m.Execute(ctx); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if err := m.Execute(ctx); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
