package quantized

import (
	"math"
	"testing"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var set = kernels.NewSet(Ops())

const (
	u8, i8, i16, i32 = tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32
	f16, bf16        = tensor.Float16, tensor.BFloat16
	f32, f64         = tensor.Float32, tensor.Float64
)

// of makes a tensor of type d from values that it holds exactly.
func of(d tensor.DType, sizes []int, values ...float64) *tensor.Tensor {
	t := tensor.New(d, sizes...)
	tensor.Storer[float64](stored(d))(t.Data, values)
	return t
}

// vec is a rank 1 tensor.
func vec(d tensor.DType, values ...float64) *tensor.Tensor {
	return of(d, []int{len(values)}, values...)
}

// channelsLast lays the elements of t, rank 4, out channels last.
func channelsLast(t *tensor.Tensor) *tensor.Tensor {
	u := tensor.Make(t.DType, t.Sizes, []uint8{0, 2, 3, 1}, tensor.Static)
	u.Bind(tensor.AlignedBytes(t.NBytes()))
	size := t.DType.Size()
	for n := range t.Numel() {
		at, left := 0, n
		for d := t.Rank() - 1; d >= 0; d-- {
			at += left % t.Sizes[d] * u.Strides[d]
			left /= t.Sizes[d]
		}
		copy(u.Data[at*size:(at+1)*size], t.Data[n*size:(n+1)*size])
	}
	return u
}

func out(d tensor.DType, sizes ...int) []any { return []any{tensor.New(d, sizes...)} }

func TestTable(t *testing.T) { kerneltest.Table(t, set) }

func TestQuantize(t *testing.T) {
	const perTensor, ofTensors = "quantized_decomposed::quantize_per_tensor.out", "quantized_decomposed::quantize_per_tensor.Tensor_out"
	const perChannel, perToken = "quantized_decomposed::quantize_per_channel.out", "quantized_decomposed::quantize_per_token.out"
	nan, inf := math.NaN(), math.Inf(1)
	image := of(f32, []int{1, 2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8)
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "half to even, then the zero point", Op: perTensor, Args: []any{vec(f32, 0.5, 1.5, 2.5, -0.5, -1.5), 1.0, 1, -128, 127, i8},
			Want: []any{vec(i8, 1, 3, 3, 1, -1)}},
		{Name: "bounds", Op: perTensor, Args: []any{vec(f32, -1e9, -10, 0, 10, 1e9), 1.0, 3, 0, 9, u8},
			Want: []any{vec(u8, 0, 0, 3, 9, 9)}},
		{Name: "no numbers", Op: perTensor, Args: []any{vec(f32, nan, inf, -inf), 1.0, 3, 1, 9, u8},
			Want: []any{vec(u8, 0, 9, 1)}},
		{Name: "reciprocal of the double scale", Op: perTensor, Args: []any{vec(f32, 0.05, 0.15, 0.25), 0.1, 0, -128, 127, i8},
			Want: []any{vec(i8, 0, 2, 2)}},
		{Name: "16 bits", Op: perTensor, Args: []any{vec(f32, -40000, 0.5, 40000), 1.0, 7, -32768, 32767, i16},
			Want: []any{vec(i16, -32768, 7, 32767)}},
		{Name: "bits16", Op: perTensor, Args: []any{vec(f32, -1, 1e6), 1.0, 0, 0, 65535, tensor.Bits16},
			Want: []any{of(tensor.Bits16, []int{2}, 0, 65535)}},
		{Name: "32 bits", Op: perTensor, Args: []any{vec(f32, -1e10, 1e10, nan, inf, 16777216), 1.0, 0, math.MinInt32, math.MaxInt32, i32},
			Want: []any{vec(i32, math.MinInt32, math.MaxInt32, 0, math.MaxInt32, 16777216)}},
		{Name: "far zero point", Op: perTensor, Args: []any{vec(f32, 0, 100, -1e30), 1.0, int64(math.MinInt32), -128, 127, i8},
			Want: []any{vec(i8, -128, -128, -128)}},
		{Name: "zero point beyond int32", Op: perTensor, Args: []any{vec(f32, 0), 1.0, int64(math.MaxInt64), -128, 127, i8},
			Want: []any{vec(i8, 0)}, Refused: "a zero point of int32"},
		{Name: "zero point just beyond int32", Op: perTensor, Args: []any{vec(f32, 0), 1.0, int64(math.MinInt32) - 1, -128, 127, i8},
			Want: []any{vec(i8, 0)}, Refused: "a zero point of int32"},
		{Name: "scale 0", Op: perTensor, Args: []any{vec(f32, 0, 1, -1), 0.0, 0, -128, 127, i8},
			Want: []any{vec(i8, 0, 127, -128)}},
		{Name: "upper bound below the lower", Op: perTensor, Args: []any{vec(f32, -5, 0, 5), 1.0, 0, 2, -2, i8},
			Want: []any{vec(i8, -2, -2, -2)}},
		{Name: "halves", Op: perTensor, Args: []any{vec(f16, 1.5, -3), 0.5, 0, -128, 127, i8}, Want: []any{vec(i8, 3, -6)}},
		{Name: "doubles", Op: perTensor, Args: []any{vec(f64, 1.5, -3), 0.5, 0, -128, 127, i8}, Want: []any{vec(i8, 3, -6)}},
		{Name: "scale and zero point in tensors", Op: ofTensors, Args: []any{vec(f32, 1, 2), vec(f64, 0.5), of(tensor.Int64, nil, 1), 0, 255, u8},
			Want: []any{vec(u8, 3, 5)}},
		{Name: "channels last", Op: perTensor, Args: []any{channelsLast(image), 1.0, 0, -128, 127, i8},
			Want: []any{channelsLast(of(i8, []int{1, 2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8))}},
		{Name: "per channel, outer axis", Op: perChannel, Args: []any{of(f32, []int{2, 3}, 1, 2, 3, 1, 2, 3), vec(f32, 1, 0.5), vec(tensor.Int64, 0, 10), 0, -128, 127, i8},
			Want: []any{of(i8, []int{2, 3}, 1, 2, 3, 12, 14, 16)}},
		{Name: "per channel, inner axis", Op: perChannel, Args: []any{of(f32, []int{2, 2}, 1, 2, 3, 4), vec(f64, 1, 0.5), vec(i32, 0, 10), -1, -128, 127, i8},
			Want: []any{of(i8, []int{2, 2}, 1, 14, 3, 18)}},
		{Name: "per channel, channels last", Op: perChannel, Args: []any{channelsLast(image), vec(f32, 1, 0.5), vec(tensor.Int64, 0, 10), 1, -128, 127, i8},
			Want: []any{channelsLast(of(i8, []int{1, 2, 2, 2}, 1, 2, 3, 4, 20, 22, 24, 26))}},
		{Name: "per token adds before it rounds", Op: perToken, Args: []any{of(f32, []int{2, 2}, 0.5, 1.5, 0.5, 1.5), of(f32, []int{2, 1}, 1, 1), of(tensor.Int64, []int{2, 1}, 0, 1), -128, 127, i8},
			Want: []any{of(i8, []int{2, 2}, 0, 2, 2, 2)}},
		{Name: "empty", Op: perTensor, Args: []any{tensor.New(f32, 0, 3), 1.0, 0, 0, 255, u8}, Want: []any{tensor.New(u8, 0, 3)}},

		{Name: "input of integers", Op: perTensor, Args: []any{vec(i8, 1), 1.0, 0, 0, 255, u8}, Outs: out(u8, 1), Refused: "got int8"},
		{Name: "out of floats", Op: perTensor, Args: []any{vec(f32, 1), 1.0, 0, 0, 255, f32}, Outs: out(f32, 1), Refused: "got float32"},
		{Name: "other type than the out's", Op: perTensor, Args: []any{vec(f32, 1), 1.0, 0, 0, 255, i8}, Outs: out(u8, 1), Refused: "want the tensor's type, uint8"},
		{Name: "lower bound too low", Op: perTensor, Args: []any{vec(f32, 1), 1.0, 0, -1, 255, u8}, Outs: out(u8, 1), Refused: "argument 3: got -1, want at least 0"},
		{Name: "upper bound too high", Op: perTensor, Args: []any{vec(f32, 1), 1.0, 0, 0, 256, u8}, Outs: out(u8, 1), Refused: "argument 4: got 256, want at most 255"},
		{Name: "another order in memory", Op: perTensor, Args: []any{image, 1.0, 0, 0, 255, u8},
			Outs: []any{channelsLast(tensor.New(u8, 1, 2, 2, 2))}, Refused: "dim order"},
		{Name: "too few scales", Op: perChannel, Args: []any{tensor.New(f32, 2, 3), vec(f32, 1), vec(tensor.Int64, 0, 0), 0, 0, 255, u8}, Outs: out(u8, 2, 3), Refused: "argument 1"},
		{Name: "axis out of range", Op: perChannel, Args: []any{tensor.New(f32, 2, 3), vec(f32, 1), vec(tensor.Int64, 0), 2, 0, 255, u8}, Outs: out(u8, 2, 3), Refused: "argument 3"},
	}...)
}

