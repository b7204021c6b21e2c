// Package cortexm holds the operators of ExecuTorch's Cortex-M backend, the cortex_m
// namespace, with the numbers of CMSIS-NN's kernels: the same bytes as on the device,
// on any machine. Arm's script for Ethos-U programs writes the first two of them at
// the borders of its delegates.
//
// Integers are int32 and wrap where CMSIS-NN's do. Sums of products are scaled by
//
//	p = sum << max(shift, 0)                            wraps
//	h = (p · multiplier + 2^30) >> 31                   of 64 bits
//	r = h / 2^max(-shift, 0), rounded half away from 0
//
// and r plus the output's zero point is clamped. Multipliers are any int32, shifts lie
// within [-31, 31], or the call is refused.
//
// A tensor is what its sizes and its dim order say, where the device's kernels read
// bytes in the order that they expect. So two results differ from the device's, whose
// are wrong there: minimum and maximum of tensors of unlike dim orders, and transposed
// convolutions with padding. Scratch tensors are the device's: they must hold bytes,
// of any number, and are neither read nor written.
package cortexm

import "github.com/etrun-go/etrun/kernels"

// Ops is the table of this package's operators.
func Ops() []kernels.Op { return ops }

// firstArg is quantised by a scale and a zero point that follow it.
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
})
