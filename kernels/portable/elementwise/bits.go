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
	shiftLeft  = shift{table{i32: leftShift[int32], i64: leftShift[int64]}}
	shiftRight = shift{table{i32: rightShift[int32], i64: rightShift[int64]}}
	bitNot     = unary{rule: shiftable, table: table{i32: bitwiseNot[int32], i64: bitwiseNot[int64]}}
)

var bitOps = []kernels.Op{
	{Schema: "aten::bitwise_and.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: bitAnd.tensors, DTypes: integersBool},
	{Schema: "aten::bitwise_and.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: bitAnd.scalar, DTypes: integersBool},
	{Schema: "aten::bitwise_or.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: bitOr.tensors, DTypes: integersBool},
	{Schema: "aten::bitwise_or.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: bitOr.scalar, DTypes: integersBool},
	{Schema: "aten::bitwise_xor.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: bitXor.tensors, DTypes: integersBool},
	{Schema: "aten::bitwise_xor.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: bitXor.scalar, DTypes: integersBool},
	{Schema: "aten::bitwise_not.out(Tensor self, *, Tensor(a!) out)", Func: complement, DTypes: integersBool},
	{Schema: "aten::bitwise_left_shift.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: shiftLeft.tensors, DTypes: integers, Note: shiftNote},
	{Schema: "aten::bitwise_left_shift.Tensor_Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: shiftLeft.scalar, DTypes: integers, Note: shiftNote},
	{Schema: "aten::bitwise_right_shift.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: shiftRight.tensors, DTypes: integers, Note: shiftNote},
	{Schema: "aten::bitwise_right_shift.Tensor_Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: shiftRight.scalar, DTypes: integers, Note: shiftNote},
	{Schema: "aten::__lshift__.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: shiftLeft.tensors, DTypes: integers, Note: shiftNote},
	{Schema: "aten::__lshift__.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: shiftLeft.scalar, DTypes: integers, Note: shiftNote},
	{Schema: "aten::__rshift__.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: shiftRight.tensors, DTypes: integers, Note: shiftNote},
	{Schema: "aten::__rshift__.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: shiftRight.scalar, DTypes: integers, Note: shiftNote},
}

const shiftNote = "a negative shift or one of the type's width or more gives 0, or the sign to the right"

// complement is bitwise_not, which for bool is logical.
func complement(c *kernels.Ctx, a kernels.Args) error {
	if a.Tensor(0).DType == tensor.Bool && outArg(a).DType == tensor.Bool {
		return logicalNot.call(c, a)
	}
	return bitNot.same(c, a)
}

// shift is a binary operator whose kernel reads the width of the common type from
// num[0], and from num[1] the largest shift to the right.
type shift struct{ table }

func (s *shift) tensors(c *kernels.Ctx, a kernels.Args) error {
	return s.call(c, a, &call{in: [maxIn + 1]arg{tensorArg(a, 0), tensorArg(a, 1)}})
}

func (s *shift) scalar(c *kernels.Ctx, a kernels.Args) error {
	cl := call{in: [maxIn + 1]arg{tensorArg(a, 0), {i: 1, number: true}}}
	cl.num[operandNum] = a.Scalar(1)
	return s.call(c, a, &cl)
}

func (s *shift) call(c *kernels.Ctx, a kernels.Args, cl *call) error {
	cl.out = outArg(a)
	common := cl.commonType()
	if err := cl.resolveAs(common, shiftable, false); err != nil {
		return err
	}
	width := int64(8 * common.Size())
	most := width - 1
	if lo, _ := common.IntRange(); lo == 0 {
		most = width
	}
	cl.num[0], cl.num[1] = kernels.Scalar{Type: tensor.Int64, I: width}, kernels.Scalar{Type: tensor.Int64, I: most}
	return s.run(c, a, cl)
}

func bitwiseAnd(k *block[int64]) { map2(k, func(x, y int64) int64 { return x & y }) }
func bitwiseOr(k *block[int64])  { map2(k, func(x, y int64) int64 { return x | y }) }
func bitwiseXor(k *block[int64]) { map2(k, func(x, y int64) int64 { return x ^ y }) }

func bitwiseNot[C integer](k *block[C]) { map1(k, func(x C) C { return ^x }) }

// leftShift gives 0 for shifts that C leaves open, as PyTorch does.
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
	most := uint64(k.num[1])
	map2(k, func(x, y C) C { return x >> min(uint64(y), most) })
}
