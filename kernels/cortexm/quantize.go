package cortexm

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/quantized"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// quantizePerTensor is cortex_m::quantize_per_tensor.out:
//
//	out = clamp(round(input · (1/scale)) + zero_point, quant_min, quant_max)
//
// in float32, rounded half to even. Unlike the operator of quantized_decomposed, it uses the
// reciprocal of the float32 scale. As there, an infinity is clamped and a NaN becomes 0, which are
// undefined in C.
func quantizePerTensor(c *kernels.Ctx, a kernels.Args) error {
	if err := kernels.WantDType(0, a.Tensor(0), tensor.Float32); err != nil {
		return err
	}
	if err := checkQuantized(a, 6); err != nil {
		return err
	}
	return quantized.QuantizePerTensor(c, a, 1/float32(a.Float(1)))
}

// dequantizePerTensor is cortex_m::dequantize_per_tensor.out:
//
//	out = (input - zero_point) · scale
//
// in float32.
func dequantizePerTensor(c *kernels.Ctx, a kernels.Args) error {
	if err := checkQuantized(a, 0); err != nil {
		return err
	}
	return quantized.DequantizePerTensor(c, a)
}

// checkQuantized checks that tensor argument i has one of the device's quantized types, and the zero
// point.
func checkQuantized(a kernels.Args, i int) error {
	t := a.Tensor(i)
	if err := kernels.WantDType(i, t, tensor.Int8, tensor.Int16); err != nil {
		return err
	}
	const limit = 1 << 24 // up to which float32 represents all integers
	r := reader{Args: a}
	r.within(2, -limit, limit)
	return r.err
}
