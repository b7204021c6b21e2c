package elementwise

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var (
	bitAnd     = binary{rule: integral, table: table{i32: pair(simd.BitAndInt32), i64: bitwiseAnd}}
	bitOr      = binary{rule: integral, table: table{i32: pair(simd.BitOrInt32), i64: bitwiseOr}}
	bitXor     = binary{rule: integral, table: table{i32: pair(simd.BitXorInt32), i64: bitwiseXor}}
	shiftLeft  = binary{rule: shiftable, shift: true, table: table{i32: leftShift[int32], i64: leftShift[int64]}}
	shiftRight = binary{rule: shiftable, shift: true, table: table{i32: rightShift[int32], i64: rightShift[int64]}}
	bitNot     = unary{rule: shiftable, same: true, table: table{i32: bitwiseNot[int32], i64: bitwiseNot[int64]}}
)

var bitOps = []kernels.Op{
	{Schema: "aten::bitwise_and.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: bitAnd.run, DTypes: integersBool},
	{Schema: "aten::bitwise_and.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: bitAnd.run, DTypes: integersBool},
	{Schema: "aten::bitwise_or.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: bitOr.run, DTypes: integersBool},
	{Schema: "aten::bitwise_or.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: bitOr.run, DTypes: integersBool},
	{Schema: "aten::bitwise_xor.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: bitXor.run, DTypes: integersBool},
	{Schema: "aten::bitwise_xor.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: bitXor.run, DTypes: integersBool},
	{Schema: "aten::bitwise_not.out(Tensor self, *, Tensor(a!) out)", Func: complement, DTypes: integersBool},
	{Schema: "aten::bitwise_left_shift.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: shiftLeft.run, DTypes: integers, Note: shiftNote},
	{Schema: "aten::bitwise_left_shift.Tensor_Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: shiftLeft.run, DTypes: integers, Note: shiftNote},
	{Schema: "aten::bitwise_right_shift.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: shiftRight.run, DTypes: integers, Note: shiftNote},
	{Schema: "aten::bitwise_right_shift.Tensor_Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: shiftRight.run, DTypes: integers, Note: shiftNote},
	{Schema: "aten::__lshift__.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: shiftLeft.run, DTypes: integers, Note: shiftNote},
	{Schema: "aten::__lshift__.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: shiftLeft.run, DTypes: integers, Note: shiftNote},
	{Schema: "aten::__rshift__.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: shiftRight.run, DTypes: integers, Note: shiftNote},
	{Schema: "aten::__rshift__.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: shiftRight.run, DTypes: integers, Note: shiftNote},
}

const shiftNote = "a negative shift or one of the type's width or more gives 0, or the sign to the right"

// complement is bitwise_not, which for bool is logical.
func complement(c *kernels.Ctx, a kernels.Args) error {
	if a.Tensor(0).DType == tensor.Bool && outArg(a).DType == tensor.Bool {
		return logicalNot.run(c, a)
	}
	return bitNot.run(c, a)
}

func bitwiseAnd(k *block[int64]) { map2(k, func(x, y int64) int64 { return x & y }) }
func bitwiseOr(k *block[int64])  { map2(k, func(x, y int64) int64 { return x | y }) }
func bitwiseXor(k *block[int64]) { map2(k, func(x, y int64) int64 { return x ^ y }) }

func bitwiseNot[C integer](k *block[C]) { map1(k, func(x C) C { return ^x }) }

// leftShift returns 0 for shifts that C leaves undefined, as PyTorch does.
func leftShift[C integer](k *block[C]) {
	width := uint64(k.num[0])
	map2(k, func(x, y C) C {
		if uint64(y) >= width {
			return 0
		}
		return x << uint64(y)
	})
}

func rightShift[C integer](k *block[C]) {
	largest := uint64(k.num[1])
	map2(k, func(x, y C) C { return x >> min(uint64(y), largest) })
}
