package elementwise

import (
	"math"
	"math/cmplx"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var (
	polar    = table{c: polarParts, cost: byNumber}
	ofParts  = table{c: joinParts}
	phase    = unary{rule: floating, table: table{f32: anglesOf[float32], f64: anglesOf[float64], c: phases, cost: byNumber}}
	signs    = unary{rule: numeric, same: true, table: table{f32: signum.f32, f64: signum.f64, i32: signum.i32, i64: signum.i64, c: units}}
	conjCopy = unary{rule: anyType, same: true, table: table{
		f32: identity[float32], f64: identity[float64], i32: identity[int32], i64: identity[int64], c: conj}}
)

var complexOps = []kernels.Op{
	{Schema: "aten::polar.out(Tensor abs, Tensor angle, *, Tensor(a!) out)", Func: fromParts(&polar), DTypes: partTypes, Family: kernels.Pointwise},
	{Schema: "aten::complex.out(Tensor real, Tensor imag, *, Tensor(a!) out)", Func: fromParts(&ofParts), DTypes: partTypes},
	{Schema: "aten::angle.out(Tensor self, *, Tensor(a!) out)", Func: angle, DTypes: allComplex, Family: kernels.Pointwise},
	{Schema: "aten::sgn.out(Tensor self, *, Tensor(a!) out)", Func: signs.run, DTypes: allComplex, Family: kernels.Pointwise},
	{Schema: "aten::_conj_copy.out(Tensor self, *, Tensor(a!) out)", Func: conjCopy.run, DTypes: allComplex},
	{Schema: "aten::_neg_view_copy.out(Tensor self, *, Tensor(a!) out)", Func: negation.run, Class: opclass.Neg, DTypes: numbersComplex},
}

const partTypes = "float16 → complex32, float32 → complex64, float64 → complex128"

// fromParts returns the operator whose kernel reads two real operands as the real parts of its own, and makes
// complex numbers of them.
func fromParts(t *table) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		cl := call{in: [maxIn + 1]arg{tensorArg(a, 0), tensorArg(a, 1)}, out: outArg(a), compute: tensor.Complex128}
		part := cl.out.DType.Component()
		if !cl.out.DType.IsComplex() {
			return kernels.Bad(cl.out.i, cl.out.DType.String(), "a complex type")
		}
		for i := range 2 {
			if err := kernels.WantDType(i, a.Tensor(i), part); err != nil {
				return err
			}
		}
		return t.run(c, a, &cl)
	}
}

func polarParts(k *block[complex128]) {
	map2(k, func(x, y complex128) complex128 {
		sin, cos := math.Sincos(real(y))
		return complex(real(x)*cos, real(x)*sin)
	})
}

func joinParts(k *block[complex128]) {
	map2(k, func(x, y complex128) complex128 { return complex(real(x), real(y)) })
}

// angle is aten::angle, whose result is real.
func angle(c *kernels.Ctx, a kernels.Args) error { return phase.realOf(c, a) }

func anglesOf[C float](k *block[C]) {
	map1(k, func(x C) C {
		switch {
		case x != x:
			return x
		case x < 0:
			return math.Pi
		}
		return 0
	})
}

func phases(k *block[complex128]) {
	map1(k, func(x complex128) complex128 { return complex(math.Atan2(imag(x), real(x)), 0) })
}

// units returns numbers of modulus 1 with the angles of the operands, 0 for 0.
func units(k *block[complex128]) {
	map1(k, func(x complex128) complex128 {
		if x == 0 {
			return 0
		}
		return x / complex(math.Hypot(real(x), imag(x)), 0)
	})
}

// complexFunctions are the functions of functionOps that are also computed of complex numbers.
var complexFunctions = map[string]func(complex128) complex128{
	"exp": cmplx.Exp, "log": cmplx.Log, "sin": cmplx.Sin, "cos": cmplx.Cos, "sinh": cmplx.Sinh, "cosh": cmplx.Cosh,
}

func eachComplex(f func(complex128) complex128) kernel[complex128] {
	return func(k *block[complex128]) {
		for i, x := range k.a[:len(k.out)] {
			k.out[i] = f(x)
		}
	}
}
