package elementwise

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var set = kernels.NewSet(Ops())

func TestTable(t *testing.T) { kerneltest.Table(t, set) }

func TestRandom(t *testing.T) { kerneltest.Random(t, set, cases.Of(100, 200)) }

func FuzzCalls(f *testing.F) { kerneltest.Fuzz(f, set) }

var infinity, notANumber = math.Inf(1), math.NaN()

var inf32, nan32 = float32(infinity), float32(notANumber)

func ints[T tensor.Element](v ...T) *tensor.Tensor { return tensor.Of(v, len(v)) }
func f32(v ...float32) *tensor.Tensor              { return tensor.Of(v, len(v)) }
func f64(v ...float64) *tensor.Tensor              { return tensor.Of(v, len(v)) }
func bools(v ...bool) *tensor.Tensor               { return tensor.Of(v, len(v)) }

// as is v stored as another type.
func as(d tensor.DType, v ...float64) *tensor.Tensor {
	t := tensor.New(d, len(v))
	tensor.Cast(t, f64(v...))
	return t
}

func TestArithmetic(t *testing.T) {
	const big = math.MaxInt64
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "add with alpha", Op: "aten::add.out", Args: []any{f32(1, 2), f32(10, 20), 0.5}, Want: []any{f32(6, 12)}},
		{Name: "integers wrap", Op: "aten::add.out", Args: []any{ints[int8](127, -128), ints[int8](1, -1), 1}, Want: []any{ints[int8](-128, 127)}},
		{Name: "uint8 with int8 is int16", Op: "aten::add.out", Args: []any{ints[uint8](200), ints[int8](100), 1}, Want: []any{ints[int16](300)}},
		{Name: "a number tensor takes the narrow type", Op: "aten::mul.out", Args: []any{ints[int32](3, -1), tensor.Of([]int64{1<<32 + 2})}, Want: []any{ints[int32](6, -2)}},
		{Name: "int64 with float32 is float32", Op: "aten::add.out", Args: []any{ints[int64](1<<24 + 1), f32(0), 1}, Want: []any{f32(1 << 24)}},
		{Name: "a tensor without dimensions does not widen", Op: "aten::add.out",
			Args: []any{as(tensor.Float16, 1), tensor.Of([]float32{1}), 1}, Want: []any{as(tensor.Float16, 2)}},
		{Name: "float alpha for integers", Op: "aten::add.out", Args: []any{ints[int32](1), ints[int32](1), 0.5}, Outs: []any{ints[int32](0)}, Refused: "argument 2: got 0.5"},
		{Name: "float stored as integer", Op: "aten::add.out", Args: []any{f32(1), f32(1), 1}, Outs: []any{ints[int32](0)}, Refused: "argument 3: got int32"},
		{Name: "sizes do not broadcast", Op: "aten::add.out", Args: []any{f32(1, 2), f32(1, 2, 3), 1}, Outs: []any{f32(0, 0, 0)}, Refused: "argument 1: got sizes [3]"},
		{Name: "number on bool", Op: "aten::add.Scalar_out", Args: []any{bools(true, false), 2, 1}, Want: []any{ints[int64](3, 2)}},
		{Name: "float number on integers", Op: "aten::add.Scalar_out", Args: []any{ints[uint8](1), 0.5, 1}, Want: []any{f32(1.5)}},
		{Name: "number beyond the type wraps", Op: "aten::add.Scalar_out", Args: []any{ints[uint8](1), 300, 1}, Want: []any{ints[uint8](45)}},
		{Name: "bool minus bool", Op: "aten::sub.out", Args: []any{bools(true), bools(true), 1}, Outs: []any{bools(true)}, Refused: "argument 0: got bool and bool"},
		{Name: "rsub", Op: "aten::rsub.Scalar_out", Args: []any{f32(1, 2), 10, 3}, Want: []any{f32(7, 4)}},
		{Name: "bool times bool", Op: "aten::mul.out", Args: []any{bools(true, true), bools(true, false)}, Want: []any{bools(true, false)}},
		{Name: "complex", Op: "aten::mul.out", Args: []any{ints[complex64](1+2i, 3), ints[complex64](1i, 2)}, Want: []any{ints[complex64](-2+1i, 6)}},
		{Name: "complex and real", Op: "aten::add.out", Args: []any{ints[complex64](1i), f32(2), 1}, Want: []any{ints[complex64](2 + 1i)}},
		{Name: "division of integers", Op: "aten::div.out", Args: []any{ints[int32](7, 1), ints[int32](2, 0)}, Want: []any{f32(3.5, inf32)}},
		{Name: "toward zero", Op: "aten::div.out_mode", Args: []any{ints[int32](7, -7), ints[int32](2, 2), "trunc"}, Want: []any{ints[int32](3, -3)}},
		{Name: "down", Op: "aten::div.out_mode", Args: []any{ints[int32](7, -7), ints[int32](2, 2), "floor"}, Want: []any{ints[int32](3, -4)}},
		{Name: "no such mode", Op: "aten::div.out_mode", Args: []any{f32(1), f32(1), "up"}, Outs: []any{f32(0)}, Refused: `argument 2: got "up"`},
		{Name: "integer by zero", Op: "aten::div.out_mode", Args: []any{ints[int32](1), ints[int32](0), "floor"}, Outs: []any{ints[int32](0)}, Refused: "argument 1: got an integer 0"},
		{Name: "least integer by -1", Op: "aten::floor_divide.out", Args: []any{ints[int64](math.MinInt64), ints[int64](-1)}, Want: []any{ints[int64](math.MinInt64)}},
		{Name: "least int32 by -1", Op: "aten::floor_divide.out", Args: []any{ints[int32](math.MinInt32, 7), ints[int32](-1, -2)}, Want: []any{ints[int32](math.MinInt32, -4)}},
		{Name: "int32 into int64 wraps first", Op: "aten::add.out", Args: []any{ints[int32](math.MaxInt32), ints[int32](1), 1}, Want: []any{ints[int64](math.MinInt32)}},
		{Name: "floats down", Op: "aten::floor_divide.out", Args: []any{f32(1, -1, 1, inf32), f32(0.1, 0.3, 0, 2)}, Want: []any{f32(9, -4, inf32, nan32)}},
		{Name: "sign of the dividend", Op: "aten::fmod.Tensor_out", Args: []any{ints[int64](7, -7), ints[int64](-3, 3)}, Want: []any{ints[int64](1, -1)}},
		{Name: "sign of the divisor", Op: "aten::remainder.Tensor_out", Args: []any{ints[int64](7, -7), ints[int64](-3, 3)}, Want: []any{ints[int64](-2, 2)}},
		{Name: "of doubles", Op: "aten::remainder.Scalar_out", Args: []any{f64(-1e-9, 5.5), 3}, Want: []any{f64(3-1e-9, 2.5)}},
		{Name: "NaN wins", Op: "aten::maximum.out", Args: []any{f32(1, nan32), f32(nan32, 2)}, Want: []any{f32(nan32, nan32)}},
		{Name: "large integers compare exactly", Op: "aten::minimum.out", Args: []any{ints[int64](big, big-1), ints[int64](big-1, big)}, Want: []any{ints[int64](big-1, big-1)}},
		{Name: "integer power", Op: "aten::pow.Tensor_Tensor_out", Args: []any{ints[int64](3, 2, -1, 2, 0), ints[int64](39, 64, -3, -1, 0)}, Want: []any{ints[int64](4052555153018976267, 0, -1, 0, 1)}},
		{Name: "negative power of integers", Op: "aten::pow.Tensor_Scalar_out", Args: []any{ints[int64](3), -1}, Outs: []any{ints[int64](0)}, Refused: "argument 1: got -1"},
		{Name: "root of -Inf", Op: "aten::pow.Tensor_Scalar_out", Args: []any{f32(-inf32, 4), 0.5}, Want: []any{f32(nan32, 2)}},
		{Name: "length", Op: "aten::hypot.out", Args: []any{f32(3, -1e30, 1e-40, 0), f32(-4, 1e30, 0, 0)}, Want: []any{f32(5, 1.4142135e30, 1e-40, 0)}},
		{Name: "length of infinite things", Op: "aten::hypot.out", Args: []any{f64(infinity, notANumber, 1), f64(notANumber, -infinity, notANumber)}, Want: []any{f64(infinity, infinity, notANumber)}},
		{Name: "and of floats", Op: "aten::hypot.out", Args: []any{f32(-inf32, nan32, nan32), f32(nan32, inf32, 1)}, Want: []any{f32(inf32, inf32, nan32)}},
		{Name: "length of halves and integers", Op: "aten::hypot.out", Args: []any{as(tensor.Float16, 6, 30000), ints[int64](8, 40000)}, Want: []any{as(tensor.Float16, 10, 50000)}},
		{Name: "length of integers", Op: "aten::hypot.out", Args: []any{ints[int32](3), ints[int32](4)}, Outs: []any{f32(0)}, Refused: "argument 0: got int32 and int32"},
		{Name: "number to a power", Op: "aten::pow.Scalar_out", Args: []any{2, f32(3, -1)}, Want: []any{f32(8, 0.5)}},
	}...)
}

