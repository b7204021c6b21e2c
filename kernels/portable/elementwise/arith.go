package elementwise

import (
	"math"

	"github.com/etrun-go/etrun/internal/math32"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
)

// ordered is a compute type that is ordered.
type ordered interface {
	float32 | float64 | int32 | int64
}

type integer interface{ int32 | int64 }

type float interface{ float32 | float64 }

var (
	addition = binary{
		rule: numeric, table: table{f32: pair(simd.Add), rows32: byRow(simd.AddRows), commutes: true,
			f64: add[float64], i32: pair(simd.AddInt32), i64: add[int64], c: add[complex128]},
		scaled: &table{f32: addScaled32, f64: addScaled[float64], i32: addScaled[int32], i64: addScaled[int64], c: addScaled[complex128]},
	}
	subtraction = binary{
		rule: arithmetic, table: table{f32: pair(simd.Sub), rows32: byRow(simd.SubRows),
			f64: sub[float64], i32: pair(simd.SubInt32), i64: sub[int64], c: sub[complex128]},
		scaled: &table{f32: subScaled32, f64: subScaled[float64], i32: subScaled[int32], i64: subScaled[int64], c: subScaled[complex128]},
	}
	product = binary{rule: numeric, table: table{f32: pair(simd.Mul), rows32: byRow(simd.MulRows), commutes: true,
		f64: mul[float64], i32: pair(simd.MulInt32), i64: mul[int64], c: mul[complex128]}}
	quotient  = binary{rule: floating, table: table{f32: pair(simd.Div), rows32: byRow(simd.DivRows), f64: div[float64], c: div[complex128]}}
	truncated = binary{rule: arithmetic, table: table{f32: divTrunc[float32], f64: divTrunc[float64], i32: divTruncInt[int32], i64: divTruncInt[int64]}}
	floored   = binary{rule: arithmetic, table: table{f32: divFloor32, f64: divFloor64, i32: divFloorInt[int32], i64: divFloorInt[int64], cost: 100}}
	fmod      = binary{rule: arithmetic, table: table{f32: fmod32, f64: fmod64, i32: fmodInt[int32], i64: fmodInt[int64], cost: 100}}
	remainder = binary{rule: arithmetic, table: table{f32: remainder32, f64: remainder64, i32: remainderInt[int32], i64: remainderInt[int64], cost: 100}}
	largest   = binary{rule: numeric, table: table{f32: pair(simd.Maximum), f64: maximum[float64], i32: pair(simd.MaxInt32), i64: maximum[int64]}}
	smallest  = binary{rule: numeric, table: table{f32: pair(simd.Minimum), f64: minimum[float64], i32: pair(simd.MinInt32), i64: minimum[int64]}}
	atan2     = binary{rule: floating, table: table{f32: atan2Values[float32], f64: atan2Values[float64], cost: 100}}
	hypot     = binary{rule: fractional, table: table{f32: hypot32, f64: hypot64, cost: 8}}
)

