// Package cortexm (no compatibility promise) contains the operators of ExecuTorch's Cortex-M
// backend, the cortex_m namespace. They compute the same bytes as CMSIS-NN's kernels on the device.
// Arm's script for Ethos-U programs uses the first two of them at the borders of its delegates.
//
// Integers are int32 and wrap as CMSIS-NN's do. Sums of products are scaled by
//
//	p = sum << max(shift, 0)                            wraps
//	h = (p · multiplier + 2^30) >> 31                   of 64 bits
//	r = h / 2^max(-shift, 0), rounded half away from 0
//
// and r plus the output's zero point is clamped. Multipliers may be any int32; shifts must be in
// [-31, 31].
//
// Operators use the sizes and dim order of a tensor, while the device's kernels assume an order.
// Two results therefore differ from the device's, which are wrong: minimum and maximum of tensors
// with different dim orders, and transposed convolutions with padding. Scratch tensors are for the
// device: they must contain bytes, any number of them, and are neither read nor written.
package cortexm

import "github.com/etrun-go/etrun/kernels"

// Ops returns the package's operators.
func Ops() []kernels.Op { return ops }

const convTypes = "int8; bias, multipliers, shifts int32"

// firstArg is quantized by the following scale and zero point.
var firstArg = []kernels.Quant{{Tensor: 0, Scale: 1, ZeroPoint: 2}}