func TestLogic(t *testing.T) {
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "NaN equals nothing", Op: "aten::eq.Tensor_out", Args: []any{f32(1, nan32), f32(1, nan32)}, Want: []any{bools(true, false)}},
		{Name: "answer as a number", Op: "aten::lt.Tensor_out", Args: []any{f32(1, 2), f32(2, 1)}, Want: []any{as(tensor.Float16, 1, 0)}},
		{Name: "with a number of the type", Op: "aten::eq.Scalar_out", Args: []any{ints[uint8](255), -1}, Want: []any{bools(true)}},
		{Name: "without a sign", Op: "aten::gt.Tensor_out", Args: []any{ints[uint8](255, 1, 128), ints[uint8](1, 255, 128)}, Want: []any{bools(true, false, false)}},
		{Name: "fractions", Op: "aten::ge.Scalar_out", Args: []any{ints[int32](2, 3), 2.5}, Want: []any{bools(false, true)}},
		{Name: "complex is not ordered", Op: "aten::lt.Tensor_out", Args: []any{ints[complex64](1), ints[complex64](2)}, Outs: []any{bools(true)}, Refused: "argument 0: got complex64 and complex64"},
		{Name: "NaN is true", Op: "aten::logical_and.out", Args: []any{f32(nan32, 0, 1), f32(1, 1, 0)}, Want: []any{bools(true, false, false)}},
		{Name: "xor", Op: "aten::logical_xor.out", Args: []any{ints[int8](2, 0), bools(true, true)}, Want: []any{bools(false, true)}},
		{Name: "not", Op: "aten::logical_not.out", Args: []any{f64(0, 0.1)}, Want: []any{bools(true, false)}},
		{Name: "isinf", Op: "aten::isinf.out", Args: []any{as(tensor.Float16, infinity, 65504, notANumber)}, Want: []any{bools(true, false, false)}},
		{Name: "isnan of integers", Op: "aten::isnan.out", Args: []any{ints[int8](0)}, Want: []any{bools(false)}},
		{Name: "bits of bool", Op: "aten::bitwise_not.out", Args: []any{bools(true, false)}, Want: []any{bools(false, true)}},
		{Name: "bits", Op: "aten::bitwise_xor.Tensor_out", Args: []any{ints[uint8](0xf0, 1), ints[uint8](0xff, 3)}, Want: []any{ints[uint8](0x0f, 2)}},
		{Name: "bits of floats", Op: "aten::bitwise_and.Tensor_out", Args: []any{f32(1), f32(1)}, Outs: []any{f32(0)}, Refused: "argument 0: got float32 and float32"},
		{Name: "shifts left", Op: "aten::bitwise_left_shift.Tensor_out", Args: []any{ints[int8](1, 1, 1, 1), ints[int8](6, 7, 8, -1)}, Want: []any{ints[int8](64, -128, 0, 0)}},
		{Name: "shifts right", Op: "aten::bitwise_right_shift.Tensor_out", Args: []any{ints[int8](-128, -128, 64, -1), ints[int8](3, 100, -1, 7)}, Want: []any{ints[int8](-16, -1, 0, -1)}},
		{Name: "shifts right without a sign", Op: "aten::__rshift__.Scalar_out", Args: []any{ints[uint8](128, 255), 8}, Want: []any{ints[uint8](0, 0)}},
	}...)
}

