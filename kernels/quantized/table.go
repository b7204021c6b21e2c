// Package quantized (no compatibility promise) contains the operators of the quantized_decomposed
// namespace, which quantize and dequantize in programs whose regions were not lowered to a backend.
//
// A quantized value q represents (q - zero point) · scale. Where PyTorch and ExecuTorch's C++
// kernels differ in the last step, the functions follow PyTorch and say so.
package quantized

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
)

// Ops returns the package's operators.
func Ops() []kernels.Op { return ops }

const (
	floatTypes = "float32, float16, bfloat16"
	codeTypes  = "uint8, int8, int16, int32, uint16, bits16"
)

// firstArg is quantized by the following scale and zero point.
var firstArg = []kernels.Quant{{Tensor: 0, Scale: 1, ZeroPoint: 2}}

var ops = kernels.Pure([]kernels.Op{
	{
		Schema: "quantized_decomposed::quantize_per_tensor.out(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, *, Tensor(a!) out)",
		Func:   quantizePerTensor, Class: opclass.Quantize, Flow: opclass.Elements, DTypes: floatTypes + ", float64 → " + codeTypes, Family: kernels.Exact, Quants: firstArg,
		Note: "multiplies by the reciprocal of the scale, rounds half to even, adds the zero point; a NaN becomes 0",
	},
	{
		Schema: "quantized_decomposed::quantize_per_tensor.Tensor_out(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype, *, Tensor(a!) out)",
		Func:   quantizeBy(ofTensor[float32], 6, false), Class: opclass.QuantizeDynamic, Flow: opclass.Elements, DTypes: floatTypes + ", float64 → " + codeTypes, Family: kernels.Exact,
	},
	{
		Schema: "quantized_decomposed::quantize_per_channel.out(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max, ScalarType dtype, *, Tensor(a!) out)",
		Func:   byType(1, quantizeBy(ofChannels[float32], 7, false), quantizeBy(ofChannels[float64], 7, false)), Flow: opclass.Along, DTypes: floatTypes + ", float64 → " + codeTypes, Family: kernels.Exact,
		Note: "computes in the type of the scales, float32 or float64",
	},
	{
		Schema: "quantized_decomposed::quantize_per_token.out(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, *, Tensor(a!) out)",
		Func:   byType(1, quantizeBy(ofTokens[float32], 6, true), quantizeBy(ofTokens[float64], 6, true)), Flow: opclass.Pairs, DTypes: floatTypes + ", float64 → " + codeTypes, Family: kernels.Exact,
		Note: "adds the zero point before it rounds; computes in the type of the scales",
	},
	{
		Schema: "quantized_decomposed::dequantize_per_tensor.out(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None, Tensor(a!) out)",
		Func:   byType(7, dequantizePerTensor[float32], dequantizePerTensor[float64]), Class: opclass.Dequantize, Flow: opclass.Elements, DTypes: codeTypes + " → " + floatTypes + ", float64", Family: kernels.Arith, Quants: firstArg,
	},
	{
		Schema: "quantized_decomposed::dequantize_per_tensor.Tensor_out(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None, Tensor(a!) out)",
		Func:   byType(7, dequantizeBy(ofTensor[float32], 5), dequantizeBy(ofTensor[float64], 5)), Class: opclass.DequantizeDynamic, Flow: opclass.Elements, DTypes: codeTypes + " → " + floatTypes + ", float64", Family: kernels.Arith,
	},
	{
		Schema: "quantized_decomposed::dequantize_per_channel.out(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None, Tensor(a!) out)",
		Func:   byType(1, dequantizeBy(ofChannels[float32], 6), dequantizeBy(ofChannels[float64], 6)), Class: opclass.DequantizePerChannel, Flow: opclass.Along, DTypes: codeTypes + " → " + floatTypes + ", float64", Family: kernels.Arith,
	},
	{
		Schema: "quantized_decomposed::dequantize_per_token.out(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, ScalarType output_dtype, *, Tensor(a!) out)",
		Func:   byType(1, dequantizeBy(ofTokens[float32], 5), dequantizeBy(ofTokens[float64], 5)), Flow: opclass.Pairs, DTypes: codeTypes + " → " + floatTypes + ", float64", Family: kernels.Arith,
	},
	{
		Schema: "quantized_decomposed::choose_qparams.Tensor_out(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype, *, Tensor(a!) scale_out, Tensor(b!) zero_point_out)",
		Func:   chooseQParams, Class: opclass.ChooseQParams, DTypes: floatTypes + " → float64, int64", Family: kernels.Loose,
		Note: "the scale is at least eps, as in PyTorch",
	},
	{
		Schema: "quantized_decomposed::choose_qparams_per_token_asymmetric.out(Tensor input, ScalarType dtype, *, Tensor(a!) scale_out, Tensor(b!) zero_point_out)",
		Func:   chooseQParamsPerToken, Flow: opclass.Inner1, DTypes: "float32 → float64, int64", Family: kernels.Loose,
	},
	embedding("embedding_byte.out", "", embed(8, 6)),
	embedding("embedding_byte.dtype_out", ", *, ScalarType? dtype=None", embed(8, 7)),
	embedding("embedding_4bit.out", "", embed(4, 6)),
	embedding("embedding_4bit.dtype_out", ", ScalarType? dtype=None", embed(4, 7)),
	embedding("embedding_2bit.out", "", embed(2, 6)),
	embedding("embedding_2bit.dtype_out", ", ScalarType? dtype=None", embed(2, 7)),
	{
		Schema: "quantized_decomposed::mixed_mm.out(Tensor input, Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, *, Tensor(a!) out)",
		Func:   mixedMM, Flow: opclass.Product, DTypes: "float32, float16; weight int8", Family: kernels.Sum, Note: "no zero points",
	},
	{
		Schema: "quantized_decomposed::mixed_linear.out(Tensor input, Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, ScalarType? dtype=None, *, Tensor(a!) out)",
		Func:   mixedLinear, Flow: opclass.Product, DTypes: "float32, float16; weight int8", Family: kernels.Sum, Note: "no zero points",
	},
	{
		Schema: "quantized_decomposed::add.out(Tensor a, float a_scale, int a_zero_point, int a_quant_min, int a_quant_max, Tensor b, float b_scale, int b_zero_point, int b_quant_min, int b_quant_max, float out_scale, int out_zero_point, int out_quant_min, int out_quant_max, *, Tensor(a!) out)",
		Func:   add, Flow: opclass.Elements, DTypes: "uint8, int8, int16, int32", Family: kernels.Exact, Note: "operands of the same sizes",
		Quants: []kernels.Quant{{Tensor: 0, Scale: 1, ZeroPoint: 2}, {Tensor: 5, Scale: 6, ZeroPoint: 7}},
	},
})

// embedding returns the table entry of an embedding; they differ in the width of weights and the
// dtype argument.
func embedding(name, dtype string, f kernels.Func) kernels.Op {
	if dtype == "" || dtype[2] != '*' {
		dtype += ", *"
	}
	return kernels.Op{
		Schema: "quantized_decomposed::" + name + "(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, int weight_quant_max, Tensor indices" + dtype + ", Tensor(a!) out)",
		Func:   f, Flow: opclass.Lookup, Indexes: []kernels.Index{{Tensor: 0, At: 5, Dim: -1}}, DTypes: "weight uint8, or int8 of embedding_byte; scales " + floatTypes + " → " + floatTypes,
		Family: kernels.Arith, Note: "computes in the type of the scales; an index outside the weight is an error",
	}
}
