package elementwise

import (
	"math"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var (
	geluErf      = unary{rule: fractional, same: true, table: table{f32: slice(simd.GELU), f64: each[float64](gelu64), cost: 8}}
	geluTanh     = unary{rule: fractional, same: true, table: table{f32: slice(simd.GELUTanh), f64: each[float64](geluTanh64), cost: 6}}
	elu          = unary{rule: fractional, same: true, table: table{f32: elu32, f64: elu64, cost: inVectors}}
	leaky        = unary{rule: fractional, same: true, table: table{f32: leakyRelu32, f64: leakyRelu}}
	swish        = unary{rule: fractional, same: true, table: table{f32: slice(simd.SiLU), f64: each[float64](silu64), cost: inVectors}}
	hardSwish    = unary{rule: fractional, same: true, table: table{f32: slice(simd.Hardswish), f64: each[float64](hardswish64), cost: 4}}
	logits       = unary{rule: floating, table: table{f32: logit32, f64: logit64, cost: 100}}
	logitsHalf   = unary{rule: floating, table: table{f32: logitHalf, cost: 100}}
	logitsBFloat = unary{rule: floating, table: table{f32: logitBFloat, cost: 100}}
	gated        = table{f32: glu32, f64: glu64, cost: 5}
)

var activationOps = []kernels.Op{
	{Schema: `aten::gelu.out(Tensor self, *, str approximate="none", Tensor(a!) out)`, Func: gelu, Class: opclass.Gelu, DTypes: floats, Family: kernels.Pointwise},
	{Schema: "aten::elu.out(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1, *, Tensor(a!) out)",
		Func: eluNumbers, Class: opclass.Elu, DTypes: floats, Family: kernels.Pointwise},
	{Schema: "aten::leaky_relu.out(Tensor self, Scalar negative_slope=0.01, *, Tensor(a!) out)",
		Func: leakyReluNumber, Class: opclass.LeakyRelu, DTypes: floats, Family: kernels.Arith},
	{Schema: "aten::silu.out(Tensor self, *, Tensor(a!) out)",
		Func: swish.run, Class: opclass.Silu, DTypes: floats, Family: kernels.Pointwise},
	{Schema: "aten::hardswish.out(Tensor self, *, Tensor(a!) out)",
		Func: hardSwish.run, Class: opclass.Hardswish, DTypes: floats, Family: kernels.Pointwise},
	{Schema: "aten::logit.out(Tensor self, float? eps=None, *, Tensor(a!) out)", Func: logitNumber, DTypes: all, Family: kernels.Pointwise},
	{Schema: "aten::glu.out(Tensor self, int dim=-1, *, Tensor(a!) out)", Func: glu, Flow: opclass.Along, DTypes: floats, Family: kernels.Pointwise},
}

func gelu(c *kernels.Ctx, a kernels.Args) error {
	switch mode := a.Str(1); mode {
	case "none":
		return geluErf.run(c, a)
	case "tanh":
		return geluTanh.run(c, a)
	default:
		return kernels.Badf(1, `"none" or "tanh"`, "%q", mode)
	}
}

// gelu64 is 0 at -Inf, the limit.
func gelu64(x float64) float64 {
	if x < -math.MaxFloat64 {
		return 0
	}
	return x * (0.5 + 0.5*math.Erf(x*(1/math.Sqrt2)))
}

func geluTanh64(x float64) float64 {
	const slope, cubic = math.Sqrt2 * 2 / math.SqrtPi * 0.5, 0.044715
	return 0.5 * x * (1 + math.Tanh(slope*(x+cubic*x*x*x)))
}

func silu64(x float64) float64 { return x * sigmoid(x) }

// hardswish64 is the product of four operators; simd.Hardswish rounds as they do, too.
func hardswish64(x float64) float64 { return x * min(max(x+3, 0), 6) / 6 }

// elu hands its kernel the factors of the negative part, of its exponent, and of the
// positive part.
func eluNumbers(c *kernels.Ctx, a kernels.Args) error {
	alpha, scale := a.Scalar(1), a.Scalar(2)
	negative := kernels.Scalar{Type: tensor.Float64, F: alpha.Float() * scale.Float()}
	return elu.numbers(c, a, [3]kernels.Scalar{negative, a.Scalar(3), scale})
}

func elu32(k *block[float32]) { simd.ELU(k.out, k.a, k.num[0], k.num[1], k.num[2]) }

func elu64(k *block[float64]) {
	negative, inner, positive := k.num[0], k.num[1], k.num[2]
	map1(k, func(x float64) float64 {
		if x > 0 {
			return x * positive
		}
		return math.Expm1(x*inner) * negative
	})
}

func leakyReluNumber(c *kernels.Ctx, a kernels.Args) error {
	return leaky.numbers(c, a, [3]kernels.Scalar{a.Scalar(1)})
}

func leakyRelu(k *block[float64]) {
	slope := k.num[0]
	map1(k, func(x float64) float64 {
		if x > 0 {
			return x
		}
		return x * slope
	})
}

func leakyRelu32(k *block[float32]) { simd.LeakyReLU(k.out, k.a, k.num[0]) }

// logitNumber rounds every step to self's type, as PyTorch does for 16 bits too.
func logitNumber(c *kernels.Ctx, a kernels.Args) error {
	u := &logits
	switch a.Tensor(0).DType {
	case tensor.Float16:
		u = &logitsHalf
	case tensor.BFloat16:
		u = &logitsBFloat
	}
	if a.IsNone(1) {
		return u.run(c, a)
	}
	return u.numbers(c, a, [3]kernels.Scalar{a.Scalar(1), {Type: tensor.Bool, I: 1}})
}

// logit computes log(x/(1-x)), of x clamped between eps and 1-eps where the number
// eps is given, which num[1] says.
func logit[C float](k *block[C], rounded func(C) C) {
	low, high := rounded(k.num[0]), rounded(1-rounded(k.num[0]))
	clamped := k.num[1] != 0
	map1(k, func(x C) C {
		if clamped {
			x = outside(x, low, high)
		}
		return C(math.Log(float64(rounded(x / rounded(1-x)))))
	})
}

// outside is a clamp that looks at low first and lets NaN pass, also where low is
// above high.
func outside[C float](x, low, high C) C {
	switch {
	case x < low:
		return low
	case x > high:
		return high
	}
	return x
}

func logit32(k *block[float32]) { logit(k, func(x float32) float32 { return x }) }
func logit64(k *block[float64]) { logit(k, func(x float64) float64 { return x }) }

func logitHalf(k *block[float32]) {
	logit(k, func(x float32) float32 { return tensor.HalfToFloat(tensor.FloatToHalf(x)) })
}

func logitBFloat(k *block[float32]) {
	logit(k, func(x float32) float32 { return tensor.BFloatToFloat(tensor.FloatToBFloat(x)) })
}