func TestOneOperand(t *testing.T) {
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "least integer", Op: "aten::abs.out", Args: []any{ints[int8](-128, -3)}, Want: []any{ints[int8](-128, 3)}},
		{Name: "least int32", Op: "aten::abs.out", Args: []any{ints[int32](math.MinInt32, -3)}, Want: []any{ints[int32](math.MinInt32, 3)}},
		{Name: "modulus", Op: "aten::abs.out", Args: []any{ints[complex64](3 + 4i)}, Want: []any{f32(5)}},
		{Name: "sign of NaN", Op: "aten::sign.out", Args: []any{f32(nan32, -2, 0)}, Want: []any{f32(0, -1, 0)}},
		{Name: "relu", Op: "aten::relu.out", Args: []any{f32(-1, nan32, 2, -inf32, float32(math.Copysign(notANumber, -1)))}, Want: []any{f32(0, nan32, 2, 0, nan32)}},
		{Name: "ties to even", Op: "aten::round.out", Args: []any{f32(0.5, 1.5, -2.5)}, Want: []any{f32(0, 2, -2)}},
		{Name: "integers stay", Op: "aten::ceil.out", Args: []any{ints[int64](math.MaxInt64)}, Want: []any{ints[int64](math.MaxInt64)}},
		{Name: "another type", Op: "aten::floor.out", Args: []any{f32(1.5)}, Outs: []any{f64(0)}, Refused: "argument 1: got float64, want float32"},
		{Name: "conjugate", Op: "aten::_conj_physical.out", Args: []any{ints[complex128](1 + 2i)}, Want: []any{ints[complex128](1 - 2i)}},
		{Name: "function of bool", Op: "aten::exp.out", Args: []any{bools(false, true)}, Want: []any{f32(1, math.E)}},
		{Name: "function into half", Op: "aten::log.out", Args: []any{ints[int32](0, 1)}, Want: []any{as(tensor.Float16, -infinity, 0)}},
		{Name: "function into integers", Op: "aten::sin.out", Args: []any{f32(1)}, Outs: []any{ints[int32](0)}, Refused: "argument 1: got int32"},
		{Name: "gelu", Op: "aten::gelu.out", Args: []any{f32(1, -inf32, inf32), "none"}, Want: []any{f32(0.8413447, 0, inf32)}},
		{Name: "gelu by tanh", Op: "aten::gelu.out", Args: []any{f64(1), "tanh"}, Want: []any{f64(0.8411919906082768)}},
		{Name: "silu", Op: "aten::silu.out", Args: []any{f32(1, -2, 0, inf32, nan32)}, Want: []any{f32(0.7310586, -0.23840584, 0, inf32, nan32)}},
		{Name: "silu of doubles", Op: "aten::silu.out", Args: []any{f64(1)}, Want: []any{f64(0.7310585786300049)}},
		{Name: "hardswish", Op: "aten::hardswish.out", Args: []any{f32(1, -4, -1.5, 5, inf32, nan32)}, Want: []any{f32(0.6666667, 0, -0.375, 5, inf32, nan32)}},
		{Name: "hardswish of doubles", Op: "aten::hardswish.out", Args: []any{f64(1, -3)}, Want: []any{f64(2./3, 0)}},
		{Name: "no such gelu", Op: "aten::gelu.out", Args: []any{f32(1), "erf"}, Outs: []any{f32(0)}, Refused: `argument 1: got "erf"`},
		{Name: "elu", Op: "aten::elu.out", Args: []any{f32(2, -1, nan32), 3, 0.5, 2}, Want: []any{f32(1, 1.5*(1/(math.E*math.E)-1), nan32)}},
		{Name: "leaky", Op: "aten::leaky_relu.out", Args: []any{f32(2, -2, -inf32), 0.25}, Want: []any{f32(2, -0.5, -inf32)}},
		{Name: "logit", Op: "aten::logit.out", Args: []any{f64(0.5, 0, 1), nil}, Want: []any{f64(0, -infinity, infinity)}},
		{Name: "logit with eps", Op: "aten::logit.out", Args: []any{f64(0, 1, notANumber), 0.25}, Want: []any{f64(math.Log(1./3), math.Log(3), notANumber)}},
		{Name: "glu", Op: "aten::glu.out", Args: []any{tensor.Of([]float64{1, 0, 2, 0}, 2, 2), -1}, Want: []any{tensor.Of([]float64{0.5, 1}, 2, 1)}},
		{Name: "glu, outer dimension", Op: "aten::glu.out", Args: []any{tensor.Of([]float64{1, 2, 0, 0}, 2, 2), 0}, Want: []any{tensor.Of([]float64{0.5, 1}, 1, 2)}},
		{Name: "glu of three", Op: "aten::glu.out", Args: []any{f32(1, 2, 3), 0}, Outs: []any{f32(0)}, Refused: "argument 0: got float32 3"},
	}...)
}