// TestQuantizeNaN has NaN and infinities at some places of many elements.
func TestQuantizeNaN(t *testing.T) {
	const n = 3000
	x, want := tensor.New(f32, n), tensor.New(i8, n)
	codes := tensor.Data[int8](want)
	for i, v := range tensor.Data[float32](x) {
		v = float32(i%517)/2 - 130
		switch i {
		case 0, 700, 701, 1500, n - 1:
			v = float32(math.NaN())
		case 64, 2000:
			v = float32(math.Inf(1))
		case 2001:
			v = float32(math.Inf(-1))
		}
		if tensor.Data[float32](x)[i] = v; v == v {
			codes[i] = int8(max(-100, min(math.RoundToEven(float64(v)*2)-5, 120)))
		}
	}
	kerneltest.Run(t, set, kerneltest.Case{Name: "NaN", Op: "quantized_decomposed::quantize_per_tensor.out",
		Args: []any{x, 0.5, -5, -100, 120, i8}, Want: []any{want}})
}

func TestDequantize(t *testing.T) {
	const perTensor, ofTensors = "quantized_decomposed::dequantize_per_tensor.out", "quantized_decomposed::dequantize_per_tensor.Tensor_out"
	const perChannel, perToken = "quantized_decomposed::dequantize_per_channel.out", "quantized_decomposed::dequantize_per_token.out"
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "uint8", Op: perTensor, Args: []any{vec(u8, 0, 128, 255), 0.5, 128, 0, 255, u8, nil}, Want: []any{vec(f32, -64, 0, 63.5)}},
		{Name: "int8", Op: perTensor, Args: []any{vec(i8, -128, 0, 127), 0.5, -1, -128, 127, i8, f32}, Want: []any{vec(f32, -63.5, 0.5, 64)}},
		{Name: "int16 to float64", Op: perTensor, Args: []any{vec(i16, -3, 3), 0.1, 0, -32768, 32767, i16, f64}, Want: []any{vec(f64, -3*0.1, 3*0.1)}},
		{Name: "int32 to float16", Op: perTensor, Args: []any{vec(i32, 3), 0.25, 1, -100, 100, i32, f16}, Want: []any{vec(f16, 0.5)}},
		{Name: "uint16", Op: perTensor, Args: []any{vec(tensor.Uint16, 65535), 2.0, 0, 0, 65535, tensor.Uint16, nil}, Want: []any{vec(f32, 131070)}},
		{Name: "scale and zero point in tensors", Op: ofTensors, Args: []any{vec(u8, 3), of(f64, nil, 0.5), of(tensor.Int64, nil, 1), 0, 255, u8, nil}, Want: []any{vec(f32, 1)}},
		{Name: "per channel", Op: perChannel, Args: []any{of(i8, []int{2, 2}, 1, 2, 3, 4), vec(f32, 1, 0.5), vec(i32, 1, 2), 0, -128, 127, i8, nil},
			Want: []any{of(f32, []int{2, 2}, 0, 1, 0.5, 1)}},
		{Name: "per channel, inner axis", Op: perChannel, Args: []any{of(i8, []int{2, 2}, 1, 2, 3, 4), vec(f64, 1, 0.5), vec(tensor.Int64, 1, 2), 1, -128, 127, i8, nil},
			Want: []any{of(f32, []int{2, 2}, 0, 0, 2, 1)}},
		{Name: "no zero points", Op: perChannel, Args: []any{of(i8, []int{2, 2}, 1, 2, 3, 4), vec(f32, 1, 0.5), nil, 0, -128, 127, i8, nil},
			Want: []any{of(f32, []int{2, 2}, 1, 2, 1.5, 2)}},
		{Name: "per token", Op: perToken, Args: []any{of(i8, []int{2, 2}, 1, 2, 3, 4), of(f32, []int{2, 1}, 1, 0.5), of(tensor.Int64, []int{2, 1}, 1, 2), -128, 127, i8, f32},
			Want: []any{of(f32, []int{2, 2}, 0, 1, 0.5, 1)}},

		{Name: "codes of another type", Op: perTensor, Args: []any{vec(u8, 1), 1.0, 0, -128, 127, i8, nil}, Outs: out(f32, 1), Refused: "argument 5"},
		{Name: "another type asked for", Op: perTensor, Args: []any{vec(u8, 1), 1.0, 0, 0, 255, u8, f64}, Outs: out(f32, 1), Refused: "argument 6: got 7, want the out's type, float32"},
		{Name: "two scales for a tensor", Op: ofTensors, Args: []any{vec(u8, 3), vec(f64, 1, 1), vec(tensor.Int64, 1), 0, 255, u8, nil}, Outs: out(f32, 1), Refused: "one element"},
	}...)
}

