package kerneltest

import (
	"testing"
	"time"

	"github.com/etrun-go/etrun/kernels"
)

// Versus benchmarks an operator on one thread against a naive loop that computes the
// same, in turns, so that a busy machine slows both. It reports the operator's time
// for each of units, such as multiplications, and how many times faster it is, both
// from the best turn.
func Versus(b *testing.B, name string, units int, op func(*kernels.Ctx) error, naive func()) {
	b.Run(name, func(b *testing.B) {
		c := kernels.NewCtx(nil)
		best, slow := time.Hour, time.Hour
		for b.Loop() {
			start := time.Now()
			if err := op(c); err != nil {
				b.Fatal(err)
			}
			best = min(best, time.Since(start))
			c.Release()
			start = time.Now()
			naive()
			slow = min(slow, time.Since(start))
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(best.Nanoseconds())/float64(units), "ns/unit")
		b.ReportMetric(float64(slow)/float64(best), "x-naive")
	})
}

// VersusCase is Versus for the operator of a case, which works on copies of the
// case's tensors.
func VersusCase(b *testing.B, set *kernels.Set, c Case, units int, naive func()) {
	b.Helper()
	k, err := c.call(set)
	if err != nil {
		b.Fatal(err)
	}
	Versus(b, c.Name, units, func(ctx *kernels.Ctx) error {
		ctx.State = &k.state
		return k.op.Func(ctx, k.args)
	}, naive)
}