var arithOps = []kernels.Op{
	{Schema: "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)",
		Func: addition.run, Class: opclass.Add, Numbers: opclass.Summed, DTypes: allComplex, Family: kernels.Sum},
	{Schema: "aten::add.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *, Tensor(a!) out)",
		Func: addition.run, Class: opclass.AddScalar, Numbers: opclass.Summed, DTypes: allComplex, Family: kernels.Sum},
	{Schema: "aten::sub.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)",
		Func: subtraction.run, Class: opclass.Sub, DTypes: numbersComplex, Family: kernels.Sum},
	{Schema: "aten::sub.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *, Tensor(a!) out)",
		Func: subtraction.run, Class: opclass.SubScalar, DTypes: numbersComplex, Family: kernels.Sum},
	{Schema: "aten::rsub.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *, Tensor(a!) out)",
		Func: subtraction.reversed, Class: opclass.RsubScalar, DTypes: numbersComplex, Family: kernels.Sum},
	{Schema: "aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out)",
		Func: product.run, Class: opclass.Mul, DTypes: allComplex, Family: kernels.Arith},
	{Schema: "aten::mul.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)",
		Func: product.run, Class: opclass.MulScalar, DTypes: allComplex, Family: kernels.Arith},
	{Schema: "aten::div.out(Tensor self, Tensor other, *, Tensor(a!) out)",
		Func: quotient.run, Class: opclass.Div, DTypes: allComplex, Family: kernels.Arith},
	{Schema: "aten::div.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)",
		Func: quotient.run, Class: opclass.DivScalar, DTypes: allComplex, Family: kernels.Arith},
	{Schema: "aten::div.out_mode(Tensor self, Tensor other, *, str? rounding_mode, Tensor(a!) out)", Func: divWithMode, DTypes: numbers, Family: kernels.Arith},
	{Schema: "aten::div.Scalar_mode_out(Tensor self, Scalar other, *, str? rounding_mode, Tensor(a!) out)", Func: divWithMode, DTypes: numbers, Family: kernels.Arith},
	{Schema: "aten::floor_divide.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: floored.run, DTypes: numbers, Family: kernels.Arith},
	{Schema: "aten::fmod.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: fmod.run, DTypes: numbers, Family: kernels.Exact},
	{Schema: "aten::fmod.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: fmod.run, DTypes: numbers, Family: kernels.Exact},
	{Schema: "aten::remainder.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: remainder.run, DTypes: numbers, Family: kernels.Arith,
		Note: "takes the divisor's sign for integers too, as PyTorch does"},
	{Schema: "aten::remainder.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: remainder.run, DTypes: numbers, Family: kernels.Arith,
		Note: "takes the divisor's sign for integers too, as PyTorch does"},
	{Schema: "aten::maximum.out(Tensor self, Tensor other, *, Tensor(a!) out)",
		Func: largest.run, Class: opclass.Maximum, DTypes: all, Family: kernels.Exact},
	{Schema: "aten::minimum.out(Tensor self, Tensor other, *, Tensor(a!) out)",
		Func: smallest.run, Class: opclass.Minimum, DTypes: all, Family: kernels.Exact},
	{Schema: "aten::atan2.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: atan2.run, DTypes: all, Family: kernels.Pointwise},
	{Schema: "aten::hypot.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: hypot.run, DTypes: floats, Family: kernels.Pointwise,
		Note: "infinite where an operand is, even if the other is NaN"},
}

// divWithMode selects the division by the argument rounding_mode.
func divWithMode(c *kernels.Ctx, a kernels.Args) error {
	b, err := divMode(a)
	if err != nil {
		return err
	}
	return b.run(c, a)
}

func divMode(a kernels.Args) (*binary, error) {
	switch mode := a.Str(2); {
	case a.IsNone(2):
		return &quotient, nil
	case mode == "trunc":
		return &truncated, nil
	case mode == "floor":
		return &floored, nil
	default:
		return nil, kernels.Badf(2, `None, "trunc" or "floor"`, "%q", mode)
	}
}

func add[C compute](k *block[C]) { map2(k, func(x, y C) C { return x + y }) }
func sub[C compute](k *block[C]) { map2(k, func(x, y C) C { return x - y }) }
func mul[C compute](k *block[C]) { map2(k, func(x, y C) C { return x * y }) }
func div[C float32 | float64 | complex128](k *block[C]) {
	map2(k, func(x, y C) C { return x / y })
}

func addScaled[C compute](k *block[C]) {
	alpha := k.num[0]
	map2(k, func(x, y C) C { return x + C(alpha*y) })
}

func addScaled32(k *block[float32]) { simd.AddScaled(k.out, k.a, k.b, k.num[0]) }
func subScaled32(k *block[float32]) { simd.AddScaled(k.out, k.a, k.b, -k.num[0]) }

func subScaled[C compute](k *block[C]) {
	alpha := k.num[0]
	map2(k, func(x, y C) C { return x - C(alpha*y) })
}

func maximum[C ordered](k *block[C]) { map2(k, func(x, y C) C { return max(x, y) }) }
func minimum[C ordered](k *block[C]) { map2(k, func(x, y C) C { return min(x, y) }) }

func atan2Values[C float](k *block[C]) {
	map2(k, func(x, y C) C { return C(math.Atan2(float64(x), float64(y))) })
}

func hypot32(k *block[float32]) { map2(k, hypotenuse) }
func hypot64(k *block[float64]) { map2(k, math.Hypot) }

// hypotenuse returns the root of x·x + y·y. float64 represents the squares exactly, and nothing overflows.
func hypotenuse(x, y float32) float32 {
	a, b := float64(x), float64(y)
	r := float32(math.Sqrt(a*a + b*b))
	if r != r && (math.IsInf(a, 0) || math.IsInf(b, 0)) {
		return float32(math.Inf(1))
	}
	return r
}

func divTrunc[C float](k *block[C]) {
	map2(k, func(x, y C) C { return C(math.Trunc(float64(x / y))) })
}

func fmod32(k *block[float32]) { map2(k, func(x, y float32) float32 { return math32.Mod(x, y) }) }
func fmod64(k *block[float64]) { map2(k, func(x, y float64) float64 { return math.Mod(x, y) }) }

func remainder32(k *block[float32]) {
	map2(k, func(x, y float32) float32 { return withSign(math32.Mod(x, y), y) })
}

func remainder64(k *block[float64]) {
	map2(k, func(x, y float64) float64 { return withSign(math.Mod(x, y), y) })
}

// withSign returns the remainder r of a division by y with the sign of y.
func withSign[C float](r, y C) C {
	if r != 0 && (y < 0) != (r < 0) {
		r += y
	}
	return r
}

func divFloor32(k *block[float32]) {
	map2(k, func(x, y float32) float32 { return floorQuotient(x, y, math32.Mod(x, y)) })
}

func divFloor64(k *block[float64]) {
	map2(k, func(x, y float64) float64 { return floorQuotient(x, y, math.Mod(x, y)) })
}

// floorQuotient rounds the quotient down without the error of rounding it twice, with
// the help of the remainder r (c10::div_floor_floating).
func floorQuotient[C float](x, y, r C) C {
	if y == 0 {
		return x / y
	}
	q := (x - r) / y
	if r != 0 && (y < 0) != (r < 0) {
		q--
	}
	if q == 0 {
		return C(math.Copysign(0, float64(x/y)))
	}
	f := C(math.Floor(float64(q)))
	if q-f > 0.5 {
		f++
	}
	return f
}

// divided computes an integer division of the block, and stops with a fault at a divisor of 0.
func divided[C integer](k *block[C], f func(x, y C) C) {
	out, a, b := k.out, k.a[:len(k.out)], k.b[:len(k.out)]
	for i := range out {
		if b[i] == 0 {
			k.fault = true
			return
		}
		out[i] = f(a[i], b[i])
	}
}

func divTruncInt[C integer](k *block[C]) { divided(k, func(x, y C) C { return x / y }) }
func fmodInt[C integer](k *block[C])     { divided(k, func(x, y C) C { return x % y }) }

func divFloorInt[C integer](k *block[C]) {
	divided(k, func(x, y C) C {
		q := x / y
		if x%y != 0 && (x < 0) != (y < 0) {
			q--
		}
		return q
	})
}

func remainderInt[C integer](k *block[C]) {
	divided(k, func(x, y C) C {
		r := x % y
		if r != 0 && (r < 0) != (y < 0) {
			r += y
		}
		return r
	})
}
