package elementwise

import (
	"math"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var (
	choice         = table{f32: select32[float32], f64: selectFloat64, i32: select32[int32], i64: selectAny[int64], c: selectAny[complex128]}
	clamp          = table{f32: clamp32, f64: clamp64, i32: clampInt32, i64: clampValues[int64]}
	clampByTensors = table{f32: clampTensors[float32], f64: clampTensors[float64], i32: clampTensors[int32], i64: clampTensors[int64]}
)

var selectOps = []kernels.Op{
	{Schema: "aten::where.self_out(Tensor condition, Tensor self, Tensor other, *, Tensor(a!) out)", Func: where, Class: opclass.Where, DTypes: allComplex},
	{Schema: "aten::masked_fill.Scalar_out(Tensor self, Tensor mask, Scalar value, *, Tensor(a!) out)", Func: maskedFill, DTypes: allComplex},
	{Schema: "aten::clamp.out(Tensor self, Scalar? min=None, Scalar? max=None, *, Tensor(a!) out)",
		Func: clampNumbers, Class: opclass.Clamp, DTypes: all},
	{Schema: "aten::clamp.Tensor_out(Tensor self, Tensor? min=None, Tensor? max=None, *, Tensor(a!) out)", Func: clampBounds, DTypes: all},
	{Schema: "aten::hardtanh.out(Tensor self, Scalar min_val=-1, Scalar max_val=1, *, Tensor(a!) out)",
		Func: hardtanh, Class: opclass.Hardtanh, DTypes: numbers},
}

// maskArg returns a mask operand: bool, or uint8 as in early versions of PyTorch.
func maskArg(a kernels.Args, i int) (arg, error) {
	return tensorArg(a, i), kernels.WantDType(i, a.Tensor(i), tensor.Bool, tensor.Uint8)
}

func where(c *kernels.Ctx, a kernels.Args) (err error) {
	cl := call{in: [maxIn + 1]arg{tensorArg(a, 1), tensorArg(a, 2)}, out: outArg(a)}
	if cl.in[maskIn], err = maskArg(a, 0); err != nil {
		return err
	}
	if err := cl.resolve(anyType, false); err != nil {
		return err
	}
	return choice.run(c, a, &cl)
}

// maskedFill selects between the number and self, whose type both have.
func maskedFill(c *kernels.Ctx, a kernels.Args) (err error) {
	cl := call{in: [maxIn + 1]arg{{i: 2, number: true}, tensorArg(a, 0)}, out: outArg(a)}
	if cl.in[maskIn], err = maskArg(a, 1); err != nil {
		return err
	}
	cl.num[operandNum] = a.Scalar(2)
	if err := cl.resolveAs(a.Tensor(0).DType, anyType, false); err != nil {
		return err
	}
	if err := kernels.CheckFits(2, a.Scalar(2), a.Tensor(0).DType); err != nil {
		return err
	}
	return choice.run(c, a, &cl)
}

// clampNumbers promotes self and the bounds that are not None.
func clampNumbers(c *kernels.Ctx, a kernels.Args) error {
	if a.IsNone(1) && a.IsNone(2) {
		return kernels.Bad(1, "None", "a bound here or in the next argument")
	}
	types := NewResultType()
	types.Tensor(a.Tensor(0))
	for i := 1; i <= 2; i++ {
		if !a.IsNone(i) {
			types.Number(a.Scalar(i))
		}
	}
	return clampTo(c, a, types.Result())
}

// clampTo clamps self to the numbers in arguments 1 and 2 in the type common. In place of None it takes the bounds of the
// compute type, which change no element.
func clampTo(c *kernels.Ctx, a kernels.Args, common tensor.DType) error {
	cl := call{in: [maxIn + 1]arg{tensorArg(a, 0)}, out: outArg(a)}
	if err := cl.resolveAs(common, numeric, false); err != nil {
		return err
	}
	cl.num[0], cl.num[1] = bounds(cl.compute)
	for i := 1; i <= 2; i++ {
		if a.IsNone(i) {
			continue
		}
		if err := kernels.CheckFits(i, a.Scalar(i), common); err != nil {
			return err
		}
		cl.num[i-1] = wrap(a.Scalar(i), common)
	}
	return clamp.run(c, a, &cl)
}

// bounds returns the least and the largest number of a compute type.
func bounds(compute tensor.DType) (least, largest kernels.Scalar) {
	if compute.IsInt() {
		lo, hi := compute.IntRange()
		return kernels.Scalar{Type: tensor.Int64, I: lo}, kernels.Scalar{Type: tensor.Int64, I: int64(hi)}
	}
	return kernels.Scalar{Type: tensor.Float64, F: math.Inf(-1)}, kernels.Scalar{Type: tensor.Float64, F: math.Inf(1)}
}

// hardtanh computes in self's type, to which the bounds are converted.
func hardtanh(c *kernels.Ctx, a kernels.Args) error {
	self := a.Tensor(0)
	if self.DType == tensor.Bool {
		return badType(tensorArg(a, 0))
	}
	if err := wantSelfType(a); err != nil {
		return err
	}
	return clampTo(c, a, self.DType)
}

func clampBounds(c *kernels.Ctx, a kernels.Args) error {
	cl := call{in: [maxIn + 1]arg{tensorArg(a, 0), tensorArg(a, 1), tensorArg(a, 2)}, out: outArg(a)}
	t := &clampByTensors
	switch low, high := cl.in[1].Tensor != nil, cl.in[2].Tensor != nil; {
	case !low && !high:
		return kernels.Bad(1, "None", "a bound here or in the next argument")
	case !low:
		t, cl.in[1], cl.in[2] = &smallest.table, cl.in[2], arg{}
	case !high:
		t = &largest.table
	}
	if err := cl.resolve(numeric, false); err != nil {
		return err
	}
	return t.run(c, a, &cl)
}

// A NaN among the operands of min and max is their result.

func clampValues[C ordered](k *block[C]) {
	low, high := k.num[0], k.num[1]
	map1(k, func(x C) C { return min(max(x, low), high) })
}

// clamp64 computes a maximum or a minimum where the other bound is infinite, which is faster.
func clamp64(k *block[float64]) {
	switch low, high := k.num[0], k.num[1]; {
	case math.IsInf(high, 1):
		map1(k, func(x float64) float64 { return max(x, low) })
	case math.IsInf(low, -1):
		map1(k, func(x float64) float64 { return min(x, high) })
	default:
		clampValues(k)
	}
}

// clamp32 uses the loop above for a NaN bound: vector minima would return the operand.
func clamp32(k *block[float32]) {
	if low, high := k.num[0], k.num[1]; low == low && high == high {
		simd.Clamp(k.out, k.a, low, high)
		return
	}
	clampValues(k)
}

func clampInt32(k *block[int32]) { simd.ClampInt32(k.out, k.a, k.num[0], k.num[1]) }

func clampTensors[C ordered](k *block[C]) {
	map3(k, func(x, low, high C) C { return min(max(x, low), high) })
}

func selectAny[C compute](k *block[C]) {
	out := k.out
	a, b, mask := k.a[:len(out)], k.b[:len(out)], k.mask[:len(out)]
	for i := range out {
		v := b[i]
		if mask[i] != 0 {
			v = a[i]
		}
		out[i] = v
	}
}

// The kernels below choose among bits, without a branch for the processor to guess.

func select32[C float32 | int32](k *block[C]) { simd.Select(bits(k.out), k.mask, bits(k.a), bits(k.b)) }

func bits[C float32 | int32](x []C) []uint32 { return tensor.View[uint32](tensor.BytesOf(x)) }

func selectFloat64(k *block[float64]) {
	out := k.out
	a, b, mask := k.a[:len(out)], k.b[:len(out)], k.mask[:len(out)]
	for i := range out {
		v, w := math.Float64bits(b[i]), math.Float64bits(a[i])
		if mask[i] != 0 {
			v = w
		}
		out[i] = math.Float64frombits(v)
	}
}
