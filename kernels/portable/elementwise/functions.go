package elementwise

import (
	"math"

	"github.com/etrun-go/etrun/kernels"
)

// function is an operator that applies a function of one real number. float32 is
// computed in double and rounded once.
func function(f func(float64) float64) *unary {
	return &unary{rule: floating, table: table{cost: 16,
		f32: func(k *block[float32]) {
			a := k.a[:len(k.out)]
			for i := range k.out {
				k.out[i] = float32(f(float64(a[i])))
			}
		},
		f64: func(k *block[float64]) {
			a := k.a[:len(k.out)]
			for i := range k.out {
				k.out[i] = f(a[i])
			}
		},
	}}
}

// functionOp is the row of a function.
func functionOp(name string, f func(float64) float64) kernels.Op {
	return kernels.Op{
		Schema: "aten::" + name + ".out(Tensor self, *, Tensor(a!) out)",
		Func:   function(f).call, DTypes: all, Family: kernels.Pointwise,
	}
}

var functionOps = []kernels.Op{
	functionOp("acos", math.Acos),
	functionOp("acosh", math.Acosh),
	functionOp("asin", math.Asin),
	functionOp("asinh", math.Asinh),
	functionOp("atan", math.Atan),
	functionOp("atanh", math.Atanh),
	functionOp("cos", math.Cos),
	functionOp("cosh", math.Cosh),
	functionOp("erf", math.Erf),
	functionOp("exp", math.Exp),
	functionOp("expm1", math.Expm1),
	functionOp("log", math.Log),
	functionOp("log10", math.Log10),
	functionOp("log1p", math.Log1p),
	functionOp("log2", math.Log2),
	functionOp("sigmoid", sigmoid),
	functionOp("sin", math.Sin),
	functionOp("sinh", math.Sinh),
	functionOp("tan", math.Tan),
	functionOp("tanh", math.Tanh),
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
