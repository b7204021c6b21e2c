package norm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// BenchmarkLayouts is BenchmarkNorms for other dimensions and dim orders: all naive
// loops go through the elements in memory order as far as they can.
func BenchmarkLayouts(b *testing.B) {
	const n, channels, points = 2, 64, 28 * 28
	r := rand.New(rand.NewPCG(2, 2))
	last := []uint8{0, 2, 3, 1}
	sizes := []int{n, channels, 28, 28}
	x, y := kerneltest.Noise(r, tensor.Float32, sizes, nil), tensor.New(tensor.Float32, sizes...)
	xl, yl := kerneltest.Noise(r, tensor.Float32, sizes, last), kerneltest.Noise(r, tensor.Float32, sizes, last)
	w, stat, none := kerneltest.Noise(r, tensor.Float32, []int{channels}, nil), tensor.New(tensor.Float32, n, 8), tensor.New(tensor.Float32, 0)
	variance := tensor.New(tensor.Float32, channels)
	xs, ys, ws := tensor.Data[float32](x), tensor.Data[float32](y), tensor.Data[float32](w)
	versus := func(name, op string, args, outs []any, naive func()) {
		kerneltest.VersusCase(b, kernels.NewSet(Ops()), kerneltest.Case{Name: name, Op: op, Args: args, Outs: outs}, len(xs), naive)
	}
	columns := func() {
		for i := range n {
			for p := range points {
				at, m, sum := i*channels*points+p, float32(math.Inf(-1)), float32(0)
				for c := range channels {
					m = max(m, xs[at+c*points])
				}
				for c := range channels {
					ys[at+c*points] = float32(math.Exp(float64(xs[at+c*points] - m)))
					sum += ys[at+c*points]
				}
				for c := range channels {
					ys[at+c*points] /= sum
				}
			}
		}
	}
	rows := func() {
		for i := 0; i < len(xs); i += 28 {
			naiveSoftmax(xs[i:][:28], ys[i:][:28])
		}
	}
	perChannel := func(channel func(i int) int) func() {
		return func() {
			for i, v := range xs {
				c := channel(i)
				ys[i] = (v-ws[c])/float32(math.Sqrt(float64(ws[c]*ws[c]+1e-5)))*ws[c] + ws[c]
			}
		}
	}
	groups := func() {
		const size = channels / 8 * points
		for i := 0; i < len(xs); i += size {
			var sum, squares float32
			for _, v := range xs[i:][:size] {
				sum += v
				squares += v * v
			}
			mean := sum / size
			std := float32(math.Sqrt(float64(squares/size - mean*mean + 1e-5)))
			for j, v := range xs[i:][:size] {
				ys[i+j] = (v-mean)/std*ws[j/points] + ws[j/points]
			}
		}
	}
	const batch = "aten::_native_batch_norm_legit_no_training.out"
	versus("softmax of short rows", "aten::_softmax.out", []any{x, 3, false}, []any{y}, rows)
	versus("softmax of channels", "aten::_softmax.out", []any{x, 1, false}, []any{y}, columns)
	versus("softmax of channels that lie last", "aten::_softmax.out", []any{xl, 1, false}, []any{yl}, columns)
	versus("log softmax of short rows", "aten::_log_softmax.out", []any{x, 3, false}, []any{y}, rows)
	versus("log softmax of channels", "aten::_log_softmax.out", []any{x, 1, false}, []any{y}, columns)
	versus("group norm", "aten::native_group_norm.out", []any{x, w, w, n, channels, points, 8, 1e-5}, []any{y, stat, stat}, groups)
	versus("group norm, channels last", "aten::native_group_norm.out", []any{xl, w, w, n, channels, points, 8, 1e-5}, []any{yl, stat, stat}, groups)
	versus("batch norm", batch, []any{x, w, w, w, variance, 0.1, 1e-5}, []any{y, none, none}, perChannel(func(i int) int { return i / points % channels }))
	versus("batch norm, channels last", batch, []any{xl, w, w, w, variance, 0.1, 1e-5}, []any{yl, none, none}, perChannel(func(i int) int { return i % channels }))
}