func TestChoices(t *testing.T) {
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "where", Op: "aten::where.self_out", Args: []any{bools(true, false), f32(1, 2), f32(3, 4)}, Want: []any{f32(1, 4)}},
		{Name: "three shapes", Op: "aten::where.self_out",
			Args: []any{tensor.Of([]bool{true, false}, 2, 1), f32(1, 2), tensor.Of([]int64{9})}, Want: []any{tensor.Of([]float32{1, 2, 9, 9}, 2, 2)}},
		{Name: "bytes as condition", Op: "aten::where.self_out", Args: []any{ints[uint8](2, 0), ints[int8](1, 2), ints[int8](3, 4)}, Want: []any{ints[int8](1, 4)}},
		{Name: "numbers as condition", Op: "aten::where.self_out", Args: []any{f32(1), f32(1), f32(2)}, Outs: []any{f32(0)}, Refused: "argument 0: got float32"},
		{Name: "fill", Op: "aten::masked_fill.Scalar_out", Args: []any{f32(1, 2), bools(true, false), -infinity}, Want: []any{f32(-inf32, 2)}},
		{Name: "fill with what does not fit", Op: "aten::masked_fill.Scalar_out", Args: []any{ints[int8](1), bools(true), 200}, Outs: []any{ints[int8](0)}, Refused: "argument 2: got 200"},
		{Name: "clamp", Op: "aten::clamp.out", Args: []any{f32(-1, 0.5, 2, nan32), 0, 1}, Want: []any{f32(0, 0.5, 1, nan32)}},
		{Name: "bounds crossed", Op: "aten::clamp.out", Args: []any{f32(-1, 5), 3, 1}, Want: []any{f32(1, 1)}},
		{Name: "lower bound only", Op: "aten::clamp.out", Args: []any{ints[int32](-1, 5), 2, nil}, Want: []any{ints[int32](2, 5)}},
		{Name: "float bound of integers", Op: "aten::clamp.out", Args: []any{ints[int32](-1, 5), nil, 2.5}, Want: []any{f32(-1, 2.5)}},
		{Name: "no bound", Op: "aten::clamp.out", Args: []any{f32(1), nil, nil}, Outs: []any{f32(0)}, Refused: "argument 1: got None"},
		{Name: "bound that does not fit", Op: "aten::clamp.out", Args: []any{ints[int8](1), nil, 300}, Outs: []any{ints[int8](0)}, Refused: "argument 2: got 300"},
		{Name: "bounds as tensors", Op: "aten::clamp.Tensor_out", Args: []any{f32(-1, 0, 1), tensor.Of([]float32{-0.5}), f32(5, 5, 0.5)}, Want: []any{f32(-0.5, 0, 0.5)}},
		{Name: "upper tensor only", Op: "aten::clamp.Tensor_out", Args: []any{f32(-1, 1), nil, f32(0, 0)}, Want: []any{f32(-1, 0)}},
		{Name: "hardtanh", Op: "aten::hardtanh.out", Args: []any{f32(-3, 0, 9), 0.0, 6.0}, Want: []any{f32(0, 0, 6)}},
		{Name: "no dropout", Op: "aten::native_dropout.out", Args: []any{f32(1, 2), 0.5, false}, Want: []any{f32(1, 2), bools(true, true)}},
		{Name: "all dropped", Op: "aten::native_dropout.out", Args: []any{f32(1, inf32), 1.0, true}, Want: []any{f32(0, 0), bools(false, false)}},
		{Name: "no probability", Op: "aten::native_dropout.out", Args: []any{f32(1), 1.5, true}, Outs: []any{f32(0), bools(false)}, Refused: "argument 1: got 1.5"},
	}...)
}

