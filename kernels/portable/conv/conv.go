// Package conv (no compatibility promise) implements the ATen convolutions: forward, transposed and backward, over
// one to three spatial dimensions.
package conv

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Ops returns the operators of the package.
func Ops() []kernels.Op {
	forward := operand.Typed(argInput, "an integer or floating type", convolution[float32], convolution[float64], convolution[int64])
	return []kernels.Op{
		{Schema: "aten::convolution.out(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, " +
			"SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, *, Tensor(a!) out)",
			Func: operand.SameType(forward, argInput, argWeight, argOut), Class: opclass.Convolution, Flow: opclass.Samples, DTypes: "integers, float16, bfloat16, float32, float64", Family: kernels.Sum,
			Note: "1 to 3 spatial dimensions; integers wrap"},
		{Schema: "aten::convolution_backward.out(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, " +
			"SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, " +
			"bool[3] output_mask, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2)",
			Func: backward, DTypes: "float16, bfloat16, float32, float64", Family: kernels.Sum},
	}
}

// Arguments of convolution.out.
const (
	argInput, argWeight, argBias = 0, 1, 2
	argStride, argOut            = 3, 9
)

func convolution[T tensor.Compute](c *kernels.Ctx, a kernels.Args) error {
	x, w, bias, out := a.Tensor(argInput), a.Tensor(argWeight), a.OptTensor(argBias), a.Tensor(argOut)
	p := kernels.Keep[pass[T]](c)
	s := &p.shape
	if err := s.parse(a, x, w, argInput, argStride); err != nil {
		return err
	}
	if bias != nil && (bias.Rank() != 1 || bias.Sizes[0] != s.outChannels || tensor.Loader[T](bias.DType) == nil) {
		return kernels.Badf(argBias, "one element for each output channel", "%v for %d channels", bias, s.outChannels)
	}
	var sizes [5]int
	if err := kernels.ResizeOut(a, argOut, s.outSizes(&sizes, x.Rank())); err != nil {
		return err
	}
	if out.Numel() == 0 {
		return nil
	}
	p.w, p.weight, p.bias = operand.CachedIn(c, &p.cachedWeights, w), w, operand.CachedIn(c, &p.cachedBias, bias)
	if q, ok := any(p).(*pass[float32]); ok && s.lastDepthwise() && channelsLast(x, out) {
		q.runLast(c, tensor.Data[float32](out), tensor.Data[float32](x))
		return nil
	}
	p.x = operand.In[T](c, x)
	y := operand.Out[T](c, out)
	p.y = y
	p.run(c)
	operand.Store(c, out, y)
	return nil
}

// run computes y. It has at least one element.
func (p *pass[T]) run(c *kernels.Ctx) {
	p.c, p.mul = c, simd.MulAddToOf[T]()
	switch {
	case p.transposed:
		p.runTransposed(c)
	case p.runCopied(c):
	case p.planTiles():
		p.runDepthwise(c)
	default:
		p.runForward(c)
	}
	p.x, p.w, p.bias, p.y, p.scratch = nil, nil, nil, nil, nil
}
