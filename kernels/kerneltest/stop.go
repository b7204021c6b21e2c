package kerneltest

import (
	"testing"
	"time"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
)

// Stops stops each case in its loops, on one and on two threads, after a tenth of the time that it takes. It must end
// in half of that time, once in a few attempts, because the machine may do other things meanwhile.
func Stops(t *testing.T, set *kernels.Set, cases ...Case) {
	t.Helper()
	pool := cpu.NewPool(2)
	t.Cleanup(pool.Close)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			for _, p := range []*cpu.Pool{nil, pool} {
				k, err := c.call(set)
				if err != nil {
					t.Fatal(err)
				}
				k.stops(t, kernels.NewCtx(p))
			}
		})
	}
}

func (k *call) stops(t *testing.T, ctx *kernels.Ctx) {
	t.Helper()
	var took, all time.Duration
	for range 5 {
		begun := time.Now()
		if err := k.made.Do(ctx); err != nil {
			t.Fatal(err)
		}
		all = time.Since(begun)
		if took = k.stop(t, ctx, all/10); took < all/2 {
			return
		}
	}
	t.Errorf("%d threads: stopped after %v of %v", ctx.Threads(), took, all)
}

// stop runs the call until it is stopped, and returns how long that took.
func (k *call) stop(t *testing.T, ctx *kernels.Ctx, after time.Duration) (took time.Duration) {
	t.Helper()
	done := make(chan struct{})
	ctx.StopWhen(done)
	time.AfterFunc(after, func() { close(done) })
	begun := time.Now()
	defer func() {
		if fault := recover(); fault != nil && fault != (cpu.Stopped{}) {
			panic(fault)
		}
		took = time.Since(begun)
		ctx.StopWhen(nil)
		k.made.Reset()
		ctx.Release()
	}()
	if err := k.made.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return 0
}
