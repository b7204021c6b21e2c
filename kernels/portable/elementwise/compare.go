package elementwise

import (
	"math"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
)

// comparison is a binary operator that answers a question.
func comparison(f32 kernel[float32], f64 kernel[float64], i32 kernel[int32], i64 kernel[int64], c kernel[complex128]) *binary {
	return &binary{rule: numeric, table: table{f32: f32, f64: f64, i32: i32, i64: i64, c: c, test: true}}
}

var (
	equal    = comparison(test(simd.Equal), eq[float64], test(simd.EqualInt32), eq[int64], eq[complex128])
	unequal  = comparison(test(simd.NotEqual), ne[float64], test(simd.NotEqualInt32), ne[int64], ne[complex128])
	less     = comparison(test(simd.Less), lt[float64], test(simd.LessInt32), lt[int64], nil)
	atMost   = comparison(test(simd.LessEqual), le[float64], test(simd.LessEqualInt32), le[int64], nil)
	greater  = comparison(reversed(simd.Less), gt[float64], reversed(simd.LessInt32), gt[int64], nil)
	atLeast  = comparison(reversed(simd.LessEqual), ge[float64], reversed(simd.LessEqualInt32), ge[int64], nil)
	bothTrue = comparison(and[float32], and[float64], test(simd.AndInt32), and[int64], and[complex128])
	anyTrue  = comparison(or[float32], or[float64], test(simd.OrInt32), or[int64], or[complex128])
	oneTrue  = comparison(xor[float32], xor[float64], test(simd.XorInt32), xor[int64], xor[complex128])
	isFalse  = unary{rule: numeric, table: table{f32: not[float32], f64: not[float64], i32: not32, i64: not[int64], c: not[complex128], test: true}}
	isNaN    = unary{rule: numeric, table: table{f32: notEqualSelf, f64: nan[float64], i64: never, test: true}}
	isInf    = unary{rule: numeric, table: table{f32: infinite[float32], f64: infinite[float64], i64: never, test: true}}
)

var compareOps = []kernels.Op{
	{Schema: "aten::eq.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: equal.tensors, DTypes: allComplex},
	{Schema: "aten::eq.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: equal.scalar, DTypes: allComplex},
	{Schema: "aten::ne.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: unequal.tensors, DTypes: allComplex},
	{Schema: "aten::ne.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: unequal.scalar, DTypes: allComplex},
	{Schema: "aten::lt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: less.tensors, DTypes: all},
	{Schema: "aten::lt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: less.scalar, DTypes: all},
	{Schema: "aten::le.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: atMost.tensors, DTypes: all},
	{Schema: "aten::le.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: atMost.scalar, DTypes: all},
	{Schema: "aten::gt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: greater.tensors, DTypes: all},
	{Schema: "aten::gt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: greater.scalar, DTypes: all},
	{Schema: "aten::ge.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: atLeast.tensors, DTypes: all},
	{Schema: "aten::ge.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: atLeast.scalar, DTypes: all},
	{Schema: "aten::logical_and.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: bothTrue.tensors, DTypes: allComplex},
	{Schema: "aten::logical_or.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: anyTrue.tensors, DTypes: allComplex},
	{Schema: "aten::logical_xor.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: oneTrue.tensors, DTypes: allComplex},
	{Schema: "aten::logical_not.out(Tensor self, *, Tensor(a!) out)", Func: isFalse.call, DTypes: allComplex},
	{Schema: "aten::isnan.out(Tensor self, *, Tensor(a!) out)", Func: isNaN.call, DTypes: all},
	{Schema: "aten::isinf.out(Tensor self, *, Tensor(a!) out)", Func: isInf.call, DTypes: all},
}

// test makes a kernel of a comparison of slices, and reversed one with its operands
// exchanged.

func test[C compute](f func(dst []uint8, a, b []C)) kernel[C] {
	return func(k *block[C]) { f(k.test, k.a, k.b) }
}

func reversed[C compute](f func(dst []uint8, a, b []C)) kernel[C] {
	return func(k *block[C]) { f(k.test, k.b, k.a) }
}

func eq[C compute](k *block[C]) { test2(k, func(x, y C) bool { return x == y }) }
func ne[C compute](k *block[C]) { test2(k, func(x, y C) bool { return x != y }) }
func lt[C ordered](k *block[C]) { test2(k, func(x, y C) bool { return x < y }) }
func le[C ordered](k *block[C]) { test2(k, func(x, y C) bool { return x <= y }) }
func gt[C ordered](k *block[C]) { test2(k, func(x, y C) bool { return x > y }) }
func ge[C ordered](k *block[C]) { test2(k, func(x, y C) bool { return x >= y }) }

func and[C compute](k *block[C]) { test2(k, func(x, y C) bool { return x != 0 && y != 0 }) }
func or[C compute](k *block[C])  { test2(k, func(x, y C) bool { return x != 0 || y != 0 }) }
func xor[C compute](k *block[C]) { test2(k, func(x, y C) bool { return (x != 0) != (y != 0) }) }
func not[C compute](k *block[C]) { test1(k, func(x C) bool { return x == 0 }) }

// not32 and notEqualSelf compare the operand with itself.
func not32(k *block[int32])          { simd.NorInt32(k.test, k.a, k.a) }
func notEqualSelf(k *block[float32]) { simd.NotEqual(k.test, k.a, k.a) }

func nan[C float](k *block[C]) { test1(k, func(x C) bool { return x != x }) }
func infinite[C float](k *block[C]) {
	test1(k, func(x C) bool { return math.Abs(float64(x)) > math.MaxFloat64 })
}
func never(k *block[int64]) { test1(k, func(int64) bool { return false }) }
