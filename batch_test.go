package etrun_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// textMethods loads instances of a small language model, with some tokens in their caches.
func textMethods(t *testing.T, n int, options ...etrun.Option) (p *etrun.Program, list []*etrun.Method) {
	t.Helper()
	p, err := etrun.Open("text/testdata/dynamic.pte", append(options, etrun.WithDelegates(all.Backends()...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	for i := range n {
		m, err := p.Load(context.Background(), "forward")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		list = append(list, m)
		setTokens(t, m, 0, 1, int64(i), 3)
		execute(t, m)
		setTokens(t, m, 3, 7)
		execute(t, m)
	}
	return p, list
}

func setTokens(t *testing.T, m *etrun.Method, position int64, tokens ...int64) {
	t.Helper()
	err := errors.Join(etrun.Set(m, 0, tokens), etrun.Set(m, 1, []int64{position}))
	if err != nil {
		t.Fatal(err)
	}
}

func execute(t *testing.T, m *etrun.Method) []float32 {
	t.Helper()
	if err := m.Execute(context.Background()); err != nil {
		t.Fatal(err)
	}
	return logitsOf(t, m)
}

func logitsOf(t *testing.T, m *etrun.Method) []float32 {
	t.Helper()
	x, err := etrun.Get[float32](m, 0)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(x)
}

// TestBatch runs instances together whose calls have one row, another number, no inputs, or a closed instance: each result is that of
// a run alone.
func TestBatch(t *testing.T) {
	const n = 6
	_, alone := textMethods(t, n)
	p, list := textMethods(t, n)
	b, err := list[0].NewBatch(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if together, each := b.Steps(); b.Rows() != n || together < 10 || each < 10 {
		t.Errorf("%d rows, %d steps together, %d in each", b.Rows(), together, each)
	}
	for step := range 4 {
		for i := range n {
			for _, m := range []*etrun.Method{alone[i], list[i]} {
				tokens := []int64{int64(step + 10*i)}
				if i == 3 {
					tokens = append(tokens, 5, 6)
				}
				setTokens(t, m, 4+int64(step*len(tokens)), tokens...)
			}
		}
		errs := make([]error, n)
		if err := b.Execute(context.Background(), list, errs); err != nil || errors.Join(errs...) != nil {
			t.Fatal(err, errs)
		}
		for i, m := range list {
			if got, want := logitsOf(t, m), execute(t, alone[i]); !slices.Equal(got, want) {
				t.Errorf("step %d, instance %d: other logits than alone", step, i)
			}
		}
	}
	list[1].Close()
	errs := make([]error, n+1)
	setTokens(t, list[2], 30, 1)
	setTokens(t, list[5], 99, 1) // beyond the cache
	if err := b.Execute(context.Background(), append(list, list[0]), errs); err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]error{1: etrun.ErrClosed, 5: etrun.ErrUnsupported, n: etrun.ErrBusy} {
		if !errors.Is(errs[i], want) {
			t.Errorf("instance %d: got %v, want %v", i, errs[i], want)
		}
	}
	if err := errors.Join(errs[0], errs[2], errs[3], errs[4]); err != nil {
		t.Error(err)
	}
	b.Close()
	if err := b.Execute(context.Background(), list, errs); !errors.Is(err, etrun.ErrClosed) {
		t.Errorf("closed batch: %v", err)
	}
	p.Close()
}

// TestBatchFaults fails in the own steps of one instance, on any thread: the others have the results of a run
// alone. All run again, except one that panicked.
func TestBatchFaults(t *testing.T) {
	const n = 3
	row, _, _, _ := etrun.DefaultOperators().Lookup("llama::update_cache.out")
	planted := errors.New("planted")
	var calls atomic.Int64 // until the fault
	var fault func() error
	op := *row
	op.Func = func(c *kernels.Ctx, a kernels.Args) error {
		if calls.Add(-1) == 0 {
			if err := fault(); err != nil {
				return err
			}
		}
		return row.Func(c, a)
	}
	for _, threads := range []int{1, 2, 8} {
		_, alone := textMethods(t, n)
		for _, c := range []struct {
			name  string
			fault func(stop func()) error
			all   bool // instances fail
			want  error
		}{
			{"error", func(func()) error { return planted }, false, planted},
			{"panic", func(func()) error { panic(planted) }, false, etrun.ErrPanic},
			{"cancel", func(stop func()) error { stop(); return nil }, true, context.Canceled},
		} {
			calls.Store(0)
			_, list := textMethods(t, n, etrun.WithThreads(threads), etrun.WithOperators(op))
			b, err := list[0].NewBatch(context.Background(), n)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			for i := range n {
				setTokens(t, alone[i], 4, int64(i))
				setTokens(t, list[i], 4, int64(i))
			}
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			fault = func() error { return c.fault(stop) }
			calls.Store(2)
			errs := make([]error, n)
			if err := b.Execute(ctx, list, errs); c.all != (err != nil) {
				t.Errorf("%d threads, %s: %v", threads, c.name, err)
			}
			failed := 0
			for i, m := range list {
				want := execute(t, alone[i])
				if errs[i] != nil {
					if failed++; !errors.Is(errs[i], c.want) {
						t.Errorf("%d threads, %s, instance %d: %v", threads, c.name, i, errs[i])
					}
				} else if !slices.Equal(logitsOf(t, m), want) {
					t.Errorf("%d threads, %s, instance %d: other logits than alone", threads, c.name, i)
				}
				setTokens(t, alone[i], 4, int64(i))
				if errs[i] == nil || c.want != etrun.ErrPanic {
					setTokens(t, m, 4, int64(i))
				}
			}
			if want := map[bool]int{false: 1, true: n}[c.all]; failed != want {
				t.Errorf("%d threads, %s: %d instances failed, want %d", threads, c.name, failed, want)
			}
			err = b.Execute(context.Background(), list, errs)
			for i, m := range list {
				want := execute(t, alone[i])
				if panicked := errors.Is(errs[i], etrun.ErrPanic); err != nil || panicked && c.want != etrun.ErrPanic ||
					!panicked && (errs[i] != nil || !slices.Equal(logitsOf(t, m), want)) {
					t.Errorf("%d threads, after %s, instance %d: %v, %v", threads, c.name, i, err, errs[i])
				}
			}
		}
	}
}

// TestNoBatch wants the reasons why instances do not run together.
func TestNoBatch(t *testing.T) {
	p, list := textMethods(t, 1)
	fresh, err := p.Load(context.Background(), "forward")
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	_, others := textMethods(t, 1)
	b, err := others[0].NewBatch(context.Background(), 4)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	errs := make([]error, 1)
	if err := b.Execute(context.Background(), list, errs); err != nil || !errors.Is(errs[0], etrun.ErrInput) {
		t.Errorf("instance of another program: %v, %v", err, errs[0])
	}
	if _, err := fresh.NewBatch(context.Background(), 4); !errors.Is(err, etrun.ErrUnsupported) {
		t.Errorf("before a run: %v", err)
	}
	static, err := etrun.Open("testdata/pte/conv_portable.pte")
	if err != nil {
		t.Fatal(err)
	}
	defer static.Close()
	m, err := static.Load(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for i, in := range m.Meta().Inputs {
		if err := m.SetInput(i, tensor.New(in.DType, in.Sizes...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Execute(context.Background()); err != nil {
		t.Fatal(err)
	}
	_, err = m.NewBatch(context.Background(), 4)
	if e, ok := errors.AsType[*etrun.BatchError](err); !ok || e.Reason != "calls do not run together: no input has a varying number of rows" {
		t.Errorf("static inputs: %v", err)
	}
}

// TestBatchAllocatesNothing runs a batch that has run before.
func TestBatchAllocatesNothing(t *testing.T) {
	_, list := textMethods(t, 4)
	b, err := list[0].NewBatch(context.Background(), 4)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	errs := make([]error, 4)
	run := func() {
		if err := b.Execute(context.Background(), list, errs); err != nil || errors.Join(errs...) != nil {
			t.Fatal(err, errs)
		}
	}
	run()
	if n := testing.AllocsPerRun(5, run); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
