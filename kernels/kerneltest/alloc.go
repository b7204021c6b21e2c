package kerneltest

import (
	"testing"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// NoAllocs checks that the operator of each case does not allocate from its second call on, with
// one thread and with two.
func NoAllocs(t *testing.T, set *kernels.Set, cases ...Case) {
	t.Helper()
	pool := cpu.NewPool(2)
	t.Cleanup(pool.Close)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Helper()
			for _, p := range []*cpu.Pool{nil, pool} {
				ctx := kernels.NewCtx(p)
				n, err := allocations(&c, set, ctx)
				if err != nil {
					t.Fatal(err)
				}
				if n != 0 {
					t.Errorf("%d threads: got %v allocations per call, want 0", ctx.Threads(), n)
				}
			}
		})
	}
}

func allocations(c *Case, set *kernels.Set, ctx *kernels.Ctx) (float64, error) {
	k, err := c.call(set)
	if err != nil {
		return 0, err
	}
	var failure error
	call := func() {
		if err := k.made.Do(ctx); err != nil {
			failure = err
		}
	}
	call() // the first call allocates the operator's state
	return testing.AllocsPerRun(50, call), failure
}

// Prepare prepares a call of a case's operator on one thread. run executes it repeatedly, as an
// instruction does; written are the tensors that it writes.
func Prepare(tb testing.TB, set *kernels.Set, c Case) (run func() error, written []*tensor.Tensor) {
	tb.Helper()
	k, err := c.call(set)
	if err != nil {
		tb.Fatal(err)
	}
	ctx := kernels.NewCtx(nil)
	for _, g := range k.written {
		written = append(written, g.t)
	}
	return func() error { return k.made.Do(ctx) }, written
}

// Benchmark measures a case's operator on one thread.
func Benchmark(b *testing.B, set *kernels.Set, c Case) {
	b.Helper()
	run, _ := Prepare(b, set, c)
	b.ReportAllocs()
	for b.Loop() {
		if err := run(); err != nil {
			b.Fatal(err)
		}
	}
}
