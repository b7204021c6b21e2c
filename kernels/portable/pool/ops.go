package pool

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
)

// Ops returns the operators of the package.
func Ops() []kernels.Op { return slices.Concat(lineOps, ops(2), ops(3), columnOps) }

// ops returns the operators over dims spatial dimensions.
func ops(dims int) []kernels.Op {
	const float = "float16, bfloat16, float32, float64"
	list := fmt.Sprintf("int[%d]", dims)
	window := opclass.Inner0 + opclass.Flow(dims)
	name := func(format string) string { return fmt.Sprintf(format, dims) }
	planar := func(c opclass.Class) opclass.Class { // passes know those of images
		if dims != 2 {
			return opclass.None
		}
		return c
	}
	return []kernels.Op{
		{Schema: name("aten::max_pool%dd_with_indices.out(Tensor self, ") + list + " kernel_size, " +
			list + " stride=[], " + list + " padding=0, " + list + " dilation=1, bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices)",
			Func: maxPool(dims), Class: planar(opclass.MaxPool2d), Flow: window, DTypes: "integers, " + float, Family: kernels.Exact, Note: "NaN wins, as in PyTorch"},
		{Schema: name("aten::max_pool%dd_with_indices_backward.grad_input(Tensor grad_output, Tensor self, ") + list + " kernel_size, " + list +
			" stride, " + list + " padding, " + list + " dilation, bool ceil_mode, Tensor indices, *, Tensor(a!) grad_input)",
			Func: maxPoolBackward(dims), DTypes: float, Family: kernels.Sum},
		{Schema: name("aten::avg_pool%dd.out(Tensor self, ") + list + " kernel_size, " + list + " stride=[], " + list + " padding=0, " +
			"bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None, *, Tensor(a!) out)",
			Func: avgPool(dims), Class: planar(opclass.AvgPool2d), Flow: window, DTypes: meanTypes, Family: kernels.Sum},
		{Schema: name("aten::_adaptive_avg_pool%dd.out(Tensor self, SymInt") + fmt.Sprintf("[%d] output_size, *, Tensor(a!) out)", dims),
			Func: adaptiveAvgPool(dims), Class: planar(opclass.AdaptiveAvgPool2d), Flow: window, DTypes: meanTypes, Family: kernels.Sum},
		adaptiveMaxOp(dims),
	}
}

// lineOps are the operators over one spatial dimension.
var lineOps = []kernels.Op{
	{Schema: "aten::avg_pool1d.out(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, " +
		"bool count_include_pad=True, *, Tensor(a!) out)", Func: avgPool(1), Flow: opclass.Inner1, DTypes: meanTypes, Family: kernels.Sum},
	{Schema: "aten::adaptive_avg_pool1d.out(Tensor self, int[1] output_size, *, Tensor(a!) out)", Func: adaptiveAvgPool(1),
		Flow: opclass.Inner1, DTypes: meanTypes, Family: kernels.Sum},
}
