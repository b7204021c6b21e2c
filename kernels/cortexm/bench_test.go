package cortexm

import (
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// image is a zeroed image with channels last.
func image(sizes ...int) *tensor.Tensor {
	t := tensor.Make(i8, sizes, last, tensor.Static)
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	return t
}

// constant is a zeroed constant.
func constant(d tensor.DType, sizes ...int) *tensor.Tensor {
	t := tensor.New(d, sizes...)
	t.Const = true
	return t
}

// calls is a call of each operator, of the sizes of a keyword spotter.
func calls() []kerneltest.Case {
	var (
		one, two, none = []int{1, 1}, []int{2, 2}, []int{0, 0}
		scratch        = tensor.New(u8, 0)
		q              = constant(i32, 64)
		x, y           = image(1, 64, 25, 5), image(1, 64, 25, 5)
		left, right    = tensor.New(i8, 4, 64, 64), tensor.New(i8, 4, 64, 64)
		row, weights   = tensor.New(i8, 1, 512), constant(i8, 512, 512)
	)
	conv := func(name, op string, y, x, w *tensor.Tensor, args ...any) kerneltest.Case {
		args = append([]any{x, w, q}, args...)
		return gives(name, op, y, append(args, 5, 3, q, q, -128, 127, scratch)...)
	}
	up := gives("transposed 2x2", "quantized_transpose_conv2d", image(1, 64, 50, 10), x, constant(i8, 64, 2, 2, 64), q,
		two, none, none, one, 5, 3, q, q, -128, 127, scratch, scratch)
	return []kerneltest.Case{
		gives("quantize", "quantize_per_tensor", tensor.New(i8, 8000), tensor.New(f32, 8000), 1.0, 1, -128, 127, i8),
		gives("quantize to 16 bits", "quantize_per_tensor", tensor.New(i16, 8000), tensor.New(f32, 8000), 1.0, 1, -128, 127, i16),
		gives("dequantize", "dequantize_per_tensor", tensor.New(f32, 8000), tensor.New(i8, 8000), 1.0, 1, -128, 127, i8),
		conv("conv 1x1", "quantized_conv2d", y, x, constant(i8, 64, 1, 1, 64), one, none, one),
		conv("conv 3x3", "quantized_conv2d", y, x, constant(i8, 64, 3, 3, 64), one, one, one),
		conv("conv 3x3, contiguous images, variable weights", "quantized_conv2d", tensor.New(i8, 1, 64, 25, 5), tensor.New(i8, 1, 64, 25, 5),
			tensor.New(i8, 64, 3, 3, 64), one, one, one),
		conv("depthwise 3x3", "quantized_depthwise_conv2d", y, x, constant(i8, 1, 3, 3, 64), one, one, one, 1),
		conv("depthwise 10x4, one channel", "quantized_depthwise_conv2d", y, image(1, 1, 49, 10), constant(i8, 1, 10, 4, 64),
			two, []int{5, 1}, one, 64),
		up,
		gives("linear 1x512x512", "quantized_linear", tensor.New(i8, 1, 512), row, weights, nil, nil,
			3, 0, 1, []int{1 << 30}, []int{-6}, 127, -128),
		gives("matmul 4x64x64x64", "quantized_batch_matmul", tensor.New(i8, 4, 64, 64), left, 3, right, 3, 0, 1<<30, -6, scratch),
		gives("avg pool 3x3", "quantized_avg_pool2d", y, x, []int{3, 3}, one, one, false, 0, 1<<30, 0, scratch),
		gives("max pool 3x3", "quantized_max_pool2d", y, x, []int{3, 3}, one, one, one, false, 0, 0, -128, 127),
		gives("softmax 64x128", "softmax", tensor.New(i8, 64, 128), tensor.New(i8, 64, 128), -1, 0, -128, 1<<30, 23, -248),
		gives("add", "quantized_add", y, x, 3, 1<<30, 0, x, 1, 1<<30, -1, 4, 1<<30, -18, -128, 127),
		gives("add of a channel each", "quantized_add", y, x, 3, 1<<30, 0, image(1, 64, 1, 1), 1, 1<<30, -1, 4, 1<<30, -18, -128, 127),
		gives("mul", "quantized_mul", y, x, 3, x, 1, 4, 1<<30, -6),
		gives("div", "quantized_div", y, x, 3, x, 1, 4, 6.5),
		gives("table", "quantized_activation", y, x, constant(i8, 256)),
		gives("minimum", "minimum", y, x, x),
		gives("maximum with a number", "maximum", y, x, tensor.New(i8)),
		gives("transpose", "transpose", tensor.New(i8, 4, 64, 64), left, []int{0, 2, 1}),
		gives("pad", "pad", image(1, 64, 27, 7), x, []int{0, 1, 1, 0}, []int{0, 1, 1, 0}, 3),
	}
}

func TestNoAllocs(t *testing.T) { kerneltest.NoAllocs(t, set, calls()...) }

func BenchmarkOps(b *testing.B) {
	for _, c := range calls() {
		b.Run(c.Name, func(b *testing.B) { kerneltest.Benchmark(b, set, c) })
	}
}
