package elementwise

import (
	"math"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// unary is an operator (Tensor self, …, out) of one operand.
type unary struct {
	table
	rule rule
	same bool // the result has self's type, else any that results are stored as
}

func (u *unary) run(c *kernels.Ctx, a kernels.Args) error {
	return u.numbers(c, a, [3]kernels.Scalar{})
}

// numbers is run with numbers for the kernel.
func (u *unary) numbers(c *kernels.Ctx, a kernels.Args, num [3]kernels.Scalar) error {
	if u.same {
		if err := wantSelfType(a); err != nil {
			return err
		}
	}
	cl := call{in: [maxIn + 1]arg{tensorArg(a, 0)}, out: outArg(a), num: num}
	if err := cl.resolve(u.rule, u.test); err != nil {
		return err
	}
	return u.table.run(c, a, &cl)
}

// wantSelfType checks that the out argument has the type of argument 0.
func wantSelfType(a kernels.Args) error {
	out := outArg(a)
	return kernels.WantDType(out.i, out.Tensor, a.Tensor(0).DType)
}

// modulus is abs.
func modulus(c *kernels.Ctx, a kernels.Args) error { return absolute.realOf(c, a) }

// realOf is run, but the result is real for complex operands.
func (u *unary) realOf(c *kernels.Ctx, a kernels.Args) error {
	if !a.Tensor(0).DType.IsComplex() {
		return u.run(c, a)
	}
	cl := call{in: [maxIn + 1]arg{tensorArg(a, 0)}, out: outArg(a), compute: tensor.Complex128}
	if !cl.out.DType.IsFloat() {
		return kernels.Bad(cl.out.i, cl.out.DType.String(), "a real float type")
	}
	return u.table.run(c, a, &cl)
}

var (
	absolute   = unary{rule: numeric, same: true, table: table{f32: slice(simd.Abs), f64: abs64, i32: slice(simd.AbsInt32), i64: absInt, c: absComplex}}
	negation   = unary{rule: arithmetic, same: true, table: table{f32: slice(simd.Neg), f64: neg[float64], i32: slice(simd.NegInt32), i64: neg[int64], c: neg[complex128]}}
	signum     = unary{rule: numeric, same: true, table: table{f32: slice(simd.Sign), f64: sign[float64], i32: sign[int32], i64: sign[int64]}}
	rectified  = unary{rule: arithmetic, same: true, table: table{f32: relu32, f64: relu[float64], i32: reluInt32, i64: relu[int64]}}
	ceil       = unary{rule: numeric, same: true, table: table{f32: slice(simd.Ceil), f64: ceil64, i32: identity[int32], i64: identity[int64]}}
	floor      = unary{rule: numeric, same: true, table: table{f32: slice(simd.Floor), f64: floor64, i32: identity[int32], i64: identity[int64]}}
	trunc      = unary{rule: numeric, same: true, table: table{f32: slice(simd.Trunc), f64: trunc64, i32: identity[int32], i64: identity[int64]}}
	round      = unary{rule: numeric, same: true, table: table{f32: slice(simd.Round), f64: round64, i32: identity[int32], i64: identity[int64]}}
	conjugate  = unary{rule: complexOnly, same: true, table: table{c: conj}}
	reciprocal = unary{rule: floating, table: table{f32: slice(simd.Reciprocal), f64: reciprocal64}}
	root       = unary{rule: floating, table: table{f32: slice(simd.Sqrt), f64: sqrt[float64], cost: 2}}
	rsqrt      = unary{rule: floating, table: table{f32: slice(simd.Rsqrt), f64: rsqrt64, cost: 4}}
)

var unaryOps = []kernels.Op{
	{Schema: "aten::abs.out(Tensor self, *, Tensor(a!) out)", Func: modulus, Class: opclass.Abs, DTypes: allComplex, Family: kernels.Arith},
	{Schema: "aten::neg.out(Tensor self, *, Tensor(a!) out)", Func: negation.run, Class: opclass.Neg, DTypes: numbersComplex},
	{Schema: "aten::sign.out(Tensor self, *, Tensor(a!) out)", Func: signum.run, DTypes: all, Note: "the sign of NaN is 0, as in PyTorch"},
	{Schema: "aten::relu.out(Tensor self, *, Tensor(a!) out)", Func: rectified.run, Class: opclass.Relu, DTypes: numbers},
	{Schema: "aten::ceil.out(Tensor self, *, Tensor(a!) out)", Func: ceil.run, Class: opclass.Ceil, DTypes: all},
	{Schema: "aten::floor.out(Tensor self, *, Tensor(a!) out)", Func: floor.run, Class: opclass.Floor, DTypes: all},
	{Schema: "aten::trunc.out(Tensor self, *, Tensor(a!) out)", Func: trunc.run, DTypes: all},
	{Schema: "aten::round.out(Tensor self, *, Tensor(a!) out)", Func: round.run, DTypes: all},
	{Schema: "aten::_conj_physical.out(Tensor self, *, Tensor(a!) out)", Func: conjugate.run, DTypes: "complex"},
	{Schema: "aten::reciprocal.out(Tensor self, *, Tensor(a!) out)", Func: reciprocal.run, DTypes: all, Family: kernels.Arith},
	{Schema: "aten::sqrt.out(Tensor self, *, Tensor(a!) out)", Func: root.run, Class: opclass.Sqrt, DTypes: all, Family: kernels.Arith},
	{Schema: "aten::rsqrt.out(Tensor self, *, Tensor(a!) out)", Func: rsqrt.run, Class: opclass.Rsqrt, DTypes: all, Family: kernels.Arith},
}

func identity[C compute](k *block[C]) { copy(k.out, k.a) }
func neg[C compute](k *block[C])      { map1(k, func(x C) C { return -x }) }

func abs64(k *block[float64]) { map1(k, func(x float64) float64 { return math.Abs(x) }) }

func absInt(k *block[int64]) {
	map1(k, func(x int64) int64 { return max(x, -x) })
}

func absComplex(k *block[complex128]) {
	map1(k, func(x complex128) complex128 { return complex(math.Hypot(real(x), imag(x)), 0) })
}

func conj(k *block[complex128]) {
	map1(k, func(x complex128) complex128 { return complex(real(x), -imag(x)) })
}

func sign[C ordered](k *block[C]) {
	map1(k, func(x C) C { return C(answer(x > 0)) - C(answer(x < 0)) })
}

func relu[C ordered](k *block[C]) {
	map1(k, func(x C) C { return max(x, 0) })
}

func reluInt32(k *block[int32]) { simd.ClampInt32(k.out, k.a, 0, math.MaxInt32) }

func relu32(k *block[float32]) { simd.Clamp(k.out, k.a, 0, float32(math.Inf(1))) }

func ceil64(k *block[float64])  { map1(k, func(x float64) float64 { return math.Ceil(x) }) }
func floor64(k *block[float64]) { map1(k, func(x float64) float64 { return math.Floor(x) }) }
func trunc64(k *block[float64]) { map1(k, func(x float64) float64 { return math.Trunc(x) }) }
func round64(k *block[float64]) { map1(k, func(x float64) float64 { return math.RoundToEven(x) }) }

func reciprocal64(k *block[float64]) { map1(k, func(x float64) float64 { return 1 / x }) }

func sqrt[C float](k *block[C]) {
	map1(k, func(x C) C { return C(math.Sqrt(float64(x))) })
}

func rsqrt64(k *block[float64]) { map1(k, func(x float64) float64 { return 1 / math.Sqrt(x) }) }
