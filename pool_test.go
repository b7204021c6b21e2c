package etrun_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

const stateProgram = "testdata/pte/initial_state.pte" // adds its input to a buffer

func openPool(t *testing.T, path string, n int, options ...etrun.PoolOption) *etrun.Pool {
	t.Helper()
	p, err := etrun.Open(path, etrun.WithThreads(2))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := p.NewPool("", n, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(pool.Close(), p.Close()); err != nil {
			t.Error(err)
		}
	})
	return pool
}

// callThrice makes three calls in sequence with the same input.
func callThrice(t *testing.T, pool *etrun.Pool) (answers [3][]float32) {
	t.Helper()
	for i := range answers {
		err := pool.Do(t.Context(), func(m *etrun.Method) error {
			got, err := etrun.Run[float32](t.Context(), m, []float32{1, 2, 3, 4})
			answers[i] = slices.Clone(got)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return answers
}

func TestPoolKeepsCallersApart(t *testing.T) {
	pool := openPool(t, stateProgram, 1)
	if a := callThrice(t, pool); !slices.Equal(a[0], a[1]) || !slices.Equal(a[0], a[2]) {
		t.Errorf("the same input gave %v", a)
	}
	err := pool.Do(t.Context(), func(m *etrun.Method) error {
		if _, err := m.Output(0); !errors.Is(err, etrun.ErrInput) {
			t.Errorf("the output of the caller before: %v", err)
		}
		return m.Execute(t.Context())
	})
	if !errors.Is(err, etrun.ErrInput) {
		t.Errorf("an execute on the inputs of the caller before: %v", err)
	}
	if a := callThrice(t, openPool(t, stateProgram, 1, etrun.WithKeptState())); slices.Equal(a[0], a[1]) || slices.Equal(a[1], a[2]) {
		t.Errorf("kept state changes nothing: %v", a)
	}
}

// TestPoolMethodOptions loads the instances with the state of another method.
func TestPoolMethodOptions(t *testing.T) {
	p, err := etrun.Open(stateProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var runs [2]*etrun.Method // runs[1] shares its state with the pool
	for i := range runs {
		if runs[i], err = p.Load(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		defer runs[i].Close()
	}
	pool, err := p.NewPool("", 1, etrun.WithKeptState(), etrun.WithMethodOptions(etrun.WithStateOf(runs[1])))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	add := func(m *etrun.Method) []float32 {
		got, err := etrun.Run[float32](t.Context(), m, []float32{1, 2, 3, 4})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Clone(got)
	}
	add(runs[0])
	want := add(runs[0])
	first := add(runs[1])
	err = pool.Do(t.Context(), func(m *etrun.Method) error {
		if got := add(m); !slices.Equal(got, want) || slices.Equal(got, first) {
			t.Errorf("second run, in the pool: got %v, want %v", got, want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPoolBoundsItsQueue(t *testing.T) {
	pool := openPool(t, convProgram, 1, etrun.WithQueue(1))
	release, entered := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	use := func(*etrun.Method) error {
		entered <- struct{}{}
		<-release
		return nil
	}
	for range 2 {
		wg.Go(func() {
			if err := pool.Do(context.Background(), use); err != nil {
				t.Error(err)
			}
		})
	}
	<-entered
	await.True(t, "a caller waits", func() bool { return pool.Stats().Waiting > 0 })
	err := pool.Do(t.Context(), use)
	full, ok := errors.AsType[*etrun.QueueError](err)
	if !ok || !errors.Is(err, etrun.ErrBusy) || full.Queue != 1 || full.Size != 1 {
		t.Errorf("got %v, want a QueueError of 1 and 1", err)
	}
	if s := pool.Stats(); s.InUse != 1 || s.Waiting != 1 || s.Refused != 1 || s.Idle != 0 {
		t.Errorf("in use: %+v", s)
	}
	close(release)
	<-entered
	wg.Wait()
	s := pool.Stats()
	if s.InUse != 0 || s.Idle != 1 || s.Waiting != 0 || s.Calls != 2 || s.Waited != 1 || s.WaitTime <= 0 || s.Created != 1 || s.Replaced != 0 || s.Size != 1 {
		t.Errorf("at the end: %+v", s)
	}
}

func TestPoolWarm(t *testing.T) {
	pool := openPool(t, convProgram, 3)
	var ran sync.Map
	err := pool.Warm(t.Context(), func(m *etrun.Method) error {
		ran.Store(m, true)
		setOnes(t, m)
		return m.Execute(t.Context())
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ran.Range(func(any, any) bool { n++; return true })
	if s := pool.Stats(); n != 3 || s.Created != 3 || s.Idle != 3 || s.InUse != 0 {
		t.Errorf("%d instances ran, %+v", n, s)
	}
	errWarm := errors.New("not now")
	if err := pool.Warm(t.Context(), func(*etrun.Method) error { return errWarm }); err != errWarm {
		t.Errorf("got %v", err)
	}
	if err := pool.Warm(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if s := pool.Stats(); s.Created != 3 || s.Idle != 3 {
		t.Errorf("warm again: %+v", s)
	}
}

// TestPoolWaitsEnd checks that waiting callers return on Close and when their context ends.
func TestPoolWaitsEnd(t *testing.T) {
	pool := openPool(t, convProgram, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	waited := make(chan error, 1)
	err := pool.Do(t.Context(), func(*etrun.Method) error {
		for name, err := range map[string]error{
			"Do":   pool.Do(ctx, func(*etrun.Method) error { return nil }),
			"Warm": pool.Warm(ctx, nil),
		} {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		}
		go func() { waited <- pool.Do(context.Background(), func(*etrun.Method) error { return nil }) }()
		await.True(t, "a caller waits", func() bool { return pool.Stats().Waiting > 0 })
		return pool.Close()
	})
	if err != nil {
		t.Error(err)
	}
	if err := <-waited; !errors.Is(err, etrun.ErrClosed) {
		t.Errorf("a caller that waited for a closed pool: %v", err)
	}
	if err := pool.Do(t.Context(), func(*etrun.Method) error { return nil }); !errors.Is(err, etrun.ErrClosed) {
		t.Errorf("use of a closed pool: %v", err)
	}
	cancelled, end := context.WithCancel(t.Context())
	end()
	if err := openPool(t, convProgram, 1).Do(cancelled, func(*etrun.Method) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
}

// TestPoolReplacesWhatItCannotUse has callers that close an instance or panic.
func TestPoolReplacesWhatItCannotUse(t *testing.T) {
	pool := openPool(t, stateProgram, 1)
	err := pool.Do(t.Context(), func(m *etrun.Method) error { return m.Close() })
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the caller's panic was swallowed")
			}
		}()
		_ = pool.Do(t.Context(), func(*etrun.Method) error { panic("a fault of the caller") })
	}()
	callThrice(t, pool)
	if s := pool.Stats(); s.Created != 2 || s.Replaced != 1 || s.InUse != 0 {
		t.Errorf("%+v", s)
	}
}

func TestPoolReplacesPoisonedMethods(t *testing.T) {
	var faults atomic.Int32
	set := replaced("aten::convolution.out", func(next kernels.Func) kernels.Func {
		return func(c *kernels.Ctx, a kernels.Args) error {
			if faults.Add(1) == 1 {
				panic("once")
			}
			return next(c, a)
		}
	})
	p, err := etrun.Open(convProgram, etrun.WithOperatorSet(set))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	pool, err := p.NewPool("", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	use := func(m *etrun.Method) error {
		setOnes(t, m)
		return m.Execute(t.Context())
	}
	if err := pool.Do(t.Context(), use); !errors.Is(err, etrun.ErrPanic) {
		t.Fatalf("first use: %v", err)
	}
	if err := pool.Do(t.Context(), use); err != nil {
		t.Errorf("second use: %v", err)
	}
	if s := pool.Stats(); s.Created != 2 || s.Replaced != 1 {
		t.Errorf("%+v", s)
	}
}

// TestPoolHammer runs a pool with state from many goroutines, with equal results.
func TestPoolHammer(t *testing.T) {
	pool := openPool(t, stateProgram, 3)
	want := callThrice(t, pool)[0]
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				err := pool.Do(ctx, func(m *etrun.Method) error {
					got, err := etrun.Run[float32](ctx, m, tensor.Of([]float32{1, 2, 3, 4}, 4))
					if err == nil && !slices.Equal(got, want) {
						t.Errorf("caller %d, call %d: got %v, want %v", i, k, got, want)
					}
					return err
				})
				cancel()
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if s := pool.Stats(); s.Created > 3 || s.Calls != 403 || s.InUse != 0 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

func TestThreadsAreBounded(t *testing.T) {
	for n, want := range map[int]int{0: cpu.DefaultThreads(), 3: 3, cpu.MaxThreads: cpu.MaxThreads} {
		p, err := etrun.Open(stateProgram, etrun.WithThreads(n))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Threads(); got != want {
			t.Errorf("WithThreads(%d): got %d, want %d", n, got, want)
		}
		p.Close()
	}
}
