package norm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// BenchmarkNorms reports ns per element and the ratio to a naive loop.
func BenchmarkNorms(b *testing.B) {
	const rows, n = 197, 192
	r := rand.New(rand.NewPCG(1, 1))
	x, w, y := kerneltest.Noise(r, tensor.Float32, []int{1, rows, n}, nil), kerneltest.Noise(r, tensor.Float32, []int{n}, nil), tensor.New(tensor.Float32, 1, rows, n)
	channel, stat, none := kerneltest.Noise(r, tensor.Float32, []int{rows}, nil), tensor.New(tensor.Float32, 1, rows, 1), tensor.New(tensor.Float32, 0)
	value := func(t *tensor.Tensor) *tensor.Value { return new(tensor.TensorValue(t)) }
	whole := func(n int64) *tensor.Value { return new(tensor.IntValue(n)) }
	eps := new(tensor.DoubleValue(1e-5))
	xs, ys, ws := tensor.Data[float32](x), tensor.Data[float32](y), tensor.Data[float32](w)
	each := func(f func(x, y []float32)) func() {
		return func() {
			for i := range rows {
				f(xs[i*n:][:n], ys[i*n:][:n])
			}
		}
	}
	softArgs := kernels.Args{value(x), whole(2), new(tensor.BoolValue(false)), value(y), value(y)}
	kerneltest.Versus(b, "softmax", rows*n, func(c *kernels.Ctx) error { return softmax(c, softArgs) }, each(naiveSoftmax))
	layerArgs := kernels.Args{value(x), new(tensor.NewList(tensor.KindIntList, []*tensor.Value{whole(n)})), value(w), value(w), eps, value(y), value(stat), value(stat), new(tensor.Value)}
	kerneltest.Versus(b, "layer norm", rows*n, func(c *kernels.Ctx) error { return layerNorm(c, layerArgs) }, each(func(x, y []float32) {
		var sum, squares float32
		for _, v := range x {
			sum += v
			squares += v * v
		}
		mean := sum / n
		std := float32(math.Sqrt(float64(squares/n - mean*mean + 1e-5)))
		for i, v := range x {
			y[i] = (v-mean)/std*ws[i] + ws[i]
		}
	}))
	batchArgs := kernels.Args{value(x), value(channel), value(channel), value(channel), value(channel), eps, eps, value(y), value(none), value(none), new(tensor.Value)}
	kerneltest.Versus(b, "batch norm", rows*n, func(c *kernels.Ctx) error { return batchNormNoTraining(c, batchArgs) }, each(func(x, y []float32) {
		for i, v := range x {
			y[i] = (v-ws[0])/float32(math.Sqrt(float64(ws[1]*ws[1]+1e-5)))*ws[2] + ws[3]
		}
	}))
}

func naiveSoftmax(x, y []float32) {
	m, sum := x[0], float32(0)
	for _, v := range x {
		m = max(m, v)
	}
	for i, v := range x {
		y[i] = float32(math.Exp(float64(v - m)))
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
}
