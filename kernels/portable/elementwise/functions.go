package elementwise

import (
	"math"

	"github.com/etrun-go/etrun/internal/math32"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
)

// slice returns the kernel of a function of slices.
func slice[C compute](f func(dst, src []C)) kernel[C] {
	return func(k *block[C]) { f(k.out, k.a) }
}

// pair returns the kernel of a function of two slices.
func pair[C compute](f func(dst, a, b []C)) kernel[C] {
	return func(k *block[C]) { f(k.out, k.a, k.b) }
}

// byRow returns the kernel of a function of rows of n elements and a number for each.
func byRow(f func(dst, a, b []float32, n int)) kernel[float32] {
	return func(k *block[float32]) { f(k.out, k.a, k.b, k.run) }
}

// each returns the kernel of a function of one number, which costs more than the call.
func each[C float](f func(float64) float64) kernel[C] {
	return func(k *block[C]) {
		a := k.a[:len(k.out)]
		for i := range k.out {
			k.out[i] = C(f(float64(a[i])))
		}
	}
}

// The costs of functions by how float32 is computed: in vectors, by package math32,
// or number by number.
const (
	inVectors = 5
	inLoops   = 30
	byNumber  = 100
)

// function returns the row of an operator that applies a function of one number. f32 is nil if float32 is computed in
// double and rounded once.
func function(name string, f func(float64) float64, f32 func(dst, src []float32), cost int) kernels.Op {
	u := &unary{rule: floating, table: table{f32: each[float32](f), f64: each[float64](f), cost: cost}}
	if f32 != nil {
		u.f32 = slice(f32)
	}
	types := all
	if f := complexFunctions[name]; f != nil {
		types, u.c = allComplex, eachComplex(f)
	}
	return kernels.Op{
		Schema: "aten::" + name + ".out(Tensor self, *, Tensor(a!) out)",
		Func:   u.run, Class: functionClasses[name], DTypes: types, Family: kernels.Pointwise,
	}
}

// functionClasses are the classes of the functions that passes know.
var functionClasses = map[string]opclass.Class{
	"cos": opclass.Cos, "exp": opclass.Exp, "log": opclass.Log, "sigmoid": opclass.Sigmoid, "sin": opclass.Sin, "tanh": opclass.Tanh,
}

var functionOps = []kernels.Op{
	function("acos", math.Acos, nil, byNumber),
	function("acosh", math.Acosh, nil, byNumber),
	function("asin", math.Asin, nil, byNumber),
	function("asinh", math.Asinh, nil, byNumber),
	function("atan", math.Atan, nil, byNumber),
	function("atanh", math.Atanh, nil, byNumber),
	function("cos", math.Cos, simd.Cos, inVectors),
	function("cosh", math.Cosh, math32.Cosh, inLoops),
	function("erf", math.Erf, simd.Erf, inVectors),
	function("exp", math.Exp, simd.Exp, inVectors),
	function("expm1", math.Expm1, simd.Expm1, inVectors),
	function("log", math.Log, simd.Log, inVectors),
	function("log10", math.Log10, simd.Log10, inVectors),
	function("log1p", math.Log1p, simd.Log1p, inVectors),
	function("log2", math.Log2, simd.Log2, inVectors),
	function("sigmoid", sigmoid, simd.Sigmoid, inVectors),
	function("sin", math.Sin, simd.Sin, inVectors),
	function("sinh", math.Sinh, math32.Sinh, inLoops),
	function("tan", math.Tan, nil, byNumber),
	function("tanh", math.Tanh, simd.Tanh, inVectors),
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
