package callstest

import "github.com/etrun-go/etrun/kernels/tensor"

// The operators of quantization.
const (
	quantizeOp         = "quantized_decomposed::quantize_per_tensor.out"
	dequantizeOp       = "quantized_decomposed::dequantize_per_tensor.out"
	ChooseOp           = "quantized_decomposed::choose_qparams.Tensor_out"
	QuantizeChosenOp   = "quantized_decomposed::quantize_per_tensor.Tensor_out"
	DequantizeChosenOp = "quantized_decomposed::dequantize_per_tensor.Tensor_out"
)

// Quantize adds a call that quantizes a tensor to int8.
func (c *Calls) Quantize(x Val, scale float64, zero int) Val {
	return c.Call(quantizeOp, []Out{{Rank: len(c.Graph.Values[x].Sizes), Order: c.Graph.Values[x].DimOrder, DType: tensor.Int8}},
		x, scale, zero, -128, 127, int(tensor.Int8))[0]
}

// Dequantize adds a call that dequantizes a tensor of int8.
func (c *Calls) Dequantize(x Val, scale float64, zero int) Val {
	return c.Call(dequantizeOp, []Out{{Rank: len(c.Graph.Values[x].Sizes), Order: c.Graph.Values[x].DimOrder}},
		x, scale, zero, -128, 127, int(tensor.Int8), nil)[0]
}

// Rounded adds both.
func (c *Calls) Rounded(x Val, scale float64, zero int) Val {
	return c.Dequantize(c.Quantize(x, scale, zero), scale, zero)
}

// Weights adds a float constant whose elements are multiples of per-channel scales along the first
// dimension.
func (c *Calls) Weights(sizes ...int) Val {
	t := c.Random(nil, sizes...)
	list := tensor.View[float32](t.Data)
	inner := len(list) / sizes[0]
	for i := range list {
		list[i] = float32(c.Rand.IntN(255)-127) * (0.003 + 0.0007*float32(i/inner))
	}
	return c.ConstantOf(t)
}

// Int8Weights adds int8 weights and the call that dequantizes them.
func (c *Calls) Int8Weights(axis int, sizes ...int) Val {
	t := tensor.New(tensor.Int8, sizes...)
	for i := range t.Data {
		t.Data[i] = byte(c.Rand.IntN(255) - 127)
	}
	scales := c.Random(nil, sizes[axis])
	for i := range tensor.View[float32](scales.Data) {
		tensor.View[float32](scales.Data)[i] = 0.003 + 0.0007*float32(i)
	}
	zeros := c.ConstantOf(tensor.New(tensor.Int64, sizes[axis]))
	return c.Do("quantized_decomposed::dequantize_per_channel.out", len(sizes), c.ConstantOf(t), c.ConstantOf(scales), zeros, axis,
		-127, 127, int(tensor.Int8), nil)
}