// layouts are shapes and dim orders of two operands and a result that meet every way
// of fetching an operand: as it lies, one for all, by rows, by columns, with short and
// with long runs.
var layouts = []struct {
	a, b, out                []int
	orderA, orderB, orderOut []uint8
}{
	{a: []int{2, 3, 1, 5}, b: []int{3, 4, 1}, out: []int{2, 3, 4, 5}},
	{a: []int{700, 3}, b: []int{3}, out: []int{700, 3}},
	{a: []int{3, 700}, b: []int{3, 1}, out: []int{3, 700}},
	{a: []int{40, 64}, b: []int{64}, out: []int{40, 64}},
	{a: []int{}, b: []int{1, 1}, out: []int{1, 1}},
	{a: []int{1}, b: []int{1000}, out: []int{1000}},
	{a: []int{0, 3}, b: []int{1, 3}, out: []int{0, 3}},
	{a: []int{2, 9, 7, 5}, b: []int{2, 9, 7, 5}, out: []int{2, 9, 7, 5}, orderA: []uint8{0, 2, 3, 1}},
	{a: []int{2, 9, 7, 5}, b: []int{9, 1, 1}, out: []int{2, 9, 7, 5}, orderA: []uint8{0, 2, 3, 1}, orderOut: []uint8{0, 2, 3, 1}},
	{a: []int{2, 9, 7, 5}, b: []int{2, 1, 7, 5}, out: []int{2, 9, 7, 5}, orderB: []uint8{0, 2, 3, 1}, orderOut: []uint8{3, 1, 0, 2}},
	{a: []int{30, 30}, b: []int{30, 30}, out: []int{30, 30}, orderA: []uint8{1, 0}, orderB: []uint8{1, 0}, orderOut: []uint8{1, 0}},
}