var ops = kernels.Pure([]kernels.Op{
	{
		Schema: "cortex_m::quantize_per_tensor.out(Tensor input, float scale, int zero_point, int quant_min, int quant_max, " +
			"ScalarType dtype, *, Tensor(a!) out)",
		Func: quantizePerTensor, DTypes: "float32 → int8, int16", Family: kernels.Exact, Quants: firstArg,
		Note: "multiplies by the float32 reciprocal of the float32 scale, rounds half to even, adds the zero point; a NaN becomes 0",
	},
	{
		Schema: "cortex_m::dequantize_per_tensor.out(Tensor input, float scale, int zero_point, int quant_min, int quant_max, " +
			"ScalarType dtype, *, Tensor(a!) out)",
		Func: dequantizePerTensor, DTypes: "int8, int16 → float32", Family: kernels.Exact, Quants: firstArg,
	},
	{
		Schema: "cortex_m::quantized_add.out(Tensor self, int self_zero_point, int self_multiplier, int self_shift, Tensor other, " +
			"int other_zero_point, int other_multiplier, int other_shift, int output_zero_point, int output_multiplier, " +
			"int output_shift, int activation_min, int activation_max, *, Tensor(a!) out)",
		Func: quantizedAdd, DTypes: "int8", Family: kernels.Exact, Note: "operands of the same sizes, or [N, C, H, W] and [1, C, 1, 1]",
	},
	{
		Schema: "cortex_m::quantized_mul.out(Tensor self, int self_zero_point, Tensor other, int other_zero_point, " +
			"int output_zero_point, int output_multiplier, int output_shift, *, Tensor(a!) out)",
		Func: quantizedMul, DTypes: "int8", Family: kernels.Exact, Note: "operands of the same sizes, or [N, C, H, W] and [1, C, 1, 1]",
	},
	{
		Schema: "cortex_m::quantized_div.out(Tensor self, int self_zero_point, Tensor other, int other_zero_point, " +
			"int output_zero_point, float output_scale, *, Tensor(a!) out)",
		Func: quantizedDiv, DTypes: "int8, int16", Family: kernels.Exact,
		Note: "in float32, rounded half away from 0; a division by 0 gives 0",
	},
	{
		Schema: "cortex_m::quantized_activation.out(Tensor input, Tensor lut, *, Tensor(a!) out)",
		Func:   quantizedActivation, DTypes: "int8", Family: kernels.Exact,
	},
	{
		Schema: "cortex_m::minimum.out(Tensor self, Tensor other, *, Tensor(a!) out)",
		Func:   minimum, DTypes: "int8", Family: kernels.Exact,
		Note: "by sizes, not by bytes: right for unlike dim orders, where the device is wrong",
	},
	{
		Schema: "cortex_m::maximum.out(Tensor self, Tensor other, *, Tensor(a!) out)",
		Func:   maximum, DTypes: "int8", Family: kernels.Exact, Note: "as minimum",
	},
	{
		Schema: "cortex_m::quantized_linear.out(Tensor input, Tensor weights, Tensor? bias, Tensor? kernel_sum, int input_offset, " +
			"int filter_offset, int output_offset, int[] requantize_multipliers, int[] requantize_shifts, int activation_max, " +
			"int activation_min, *, Tensor(a!) out)",
		Func: quantizedLinear, DTypes: "int8; bias, kernel_sum int32", Family: kernels.Exact,
		Note: "kernel sums hold the input's offset and the bias, and win over a bias; one scale",
	},
	{
		Schema: "cortex_m::softmax.out(Tensor input, int dim, int input_zero_point, int output_zero_point, int input_multiplier, " +
			"int input_shift, int diff_min, *, Tensor(a!) out)",
		Func: softmax, DTypes: "int8", Family: kernels.Exact, Note: "of the last dimension; fixed point; zero point -128 and scale 1/256",
	},
	{
		Schema: "cortex_m::transpose.out(Tensor input, int[] perm, *, Tensor(a!) out)",
		Func:   transpose, Moves: true, DTypes: "int8", Family: kernels.Exact,
	},
	{
		Schema: "cortex_m::pad.out(Tensor input, int[] pre_pad, int[] post_pad, int pad_value, *, Tensor(a!) out)",
		Func:   pad, Moves: true, DTypes: "int8", Family: kernels.Exact, Note: "rank 1 to 4; paddings of an image with channels last come as N, H, W, C",
	},
	{
		Schema: "cortex_m::quantized_conv2d.out(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, " +
			"int input_offset, int output_offset, Tensor requantize_multipliers, Tensor requantize_shifts, int activation_min, " +
			"int activation_max, Tensor scratch, *, Tensor(a!) out)",
		Func: conv2d, DTypes: convTypes, Family: kernels.Exact, Note: "weights [out, height, width, in / groups]",
	},
	{
		Schema: "cortex_m::quantized_depthwise_conv2d.out(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, " +
			"int[] dilation, int depth_multiplier, int input_offset, int output_offset, Tensor requantize_multipliers, " +
			"Tensor requantize_shifts, int activation_min, int activation_max, Tensor scratch, *, Tensor(a!) out)",
		Func: depthwiseConv2d, DTypes: convTypes, Family: kernels.Exact, Note: "weights [1, height, width, out]; any batch",
	},
	{
		Schema: "cortex_m::quantized_transpose_conv2d.out(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, " +
			"int[] output_padding, int[] dilation, int input_offset, int output_offset, Tensor requantize_multipliers, " +
			"Tensor requantize_shifts, int activation_min, int activation_max, Tensor scratch, Tensor output_scratch, *, Tensor(a!) out)",
		Func: transposeConv2d, DTypes: convTypes, Family: kernels.Exact,
		Note: "weights [out, height, width, in / groups]; right with padding, where the device is wrong",
	},
	{
		Schema: "cortex_m::quantized_avg_pool2d.out(Tensor input, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, " +
			"int zero_point, int multiplier, int shift, Tensor scratch, *, Tensor(a!) out)",
		Func: avgPool, DTypes: "int8", Family: kernels.Exact, Note: "the mean of codes inside the input, rounded half away from 0",
	},
	{
		Schema: "cortex_m::quantized_max_pool2d.out(Tensor input, int[] kernel_size, int[] stride, int[] padding, int[] dilation, " +
			"bool ceil_mode, int input_zero_point, int output_zero_point, int activation_min, int activation_max, *, Tensor(a!) out)",
		Func: maxPool, DTypes: "int8", Family: kernels.Exact, Note: "dilation 1, no ceil mode, equal zero points",
	},
	{
		Schema: "cortex_m::quantized_batch_matmul.out(Tensor lhs, int lhs_zero_point, Tensor rhs_transposed, int rhs_zero_point, " +
			"int output_zero_point, int output_multiplier, int output_shift, Tensor scratch, *, Tensor(a!) out)",
		Func: batchMatmul, DTypes: "int8", Family: kernels.Exact, Note: "the operands' zero points come negated",
	},
})