// long makes a pattern of n elements, so that whole blocks and rests occur.
func long(d tensor.DType, n int) *tensor.Tensor {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(i%200 - 100)
	}
	return of(d, []int{n}, v...)
}

func TestLongTensors(t *testing.T) {
	n := 5*cpu.Grain(1, elementCost) + 7
	codes, floats := long(i8, n), long(f32, n)
	scales, zeros := tensor.New(f32, n), tensor.New(tensor.Int64, n)
	for i := range n {
		tensor.Data[float32](scales)[i] = 1
	}
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "quantize", Op: "quantized_decomposed::quantize_per_tensor.out", Args: []any{floats, 1.0, 0, -128, 127, i8}, Want: []any{codes}},
		{Name: "quantize to 16 bits", Op: "quantized_decomposed::quantize_per_tensor.out", Args: []any{floats, 1.0, 0, -128, 127, i16}, Want: []any{long(i16, n)}},
		{Name: "dequantize", Op: "quantized_decomposed::dequantize_per_tensor.out", Args: []any{codes, 1.0, 0, -128, 127, i8, nil}, Want: []any{floats}},
		{Name: "quantize, a scale each", Op: "quantized_decomposed::quantize_per_channel.out", Args: []any{floats, scales, zeros, 0, -128, 127, i8}, Want: []any{codes}},
		{Name: "dequantize, a scale each", Op: "quantized_decomposed::dequantize_per_channel.out", Args: []any{codes, scales, zeros, 0, -128, 127, i8, nil}, Want: []any{floats}},
		{Name: "parameters", Op: "quantized_decomposed::choose_qparams.Tensor_out", Args: []any{floats, -128, 127, 1e-5, i8},
			Want: []any{vec(f64, float64(float32(199)/255)), vec(tensor.Int64, 0)}},
		{Name: "add", Op: "quantized_decomposed::add.out", Args: []any{codes, 1.0, 0, -128, 127, codes, 1.0, 0, -128, 127, 2.0, 0, -128, 127}, Want: []any{codes}},
	}...)
}