// at is the element of a tensor at an index of the broadcast result.
func at(t *tensor.Tensor, index []int) float64 {
	offset, missing := 0, len(index)-t.Rank()
	for d, n := range t.Sizes {
		if n != 1 {
			offset += index[missing+d] * t.Strides[d]
		}
	}
	v, _ := tensor.Get[float64](t.Data[offset*t.DType.Size():], t.DType)
	return v
}

func TestLayouts(t *testing.T) {
	op, _, _, _ := set.Lookup("aten::sub.out")
	pool := cpu.NewPool(3)
	defer pool.Close()
	for _, l := range layouts {
		for _, types := range [][3]tensor.DType{
			{tensor.Float32, tensor.Float32, tensor.Float32}, {tensor.Int8, tensor.Float64, tensor.Float64},
			{tensor.BFloat16, tensor.Float32, tensor.Float16}, {tensor.Int16, tensor.Int64, tensor.Int32},
		} {
			a, b, out := fill(types[0], l.a, l.orderA), fill(types[1], l.b, l.orderB), fill(types[2], l.out, l.orderOut)
			if err := op.Func(kernels.NewCtx(pool), args(a, b, 1, out)); err != nil {
				t.Fatalf("%v - %v: %v", a, b, err)
			}
			for i := range out.Numel() {
				index := position(i, out.Sizes)
				if got, want := at(out, index), at(a, index)-at(b, index); got != want {
					t.Fatalf("%v order %v - %v order %v = %v order %v at %v: got %v, want %v", a, a.DimOrder, b, b.DimOrder, out, out.DimOrder, index, got, want)
				}
			}
		}
	}
}

// fill makes a tensor of small whole numbers, exact in every type.
func fill(d tensor.DType, sizes []int, order []uint8) *tensor.Tensor {
	t := tensor.Make(d, sizes, order, tensor.Static)
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	for i := range t.Numel() {
		tensor.Put(t.Data[i*d.Size():], d, int64(rand.IntN(50)))
	}
	return t
}

func position(i int, sizes []int) []int {
	index := make([]int, len(sizes))
	for d := len(sizes) - 1; d >= 0; d-- {
		index[d], i = i%sizes[d], i/sizes[d]
	}
	return index
}

// broadcasts are sizes of a result and of an operand that is broadcast to them.
var broadcasts = [][2][]int{
	{{300, 64}, {64}}, {{300, 64}, {300, 1}}, {{33, 97}, {97}}, {{33, 97}, {33, 1}}, {{5, 4099}, {4099}}, {{5, 4099}, {5, 1}},
	{{1500, 7}, {1500, 1}}, {{1500, 7}, {7}}, {{9, 30, 64}, {9, 1, 64}}, {{9, 30, 64}, {30, 64}}, {{9, 30, 64}, {9, 1, 1}}, {{9, 30, 64}, {30, 1}},
	{{2, 64, 28, 28}, {64, 1, 1}}, {{2, 64, 28, 28}, {2, 1, 28, 28}}, {{2, 64, 28, 28}, {28, 1}}, {{2, 64, 28, 28}, {2, 64, 1, 28}},
	{{2, 64, 28, 28}, {2, 1, 28, 1}}, {{1, 3, 300, 301}, {3, 1, 1}}, {{3, 5, 190, 181}, {3, 5, 190, 1}}, {{3, 5, 190, 181}, {3, 1, 1, 181}},
}

