package pool

import (
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// BenchmarkPool reports ns per window element, 3×3 at stride 2, and the ratio to a
// naive loop.
func BenchmarkPool(b *testing.B) {
	const planes, in, out = 24, 64, 31
	value := func(t *tensor.Tensor) *tensor.Value { return new(tensor.TensorValue(t)) }
	list := func(n int64) *tensor.Value {
		return new(tensor.NewList(tensor.KindIntList, []*tensor.Value{new(tensor.IntValue(n))}))
	}
	no, none := new(tensor.BoolValue(false)), new(tensor.Value)
	x, y, index := tensor.New(tensor.Float32, planes, in, in), tensor.New(tensor.Float32, planes, out, out), tensor.New(tensor.Int64, planes, out, out)
	xs, ys, at := tensor.Data[float32](x), tensor.Data[float32](y), tensor.Data[int64](index)
	for i := range xs {
		xs[i] = float32(i * 7919 % 1009)
	}
	windows := func(f func(o, first int)) {
		for o := range ys {
			f(o, o/(out*out)*in*in+o/out%out*2*in+o%out*2)
		}
	}
	maxArgs := kernels.Args{value(x), list(3), list(2), list(0), list(1), no, value(y), value(index), none}
	kerneltest.Versus(b, "max", 9*len(ys), func(c *kernels.Ctx) error { return maxPool(c, maxArgs) }, func() {
		windows(func(o, first int) {
			best := first
			for i := range 9 {
				if p := first + i/3*in + i%3; xs[p] > xs[best] {
					best = p
				}
			}
			ys[o], at[o] = xs[best], int64(best%(in*in))
		})
	})
	avgArgs := kernels.Args{value(x), list(3), list(2), list(0), no, no, none, value(y), none}
	kerneltest.Versus(b, "avg", 9*len(ys), func(c *kernels.Ctx) error { return avgPool(c, avgArgs) }, func() {
		windows(func(o, first int) {
			var sum float32
			for i := range 9 {
				sum += xs[first+i/3*in+i%3]
			}
			ys[o] = sum / 9
		})
	})
}
