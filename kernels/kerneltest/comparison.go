package kerneltest

import (
	"runtime"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/cputime"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Implementation is one implementation in a comparison.
type Implementation struct {
	Name   string
	Run    func() error
	Result *tensor.Tensor // result of Run, in any dim order
}

// Compare compares the speed of implementations of the same computation on the calling thread. They
// alternate in one run, so that a busy machine slows all of them, and the best round of each
// counts. It reports the time of the first one per unit, such as a MAC, and for each other one the
// ratio of its time to the first one's:
//
//	x-naive 12      the first is 12 times as fast as the one named "naive"
//	x-xnnpack 0.40  the first takes 2.5 times as long as the one named "xnnpack"
//
// First it checks that the results agree to a thousandth of the largest element, integers to one.
func Compare(b *testing.B, units int, implementations ...Implementation) {
	b.Helper()
	first := &implementations[0]
	for i := range implementations {
		c := &implementations[i]
		c.times(b, 1)
		if err := agree(c.Result, first.Result); err != nil {
			b.Fatalf("%s and %s: %v", c.Name, first.Name, err)
		}
	}
	race(b, units, implementations)
}

func race(b *testing.B, units int, implementations []Implementation) {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	calls, best := make([]int, len(implementations)), make([]time.Duration, len(implementations))
	for i := range implementations {
		implementations[i].times(b, 1) // allocates the state of later calls
		best[i] = time.Hour
		calls[i] = 1 + min(int(round/max(implementations[i].times(b, 1), 1)), 1000)
	}
	for b.Loop() {
		for i := range implementations {
			best[i] = min(best[i], implementations[i].times(b, calls[i]))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(best[0].Nanoseconds())/float64(units), "ns/unit")
	for i, c := range implementations[1:] {
		b.ReportMetric(float64(best[i+1])/float64(best[0]), "x-"+c.Name)
	}
}

// round is the approximate duration of one round of a implementation, at least one call.
const round = 200 * time.Microsecond

// times makes n calls and returns the CPU time of one.
func (c *Implementation) times(b *testing.B, n int) time.Duration {
	start := cputime.Thread()
	for range n {
		if err := c.Run(); err != nil {
			b.Fatalf("%s: %v", c.Name, err)
		}
	}
	return (cputime.Thread() - start) / time.Duration(n)
}

// agree compares results loosely, to check that they are from the same computation.
func agree(got, want *tensor.Tensor) error {
	if kernels.Epsilon(want.DType) > 0 {
		return compare.Tensors(got, want, kernels.Tolerance{Abs: 1e-3 * compare.Largest(want)})
	}
	wide := func(t *tensor.Tensor) *tensor.Tensor { return FromDense(tensor.Float64, t.Sizes, nil, Dense(t)) }
	return compare.Tensors(wide(got), wide(want), kernels.Tolerance{Abs: 1})
}
