package kerneltest

import (
	"testing"
	"time"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
)

const (
	stopAfter  = 15 * time.Millisecond
	stopWithin = 2 * time.Second // of a case that takes longer by far, on any machine
)

// Stops stops each case in its loops, on one and on two threads. A long case, which would take several seconds, must
// end soon; another one in half of its time.
func Stops(t *testing.T, set *kernels.Set, long bool, cases ...Case) {
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
				k.stops(t, kernels.NewCtx(p), long)
			}
		})
	}
}

func (k *call) stops(t *testing.T, ctx *kernels.Ctx, long bool) {
	t.Helper()
	var took, all time.Duration
	for range 5 { // the machine may do other things meanwhile
		if took = k.stop(t, ctx); long && took < stopWithin {
			return
		} else if !long {
			begun := time.Now()
			if err := k.made.Do(ctx); err != nil {
				t.Fatal(err)
			}
			if all = time.Since(begun); took < all/2 {
				return
			}
		}
	}
	t.Errorf("%d threads: %v of %v until the stop after %v", ctx.Threads(), took, all, stopAfter)
}

// stop runs the call until it is stopped, and returns how long that took.
func (k *call) stop(t *testing.T, ctx *kernels.Ctx) (took time.Duration) {
	t.Helper()
	done := make(chan struct{})
	ctx.StopWhen(done)
	time.AfterFunc(stopAfter, func() { close(done) })
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