func TestChooseQParams(t *testing.T) {
	const whole, rows = "quantized_decomposed::choose_qparams.Tensor_out", "quantized_decomposed::choose_qparams_per_token_asymmetric.out"
	i64 := tensor.Int64
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "both signs", Op: whole, Args: []any{vec(f32, -1, 0.5, 3), 0, 255, 1e-7, u8}, Want: []any{vec(f64, float64(float32(4)/255)), vec(i64, 64)}},
		{Name: "positive only", Op: whole, Args: []any{vec(f32, 2.55, 1), -128, 127, 1e-7, i8}, Want: []any{vec(f64, float64(float32(2.55)/255)), vec(i64, -128)}},
		{Name: "zeros", Op: whole, Args: []any{vec(f32, 0, 0), 0, 255, 0.25, u8}, Want: []any{vec(f64, 0.25), vec(i64, 0)}},
		{Name: "infinite", Op: whole, Args: []any{vec(f32, math.Inf(1), 0), 0, 255, 0.25, u8}, Want: []any{vec(f64, math.Inf(1)), vec(i64, 0)}},
		{Name: "rows", Op: rows, Args: []any{of(f32, []int{3, 2}, -1, 1, 0, 0, 0, 2.55), i8},
			Want: []any{of(f64, []int{3, 1}, float64(float32(2)/255), 0x1p-23, float64(float32(2.55)/255)), of(i64, []int{3, 1}, 0, 127, -128)}},
		{Name: "a NaN", Op: whole, Args: []any{vec(f32, 1, math.NaN()), 0, 255, 1e-7, u8}, Outs: []any{tensor.New(f64, 1), tensor.New(i64, 1)}, Refused: "got a NaN"},
		{Name: "no elements", Op: whole, Args: []any{tensor.New(f32, 0), 0, 255, 1e-7, u8}, Outs: []any{tensor.New(f64, 1), tensor.New(i64, 1)}, Refused: "at least one element"},
		{Name: "no range", Op: whole, Args: []any{vec(f32, 1), 255, 0, 1e-7, u8}, Outs: []any{tensor.New(f64, 1), tensor.New(i64, 1)}, Refused: "quant_min < quant_max"},
	}...)
}