// TestBroadcast compares with the same call whose operand is expanded, on one thread and on three.
func TestBroadcast(t *testing.T) {
	pool := cpu.NewPool(3)
	defer pool.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for _, sizes := range broadcasts {
		for _, types := range [][2]tensor.DType{{tensor.Float32, tensor.Float32}, {tensor.Float16, tensor.Float32}, {tensor.Float32, tensor.Float16},
			{tensor.Int32, tensor.Int8}, {tensor.Float64, tensor.Float64}} {
			if len(sizes[0]) == 4 && types[0] != tensor.Float32 {
				continue // for time
			}
			a, b := kerneltest.Noise(r, types[0], sizes[0], nil), kerneltest.Noise(r, types[1], sizes[1], nil)
			all := tensor.New(types[1], sizes[0]...)
			for i := range all.Numel() {
				tensor.Put(all.Data[i*all.DType.Size():], all.DType, at(b, position(i, sizes[0])))
			}
			for name, list := range map[string]func(x, y, out *tensor.Tensor) kernels.Args{
				"aten::add.out":     func(x, y, out *tensor.Tensor) kernels.Args { return args(x, y, 1, out) },
				"aten::sub.out":     func(x, y, out *tensor.Tensor) kernels.Args { return args(x, y, 1, out) },
				"aten::mul.out":     func(x, y, out *tensor.Tensor) kernels.Args { return args(x, y, out) },
				"aten::div.out":     func(x, y, out *tensor.Tensor) kernels.Args { return args(x, y, out) },
				"aten::maximum.out": func(x, y, out *tensor.Tensor) kernels.Args { return args(x, y, out) },
			} {
				for _, c := range []*kernels.Ctx{kernels.NewCtx(nil), kernels.NewCtx(pool)} {
					checkBroadcast(t, c, name, list, [3]*tensor.Tensor{a, b, all})
				}
			}
		}
	}
}

// checkBroadcast has the operand first and second.
func checkBroadcast(t *testing.T, c *kernels.Ctx, name string, list func(x, y, out *tensor.Tensor) kernels.Args, x [3]*tensor.Tensor) {
	t.Helper()
	op, _, _, _ := set.Lookup(name)
	sizes := x[0].Sizes
	run := func(x, y *tensor.Tensor) *tensor.Tensor {
		d := tensor.Promote(x.DType, y.DType)
		if name == "aten::div.out" && d == tensor.Int32 {
			d = tensor.Float32
		}
		out := tensor.New(d, sizes...)
		if err := op.Func(c, list(x, y, out)); err != nil {
			t.Fatalf("%s of %v and %v: %v", name, x, y, err)
		}
		return out
	}
	for _, got := range [][2]*tensor.Tensor{{run(x[0], x[1]), run(x[0], x[2])}, {run(x[1], x[0]), run(x[2], x[0])}} {
		if err := compare.Tensors(got[0], got[1], kernels.Tolerance{}); err != nil {
			t.Fatalf("%s of %v and %v: %v", name, x[0], x[1], err)
		}
	}
}

