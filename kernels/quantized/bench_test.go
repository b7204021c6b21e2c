package quantized

import (
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func BenchmarkOps(b *testing.B) {
	const n = 1 << 18
	x, q := long(f32, n), long(i8, n)
	rows := tensor.New(tensor.Float32, 512)
	for _, c := range []kerneltest.Case{
		{Name: "quantize", Op: "quantized_decomposed::quantize_per_tensor.out", Args: []any{x, 0.5, 0, -128, 127, i8}, Want: []any{q}},
		{Name: "quantize to 16 bits", Op: "quantized_decomposed::quantize_per_tensor.out", Args: []any{x, 0.5, 0, -128, 127, i16}, Want: []any{long(i16, n)}},
		{Name: "dequantize", Op: "quantized_decomposed::dequantize_per_tensor.out", Args: []any{q, 0.5, 0, -128, 127, i8, nil}, Want: []any{x}},
		{Name: "dequantize, a scale each", Op: "quantized_decomposed::dequantize_per_channel.out", Args: []any{q, x, nil, 0, -128, 127, i8, nil}, Want: []any{x}},
		{Name: "add", Op: "quantized_decomposed::add.out", Args: []any{q, 1.0, 0, -128, 127, q, 1.0, 0, -128, 127, 2.0, 0, -128, 127}, Want: []any{q}},
		{Name: "parameters", Op: "quantized_decomposed::choose_qparams.Tensor_out", Args: []any{x, -128, 127, 1e-5, i8}, Want: []any{vec(f64, 0), vec(tensor.Int64, 0)}},
		{Name: "linear 1x512x512", Op: "quantized_decomposed::mixed_linear.out", Args: []any{tensor.New(f32, 1, 512), tensor.New(i8, 512, 512), rows, nil, nil}, Want: []any{tensor.New(f32, 1, 512)}},
		{Name: "linear 32x512x512", Op: "quantized_decomposed::mixed_linear.out", Args: []any{tensor.New(f32, 32, 512), tensor.New(i8, 512, 512), rows, nil, nil}, Want: []any{tensor.New(f32, 32, 512)}},
		{Name: "mm 1x512x512", Op: "quantized_decomposed::mixed_mm.out", Args: []any{tensor.New(f32, 1, 512), tensor.New(i8, 512, 512), rows, nil}, Want: []any{tensor.New(f32, 1, 512)}},
	} {
		b.Run(c.Name, func(b *testing.B) { kerneltest.Benchmark(b, set, c) })
	}
}