func TestEmbedding(t *testing.T) {
	name := func(s string) string { return "quantized_decomposed::embedding_" + s }
	i64 := tensor.Int64
	bytes := of(i8, []int{2, 4}, 1, 2, 3, 4, -1, -2, -3, -4)
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "bytes", Op: name("byte.out"), Args: []any{bytes, vec(f32, 1, 0.5), nil, -128, 127, of(i64, []int{2, 1}, 1, 0)},
			Want: []any{of(f32, []int{2, 1, 4}, -0.5, -1, -1.5, -2, 1, 2, 3, 4)}},
		{Name: "groups and zero points", Op: name("byte.out"), Args: []any{bytes, of(f32, []int{2, 2}, 1, 2, 3, 4), of(f32, []int{2, 2}, 1, 1, 0, 0), -128, 127, vec(i32, 0, 1)},
			Want: []any{of(f32, []int{2, 4}, 0, 1, 4, 6, -3, -6, -12, -16)}},
		{Name: "half scales round", Op: name("byte.dtype_out"), Args: []any{of(i8, []int{1, 1}, 3), vec(f16, 0.333251953125), nil, -128, 127, vec(i64, 0), f32},
			Want: []any{of(f32, []int{1, 1}, 1)}}, // 0.999755859375 is between two half floats
		{Name: "4 bits", Op: name("4bit.out"), Args: []any{of(u8, []int{1, 2}, 0x0f, 0x98), vec(f32, 2), nil, -8, 7, vec(i64, 0)},
			Want: []any{of(f32, []int{1, 4}, -16, 14, 2, 0)}},
		{Name: "4 bits to half", Op: name("4bit.dtype_out"), Args: []any{of(u8, []int{1, 2}, 0x0f, 0x98), vec(f32, 2), nil, -8, 7, vec(i64, 0), f16},
			Want: []any{of(f16, []int{1, 4}, -16, 14, 2, 0)}},
		{Name: "2 bits", Op: name("2bit.out"), Args: []any{of(u8, []int{1, 1}, 0b11_10_01_00), vec(f32, 2), nil, -2, 1, vec(i64, 0)},
			Want: []any{of(f32, []int{1, 4}, -4, -2, 0, 2)}},
		{Name: "2 bits to bfloat16", Op: name("2bit.dtype_out"), Args: []any{of(u8, []int{1, 1}, 0b11_10_01_00), vec(f32, 2), nil, -2, 1, vec(i64, 0), bf16},
			Want: []any{of(bf16, []int{1, 4}, -4, -2, 0, 2)}},
		{Name: "index below", Op: name("byte.out"), Args: []any{bytes, vec(f32, 1, 1), nil, -128, 127, vec(i64, -1)}, Outs: out(f32, 1, 4), Refused: "got -1, want indices in [0, 2)"},
		{Name: "index above", Op: name("byte.out"), Args: []any{bytes, vec(f32, 1, 1), nil, -128, 127, vec(i64, 2)}, Outs: out(f32, 1, 4), Refused: "got 2"},
		{Name: "groups that do not divide", Op: name("byte.out"), Args: []any{bytes, tensor.New(f32, 2, 3), nil, -128, 127, vec(i64, 0)}, Outs: out(f32, 1, 4), Refused: "groups that divide 4"},
		{Name: "signed packed weights", Op: name("4bit.out"), Args: []any{bytes, vec(f32, 1, 1), nil, -8, 7, vec(i64, 0)}, Outs: out(f32, 1, 8), Refused: "argument 0"},
	}...)
}

