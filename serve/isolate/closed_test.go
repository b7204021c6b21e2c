//go:build linux && (amd64 || arm64)

package isolate

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
)

// used are the objects of a process.
type used struct {
	program *Program
	pool    serve.Runner
	own     serve.Instance
}

func newUsed(t *testing.T) *used {
	t.Helper()
	u := &used{program: open(t, options(t, "good", digits, 0))}
	u.pool = forward(t, u.program)
	var err error
	if u.own, err = u.program.Instance(t.Context(), "forward", nil); err != nil {
		t.Fatal(err)
	}
	return u
}

// errorsOf calls every method of the objects.
func (u *used) errorsOf(ctx context.Context) map[string]error {
	u.program.MethodNames()
	u.program.PID()
	u.program.Layers()
	u.program.Digest()
	_ = u.program.Down() // why there is no process, if there is none
	u.own.Bytes()
	_, meta := u.program.Meta("forward")
	_, pool := u.program.Pool(ctx, "forward", 1)
	_, alone := u.program.Instance(ctx, "forward", nil)
	_, sharing := u.program.Instance(ctx, "forward", u.own)
	_, run := output(ctx, u.pool, image(1))
	_, own := output(ctx, u.own, image(1))
	return map[string]error{"Meta": meta, "Pool": pool, "Instance": alone, "Instance that shares": sharing, "Pool.Run": run,
		"Instance.Run": own, "Instance.Reset": u.own.Reset()}
}

// TestClosed calls every method of a closed program and of its pool and instance, also if only these are closed.
func TestClosed(t *testing.T) {
	u := newUsed(t)
	for name, err := range u.errorsOf(t.Context()) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 2 {
		if err := errors.Join(u.own.Close(), u.pool.Close()); err != nil {
			t.Error(err)
		}
		u.check(t, map[string]bool{"Instance that shares": true, "Pool.Run": true, "Instance.Run": true, "Instance.Reset": true})
	}
	if _, err := output(t.Context(), forward(t, u.program), image(1)); err != nil {
		t.Errorf("another pool: %v", err)
	}
	u = newUsed(t)
	for range 2 {
		if err := u.program.Close(); err != nil {
			t.Error(err)
		}
		u.check(t, map[string]bool{"Pool": true, "Instance": true, "Instance that shares": true, "Pool.Run": true, "Instance.Run": true,
			"Instance.Reset": true})
		if err := errors.Join(u.own.Close(), u.pool.Close()); err != nil {
			t.Error(err)
		}
	}
}

// check expects ErrClosed of the calls in closed, and no error of others.
func (u *used) check(t *testing.T, closed map[string]bool) {
	t.Helper()
	for name, err := range u.errorsOf(t.Context()) {
		if closed[name] != errors.Is(err, etrun.ErrClosed) || !closed[name] && err != nil {
			t.Errorf("%s after Close: got %v, want ErrClosed %v", name, err, closed[name])
		}
	}
}

// TestDuringClose uses a program while another goroutine closes it.
func TestDuringClose(t *testing.T) {
	for round := range 8 {
		u := newUsed(t)
		var both sync.WaitGroup
		both.Go(func() {
			for range round * 50 {
				runtime.Gosched()
			}
			if err := u.program.Close(); err != nil {
				t.Error(err)
			}
		})
		for range 3 {
			for name, err := range u.errorsOf(t.Context()) {
				if err != nil && !errors.Is(err, etrun.ErrClosed) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		both.Wait()
	}
}
