package elementwise

import (
	"math"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
)

// comparison returns a binary operator whose result is bool.
func comparison(f32 kernel[float32], f64 kernel[float64], i32 kernel[int32], i64 kernel[int64], c kernel[complex128]) *binary {
	return &binary{rule: numeric, table: table{f32: f32, f64: f64, i32: i32, i64: i64, c: c, test: true}}
}

var (
	eq         = comparison(test(simd.Equal), eqTest[float64], test(simd.EqualInt32), eqTest[int64], eqTest[complex128])
	ne         = comparison(test(simd.NotEqual), neTest[float64], test(simd.NotEqualInt32), neTest[int64], neTest[complex128])
	lt         = comparison(test(simd.Less), ltTest[float64], test(simd.LessInt32), ltTest[int64], nil)
	le         = comparison(test(simd.LessEqual), leTest[float64], test(simd.LessEqualInt32), leTest[int64], nil)
	gt         = comparison(reversed(simd.Less), gtTest[float64], reversed(simd.LessInt32), gtTest[int64], nil)
	ge         = comparison(reversed(simd.LessEqual), geTest[float64], reversed(simd.LessEqualInt32), geTest[int64], nil)
	logicalAnd = comparison(and[float32], and[float64], test(simd.LogicalAndInt32), and[int64], and[complex128])
	logicalOr  = comparison(or[float32], or[float64], test(simd.LogicalOrInt32), or[int64], or[complex128])
	logicalXor = comparison(xor[float32], xor[float64], test(simd.LogicalXorInt32), xor[int64], xor[complex128])
	logicalNot = unary{rule: numeric, table: table{f32: not[float32], f64: not[float64], i32: not32, i64: not[int64], c: not[complex128], test: true}}
	isNaN      = unary{rule: numeric, table: table{f32: notEqualSelf, f64: nan[float64], i64: never, test: true}}
	isInf      = unary{rule: numeric, table: table{f32: infinite[float32], f64: infinite[float64], i64: never, test: true}}
)

var compareOps = []kernels.Op{
	{Schema: "aten::eq.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: eq.run, DTypes: allComplex},
	{Schema: "aten::eq.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: eq.run, Class: opclass.EqScalar, DTypes: allComplex},
	{Schema: "aten::ne.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: ne.run, DTypes: allComplex},
	{Schema: "aten::ne.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: ne.run, DTypes: allComplex},
	{Schema: "aten::lt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: lt.run, DTypes: all},
	{Schema: "aten::lt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: lt.run, DTypes: all},
	{Schema: "aten::le.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: le.run, DTypes: all},
	{Schema: "aten::le.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: le.run, DTypes: all},
	{Schema: "aten::gt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: gt.run, DTypes: all},
	{Schema: "aten::gt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: gt.run, DTypes: all},
	{Schema: "aten::ge.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: ge.run, DTypes: all},
	{Schema: "aten::ge.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: ge.run, DTypes: all},
	{Schema: "aten::logical_and.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: logicalAnd.run, DTypes: allComplex},
	{Schema: "aten::logical_or.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: logicalOr.run, DTypes: allComplex},
	{Schema: "aten::logical_xor.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: logicalXor.run, DTypes: allComplex},
	{Schema: "aten::logical_not.out(Tensor self, *, Tensor(a!) out)", Func: logicalNot.run, Class: opclass.LogicalNot, DTypes: allComplex},
	{Schema: "aten::isnan.out(Tensor self, *, Tensor(a!) out)", Func: isNaN.run, DTypes: all},
	{Schema: "aten::isinf.out(Tensor self, *, Tensor(a!) out)", Func: isInf.run, DTypes: all},
}

// test returns the kernel of a comparison of slices, reversed one with the operands exchanged.

func test[C compute](f func(dst []uint8, a, b []C)) kernel[C] {
	return func(k *block[C]) { f(k.test, k.a, k.b) }
}

func reversed[C compute](f func(dst []uint8, a, b []C)) kernel[C] {
	return func(k *block[C]) { f(k.test, k.b, k.a) }
}

func eqTest[C compute](k *block[C]) { test2(k, func(x, y C) bool { return x == y }) }
func neTest[C compute](k *block[C]) { test2(k, func(x, y C) bool { return x != y }) }
func ltTest[C ordered](k *block[C]) { test2(k, func(x, y C) bool { return x < y }) }
func leTest[C ordered](k *block[C]) { test2(k, func(x, y C) bool { return x <= y }) }
func gtTest[C ordered](k *block[C]) { test2(k, func(x, y C) bool { return x > y }) }
func geTest[C ordered](k *block[C]) { test2(k, func(x, y C) bool { return x >= y }) }

func and[C compute](k *block[C]) { test2(k, func(x, y C) bool { return x != 0 && y != 0 }) }
func or[C compute](k *block[C])  { test2(k, func(x, y C) bool { return x != 0 || y != 0 }) }
func xor[C compute](k *block[C]) { test2(k, func(x, y C) bool { return (x != 0) != (y != 0) }) }
func not[C compute](k *block[C]) { test1(k, func(x C) bool { return x == 0 }) }

// not32 and notEqualSelf compare the operand with itself.
func not32(k *block[int32])          { simd.LogicalNorInt32(k.test, k.a, k.a) }
func notEqualSelf(k *block[float32]) { simd.NotEqual(k.test, k.a, k.a) }

func nan[C float](k *block[C]) { test1(k, func(x C) bool { return x != x }) }
func infinite[C float](k *block[C]) {
	test1(k, func(x C) bool { return math.Abs(float64(x)) > math.MaxFloat64 })
}
func never(k *block[int64]) { test1(k, func(int64) bool { return false }) }