func TestMixedProducts(t *testing.T) {
	const mm, linear = "quantized_decomposed::mixed_mm.out", "quantized_decomposed::mixed_linear.out"
	x := of(f32, []int{2, 3}, 1, 2, 3, 4, 5, 6)
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "mm", Op: mm, Args: []any{x, of(i8, []int{3, 2}, 1, -1, 2, -2, 3, -3), vec(f32, 1, 2, 0.5), nil},
			Want: []any{of(f32, []int{2, 2}, 13.5, -13.5, 33, -33)}},
		{Name: "linear", Op: linear, Args: []any{x, of(i8, []int{2, 3}, 1, 2, 3, -1, -2, -3), vec(f32, 1, 0.5), nil, nil},
			Want: []any{of(f32, []int{2, 2}, 14, -7, 32, -16)}},
		{Name: "linear in groups", Op: linear, Args: []any{x, of(i8, []int{1, 3}, 1, 2, 3), of(f32, []int{1, 2}, 1, 2), nil, nil},
			Want: []any{of(f32, []int{2, 1}, 23, 50)}},
		{Name: "half to float", Op: linear, Args: []any{of(f16, []int{1, 2}, 1, 2), of(i8, []int{1, 2}, 3, 4), vec(f16, 0.5), nil, f32},
			Want: []any{of(f32, []int{1, 1}, 5.5)}},
		{Name: "zero points", Op: mm, Args: []any{x, tensor.New(i8, 3, 2), vec(f32, 1, 2, 0.5), vec(f32, 0, 0, 0)}, Outs: out(f32, 2, 2), Refused: "zero points"},
		{Name: "inner sizes", Op: mm, Args: []any{x, tensor.New(i8, 2, 2), vec(f32, 1, 2), nil}, Outs: out(f32, 2, 2), Refused: "with 3 in dimension 0"},
	}...)
}

