package resample

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/portable/operand"
)

// Ops returns the operators of the package.
func Ops() []kernels.Op {
	const float = "float16, bfloat16, float32, float64"
	const numbers, floats = "an integer or floating type", "a floating type"
	return []kernels.Op{
		{Schema: "aten::upsample_nearest2d.vec_out(Tensor input, SymInt[]? output_size, float[]? scale_factors, *, Tensor(a!) out)",
			Func: operand.Typed(0, numbers, nearest[float32], nearest[float64], nearest[int64]), Moves: true, Flow: opclass.Inner2, DTypes: "integers, " + float, Family: kernels.Exact},
		{Schema: "aten::upsample_bilinear2d.vec_out(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors, *, Tensor(a!) out)",
			Func: operand.Typed(0, floats, bilinear[float32], bilinear[float64], nil), Class: opclass.UpsampleBilinear2d, Flow: opclass.Inner2, DTypes: float, Family: kernels.Sum},
		{Schema: "aten::_upsample_bilinear2d_aa.out(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None, " +
			"*, Tensor(a!) out)", Func: operand.Typed(0, floats, antialiased[float32], antialiased[float64], nil), Flow: opclass.Inner2, DTypes: float, Family: kernels.Sum},
		{Schema: "aten::grid_sampler_2d.out(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, *, Tensor(a!) out)",
			Func: operand.SameType(gridSampler, 0, 1, 5), DTypes: float, Family: kernels.Loose},
	}
}