// TestThreads compares a large execute on three threads with one on a single one.
func TestThreads(t *testing.T) {
	pool := cpu.NewPool(3)
	defer pool.Close()
	for _, name := range []string{"aten::add.out", "aten::eq.Tensor_out"} {
		op, sig, _, _ := set.Lookup(name)
		n := 3 * cpu.Grain(1, additionCost)
		a, b := fill(tensor.Float32, []int{n / 8, 8}, nil), fill(tensor.Float32, []int{8}, nil)
		one, three := tensor.New(tensor.Float32, n/8, 8), tensor.New(tensor.Float32, n/8, 8)
		call := func(ctx *kernels.Ctx, out *tensor.Tensor) {
			list := args(a, b, out)
			if len(sig.Args) == 4 {
				list = args(a, b, 1, out)
			}
			if err := op.Func(ctx, list); err != nil {
				t.Fatal(err)
			}
		}
		call(kernels.NewCtx(nil), one)
		call(kernels.NewCtx(pool), three)
		if err := compare.Tensors(three, one, kernels.Tolerance{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConvert(t *testing.T) {
	for _, from := range []tensor.DType{tensor.Float32, tensor.Int8, tensor.Bool, tensor.Float16, tensor.Complex64} {
		for _, to := range []tensor.DType{tensor.Float64, tensor.BFloat16, tensor.Int64, tensor.Bool, tensor.Float32, tensor.Complex128} {
			src := tensor.Make(from, []int{3, 1, 4}, []uint8{2, 0, 1}, tensor.Static)
			src.Bind(tensor.AlignedBytes(src.NBytes()))
			dst := tensor.New(to, 2, 3, 5, 4)
			if !from.IsComplex() {
				for i := range src.Numel() {
					tensor.Put(src.Data[i*from.Size():], from, int64(i))
				}
			}
			if err := Convert(kernels.NewCtx(nil), dst, 1, src, 0); err != nil {
				t.Fatalf("%v to %v: %v", from, to, err)
			}
			if from.IsComplex() || to.IsComplex() {
				continue
			}
			for i := range dst.Numel() {
				index := position(i, dst.Sizes)
				want := at(src, index)
				if to == tensor.Bool && want != 0 {
					want = 1
				}
				if got := at(dst, index); got != want {
					t.Fatalf("%v to %v at %v: got %v, want %v", from, to, index, got, want)
				}
			}
		}
	}
	if err := Convert(kernels.NewCtx(nil), f32(0, 0), 1, f64(1, 2, 3), 0); err == nil {
		t.Error("three elements for two: no error")
	}
}

func TestDropoutKeepsItsShare(t *testing.T) {
	const n, p = 100000, 0.3
	in, out, mask := tensor.New(tensor.Float32, n), tensor.New(tensor.Float32, n), tensor.New(tensor.Bool, n)
	for i := range tensor.Data[float32](in) {
		tensor.Data[float32](in)[i] = 7
	}
	train, list := tensor.BoolValue(true), args(in, p)
	list = append(list[:2], &train, new(tensor.TensorValue(out)), new(tensor.TensorValue(mask)), &tensor.Value{})
	if err := nativeDropout(kernels.NewCtx(nil), list); err != nil {
		t.Fatal(err)
	}
	kept := 0
	for i, v := range tensor.Data[float32](out) {
		want := float32(0)
		if mask.Data[i] == 1 {
			kept++
			want = float32(7) * float32(1/(1-p))
		}
		if v != want {
			t.Fatalf("element %d, mask %d: got %v, want %v", i, mask.Data[i], v, want)
		}
	}
	if share := float64(kept) / n; math.Abs(share-(1-p)) > 0.01 {
		t.Errorf("kept %.3f, want about %.3f", share, 1-p)
	}
}

func TestAllocatesNothing(t *testing.T) {
	big := fill(tensor.Float16, []int{300, 300}, []uint8{1, 0})
	for i, c := range []kerneltest.Case{
		{Op: "aten::add.out", Args: []any{f32(1, 2), f32(3), 1}, Want: []any{f32(0, 0)}},
		{Op: "aten::add.out", Args: []any{big, tensor.New(tensor.Int8, 300), 2}, Want: []any{tensor.New(tensor.Float16, 300, 300)}},
		{Op: "aten::mul.Scalar_out", Args: []any{big, 0.5}, Want: []any{tensor.New(tensor.Float16, 300, 300)}},
		{Op: "aten::eq.Tensor_out", Args: []any{big, big}, Want: []any{tensor.New(tensor.Int8, 300, 300)}},
		{Op: "aten::where.self_out", Args: []any{bools(true), big, tensor.New(tensor.Float16, 1)}, Want: []any{tensor.New(tensor.Float16, 300, 300)}},
		{Op: "aten::glu.out", Args: []any{big, 0}, Want: []any{tensor.New(tensor.Float16, 150, 300)}},
		{Op: "aten::sigmoid.out", Args: []any{big}, Want: []any{tensor.New(tensor.Float32, 300, 300)}},
		{Op: "aten::mul.out", Args: []any{ints[complex64](1), ints[complex64](1)}, Want: []any{ints[complex64](1)}},
		{Op: "aten::native_dropout.out", Args: []any{f32(1, 2), 0.5, true}, Want: []any{f32(0, 0), bools(false, false)}},
	} {
		c.Name = fmt.Sprint(i, " ", c.Op)
		kerneltest.NoAllocs(t, set, c)
	}
}