func TestAdd(t *testing.T) {
	const name = "quantized_decomposed::add.out"
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "uint8", Op: name, Args: []any{vec(u8, 0, 10, 255), 0.5, 0, 0, 255, vec(u8, 0, 10, 255), 1.0, 10, 0, 255, 1.0, 5, 0, 255},
			Want: []any{vec(u8, 0, 10, 255)}},
		{Name: "int8", Op: name, Args: []any{vec(i8, -128, 1), 1.0, 0, -128, 127, vec(i8, -128, 2), 1.0, 0, -128, 127, 1.0, 0, -128, 127},
			Want: []any{vec(i8, -128, 3)}},
		{Name: "bounds of another type", Op: name, Args: []any{vec(i8, 1), 1.0, 0, 0, 255, vec(i8, 1), 1.0, 0, -128, 127, 1.0, 0, -128, 127}, Outs: out(i8, 1), Refused: "argument 3"},
		{Name: "sizes", Op: name, Args: []any{vec(u8, 1, 2), 1.0, 0, 0, 255, vec(u8, 1), 1.0, 0, 0, 255, 1.0, 0, 0, 255}, Outs: out(u8, 2), Refused: "argument 5"},
	}...)
}

func TestNoAllocs(t *testing.T) {
	n := 4 * cpu.Grain(1, elementCost)
	x, q := long(f32, n), long(i8, n)
	ones := tensor.New(tensor.Int64, 64)
	kerneltest.NoAllocs(t, set, []kerneltest.Case{
		{Name: "quantize", Op: "quantized_decomposed::quantize_per_tensor.out", Args: []any{x, 0.5, 0, -128, 127, i8}, Want: []any{q}},
		{Name: "quantize per channel", Op: "quantized_decomposed::quantize_per_channel.out", Args: []any{x, x, long(tensor.Int64, n), 0, -128, 127, i8}, Want: []any{q}},
		{Name: "dequantize", Op: "quantized_decomposed::dequantize_per_tensor.out", Args: []any{q, 0.5, 0, -128, 127, i8, nil}, Want: []any{x}},
		{Name: "parameters", Op: "quantized_decomposed::choose_qparams.Tensor_out", Args: []any{x, -128, 127, 1e-5, i8}, Want: []any{vec(f64, 0), vec(tensor.Int64, 0)}},
		{Name: "parameters per token", Op: "quantized_decomposed::choose_qparams_per_token_asymmetric.out", Args: []any{of(f32, []int{2, 2}, 1, 2, 3, 4), i8},
			Want: []any{tensor.New(f64, 2, 1), tensor.New(tensor.Int64, 2, 1)}},
		{Name: "embedding", Op: "quantized_decomposed::embedding_4bit.out", Args: []any{tensor.New(u8, 8, 512), vec(f32, 1, 1, 1, 1, 1, 1, 1, 1), nil, -8, 7, ones},
			Want: []any{tensor.New(f32, 64, 1024)}},
		{Name: "mm", Op: "quantized_decomposed::mixed_mm.out", Args: []any{tensor.New(f32, 4, 256), tensor.New(i8, 256, 64), tensor.New(f32, 256), nil}, Want: []any{tensor.New(f32, 4, 64)}},
		{Name: "linear", Op: "quantized_decomposed::mixed_linear.out", Args: []any{tensor.New(f32, 4, 256), tensor.New(i8, 64, 256), tensor.New(f32, 64), nil, nil}, Want: []any{tensor.New(f32, 4, 64)}},
		{Name: "add", Op: "quantized_decomposed::add.out", Args: []any{q, 1.0, 0, -128, 127, q, 1.0, 0, -128, 127, 2.0, 0, -128, 127}, Want: []any{q}},
	}...)
}

func TestCalls(t *testing.T) { kerneltest.Calls(t, set) }

func TestRandomCalls(t *testing.T) { kerneltest.Random(t, set, 500) }

func FuzzOps(f *testing.F) { kerneltest.Fuzz(f, set) }
