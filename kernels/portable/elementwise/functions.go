package elementwise

import (
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/math32"
	"github.com/etrun-go/etrun/kernels/simd"
)

// slices32 makes a kernel of a function of float32 slices.
func slices32(f func(dst, src []float32)) kernel[float32] {
	return func(k *block[float32]) { f(k.out, k.a) }
}

// pair32 makes a kernel of a function of two float32 slices.
func pair32(f func(dst, a, b []float32)) kernel[float32] {
	return func(k *block[float32]) { f(k.out, k.a, k.b) }
}

// each makes a kernel of a function of one number. The call costs less than such a
// function.
func each[C float](f func(float64) float64) kernel[C] {
	return func(k *block[C]) {
		a := k.a[:len(k.out)]
		for i := range k.out {
			k.out[i] = C(f(float64(a[i])))
		}
	}
}

// function is the row of an operator that applies a function of one number. f32 is
// nil where float32 is computed in double and rounded once.
func function(name string, f func(float64) float64, f32 func(dst, src []float32)) kernels.Op {
	u := &unary{rule: floating, table: table{f32: each[float32](f), f64: each[float64](f), cost: 16}}
	if f32 != nil {
		u.f32, u.cost = slices32(f32), 6
	}
	return kernels.Op{
		Schema: "aten::" + name + ".out(Tensor self, *, Tensor(a!) out)",
		Func:   u.call, DTypes: all, Family: kernels.Pointwise,
	}
}

var functionOps = []kernels.Op{
	function("acos", math.Acos, nil),
	function("acosh", math.Acosh, nil),
	function("asin", math.Asin, nil),
	function("asinh", math.Asinh, nil),
	function("atan", math.Atan, nil),
	function("atanh", math.Atanh, nil),
	function("cos", math.Cos, math32.Cos),
	function("cosh", math.Cosh, math32.Cosh),
	function("erf", math.Erf, math32.Erf),
	function("exp", math.Exp, simd.Exp),
	function("expm1", math.Expm1, math32.Expm1),
	function("log", math.Log, math32.Log),
	function("log10", math.Log10, math32.Log10),
	function("log1p", math.Log1p, math32.Log1p),
	function("log2", math.Log2, math32.Log2),
	function("sigmoid", sigmoid, simd.Sigmoid),
	function("sin", math.Sin, math32.Sin),
	function("sinh", math.Sinh, math32.Sinh),
	function("tan", math.Tan, nil),
	function("tanh", math.Tanh, simd.Tanh),
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
