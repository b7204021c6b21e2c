package resample

import (
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// BenchmarkUpsample reports ns per output element, at twice the size and a bit, and
// the ratio to a naive loop.
func BenchmarkUpsample(b *testing.B) {
	const planes, in, out = 16, 32, 70
	r := rand.New(rand.NewPCG(1, 1))
	x, y := kerneltest.Noise(r, tensor.Float32, []int{1, planes, in, in}, nil), tensor.New(tensor.Float32, 1, planes, out, out)
	xs, ys := tensor.Data[float32](x), tensor.Data[float32](y)
	value := func(t *tensor.Tensor) *tensor.Value { return new(tensor.TensorValue(t)) }
	size := new(tensor.NewList(tensor.KindIntList, []*tensor.Value{new(tensor.IntValue(out)), new(tensor.IntValue(out))}))
	none := new(tensor.Value)
	const step = float32(in) / out
	each := func(f func(plane []float32, y, x int) float32) func() {
		return func() {
			for i := range ys {
				ys[i] = f(xs[i/(out*out)*in*in:], i/out%out, i%out)
			}
		}
	}
	nearestArgs := kernels.Args{value(x), size, none, value(y), none}
	kerneltest.Versus(b, "nearest", len(ys), func(c *kernels.Ctx) error { return nearest[float32](c, nearestArgs) },
		each(func(p []float32, y, x int) float32 { return p[int(float32(y)*step)*in+int(float32(x)*step)] }))
	bilinearArgs := kernels.Args{value(x), size, new(tensor.BoolValue(false)), none, value(y), none}
	kerneltest.Versus(b, "bilinear", len(ys), func(c *kernels.Ctx) error { return bilinear[float32](c, bilinearArgs) },
		each(func(p []float32, y, x int) float32 {
			h, w := max((float32(y)+0.5)*step-0.5, 0), max((float32(x)+0.5)*step-0.5, 0)
			h0, w0 := int(h), int(w)
			h1, w1, v, u := min(h0+1, in-1), min(w0+1, in-1), h-float32(h0), w-float32(w0)
			return (1-v)*((1-u)*p[h0*in+w0]+u*p[h0*in+w1]) + v*((1-u)*p[h1*in+w0]+u*p[h1*in+w1])
		}))
}
