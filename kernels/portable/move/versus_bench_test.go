package move_test

import (
	"fmt"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// BenchmarkMove reports ns per element of the result and the ratio to a loop that
// copies element by element, its index arithmetic hoisted.
func BenchmarkMove(b *testing.B) {
	benchMove[uint8](b)
	benchMove[int16](b)
	benchMove[float32](b)
	benchMove[int64](b)
}

//go:noinline
func copyStrided[T any](dst, src []T, planes, rows, cols, ps, rs, cs int) {
	o := 0
	for p := range planes {
		for i := range rows {
			at := p*ps + i*rs
			for range cols {
				dst[o] = src[at]
				o++
				at += cs
			}
		}
	}
}

func benchMove[T uint8 | int16 | float32 | int64](b *testing.B) {
	const n, m = 512, 768
	x, y := tensor.New(tensor.TypeOf[T](), n, m), tensor.New(tensor.TypeOf[T](), m, n)
	xs, ys := tensor.Data[T](x), tensor.Data[T](y)
	for i := range xs {
		xs[i] = T(i) // memory that was never written is but one page
	}
	versus := func(name, op string, args []any, out *tensor.Tensor, naive func()) {
		c := kerneltest.Case{Name: fmt.Sprintf("%v/%s", x.DType, name), Op: op, Args: args, Outs: []any{out}}
		kerneltest.VersusCase(b, set, c, out.Numel(), naive)
	}
	// strided copies rows of cols elements that are rs and cs apart in x.
	strided := func(planes, rows, cols, ps, rs, cs int) func() {
		return func() { copyStrided(ys, xs, planes, rows, cols, ps, rs, cs) }
	}
	sized := func(sizes ...int) *tensor.Tensor { return tensor.New(x.DType, sizes...) }
	as := func(sizes ...int) *tensor.Tensor {
		t := tensor.Make(x.DType, sizes, nil, tensor.Static)
		t.Bind(x.Data[:t.NBytes()])
		return t
	}
	versus("transpose", "aten::t_copy.out", []any{x}, y, strided(1, m, n, 0, 1, m))
	versus("transpose small", "aten::t_copy.out", []any{as(48, 48)}, sized(48, 48), strided(1, 48, 48, 0, 1, 48))
	versus("channels last", "aten::permute_copy.out", []any{as(2, 64, 28, 28), []int{0, 2, 3, 1}}, sized(2, 28, 28, 64), strided(2, 784, 64, 784*64, 1, 784))
	versus("channels first", "aten::permute_copy.out", []any{as(2, 28, 28, 64), []int{0, 3, 1, 2}}, sized(2, 64, 28, 28), strided(2, 64, 784, 784*64, 1, 64))
	versus("3 channels last", "aten::permute_copy.out", []any{as(1, 3, 224, 224), []int{0, 2, 3, 1}}, sized(1, 224, 224, 3), strided(1, 224*224, 3, 0, 1, 224*224))
	versus("3 channels first", "aten::permute_copy.out", []any{as(1, 224, 224, 3), []int{0, 3, 1, 2}}, sized(1, 3, 224, 224), strided(1, 3, 224*224, 0, 1, 3))
	versus("heads", "aten::permute_copy.out", []any{as(1, 128, 8, 64), []int{0, 2, 1, 3}}, sized(1, 8, 128, 64), strided(8, 128, 64, 64, 512, 1))
	versus("slice rows", "aten::slice_copy.Tensor_out", []any{x, 0, 100, 400, 1}, sized(300, m), strided(1, 300, m, 0, m, 1))
	versus("slice columns", "aten::slice_copy.Tensor_out", []any{x, 1, 3, 67, 1}, sized(n, 64), strided(1, n, 64, 0, m, 1))
	versus("every second", "aten::slice_copy.Tensor_out", []any{x, 1, 0, m, 2}, sized(n, m/2), strided(1, n, m/2, 0, m, 2))
	versus("cat", "aten::cat.out", []any{[]*tensor.Tensor{as(n, 300), as(n, 300)}, 1}, sized(n, 600), strided(2, n, 300, 0, 300, 1))
	versus("repeat", "aten::repeat.out", []any{as(1, m), []int{n / 2, 1}}, sized(n/2, m), strided(1, n/2, m, 0, 0, 1))
	versus("expand last", "aten::expand_copy.out", []any{as(n, 1), []int{n, m}, false}, sized(n, m), strided(1, n, m, 0, 1, 0))
	versus("flip last", "aten::flip.out", []any{x, []int{1}}, sized(n, m), strided(1, n, m, 0, m, 1))
	versus("flip first", "aten::flip.out", []any{x, []int{0}}, sized(n, m), strided(1, n, m, 0, m, 1))
	versus("roll", "aten::roll.out", []any{x, []int{5, 7}, []int{0, 1}}, sized(n, m), strided(1, n, m, 0, m, 1))
	versus("pad", "aten::constant_pad_nd.out", []any{as(16, 48, 48), []int{1, 1, 1, 1}, 0}, sized(16, 50, 50), strided(16, 50, 50, 48*48, 48, 1))
	versus("pixel shuffle", "aten::pixel_shuffle.out", []any{as(1, 36, 48, 48), 2}, sized(1, 9, 96, 96), strided(9, 9216, 1, 9216, 1, 1))
}
