package prim

import (
	"math"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var set = kernels.NewSet(Ops())

func TestTable(t *testing.T) { kerneltest.Table(t, set) }

func TestRandom(t *testing.T) { kerneltest.Random(t, set, 200) }

func FuzzCalls(f *testing.F) { kerneltest.Fuzz(f, set) }

func TestNumbers(t *testing.T) {
	const least = int64(math.MinInt64)
	inf := math.Inf(1)
	for _, c := range []struct {
		op      string
		args    []any
		want    any
		refused string
	}{
		{op: "add.Scalar", args: []any{2, 3}, want: 5},
		{op: "add.Scalar", args: []any{2, 0.5}, want: 2.5},
		{op: "add.Scalar", args: []any{int64(math.MaxInt64), 1}, want: least},
		{op: "add.Scalar", args: []any{true, 1}, refused: "argument 0: got bool, want a number"},
		{op: "sub.Scalar", args: []any{2, 3}, want: -1},
		{op: "mul.Scalar", args: []any{-2.0, 3}, want: -6.0},
		{op: "floordiv.Scalar", args: []any{-7, 2}, want: -4},
		{op: "floordiv.Scalar", args: []any{7, -2.0}, want: -4.0},
		{op: "floordiv.Scalar", args: []any{-7, 0.0}, want: -inf},
		{op: "floordiv.Scalar", args: []any{7, 0}, refused: "argument 1: got 0"},
		{op: "floordiv.Scalar", args: []any{least, -1}, refused: "argument 0: got -9223372036854775808 by -1"},
		{op: "floordiv.int", args: []any{-7, 2}, want: -4},
		{op: "mod.Scalar", args: []any{-7, 3}, want: 2},
		{op: "mod.Scalar", args: []any{7, -3}, want: -2},
		{op: "mod.Scalar", args: []any{7, 0}, refused: "argument 1: got 0"},
		{op: "mod.int", args: []any{least, -1}, refused: "argument 0"},
		{op: "truediv.Scalar", args: []any{7, 2}, want: 3.5},
		{op: "truediv.Scalar", args: []any{7, 0}, want: inf},
		{op: "sym_max.Scalar", args: []any{7, -2}, want: 7},
		{op: "sym_min.Scalar", args: []any{7, -2}, want: -2},
		{op: "eq.Scalar", args: []any{3, 3.0}, want: true},
		{op: "eq.Scalar", args: []any{true, true}, want: true},
		{op: "eq.Scalar", args: []any{true, 1}, refused: "argument 1: got int, want bool"},
		{op: "eq.Scalar", args: []any{math.NaN(), math.NaN()}, want: false},
		{op: "gt.Scalar", args: []any{int64(math.MaxInt64), int64(math.MaxInt64 - 1)}, want: true},
		{op: "gt.Scalar", args: []any{math.NaN(), 1}, want: false},
		{op: "lt.Scalar", args: []any{1, 2}, want: true},
		{op: "ge.Scalar", args: []any{2, 2}, want: true},
		{op: "le.Scalar", args: []any{3, 2}, want: false},
		{op: "neg.Scalar", args: []any{3}, want: -3},
		{op: "neg.Scalar", args: []any{2.5}, want: -2.5},
		{op: "sym_float.Scalar", args: []any{3}, want: 3.0},
		{op: "sym_int.Scalar", args: []any{-2.7}, want: -2},
		{op: "sym_int.Scalar", args: []any{math.NaN()}, refused: "argument 0: got NaN"},
		{op: "sym_int.Scalar", args: []any{0x1p63}, refused: "argument 0"},
		{op: "ceil.Scalar", args: []any{-2.7}, want: -2},
		{op: "round.Scalar", args: []any{2.5}, want: 2},
		{op: "trunc.Scalar", args: []any{2.7}, want: 2},
		{op: "sym_not.Scalar", args: []any{true}, want: false},
		{op: "sym_ite.Scalar", args: []any{true, 1, 2.5}, want: 1},
		{op: "sym_ite.Scalar", args: []any{false, 1, 2.5}, want: 2.5},
	} {
		kerneltest.Run(t, set, kerneltest.Case{Name: c.op, Op: "executorch_prim::" + c.op, Args: c.args, Want: []any{c.want}, Refused: c.refused})
	}
}

// TestResultInPlace increments a loop counter.
func TestResultInPlace(t *testing.T) {
	counter, one := tensor.IntValue(41), tensor.IntValue(1)
	op, _, _, _ := set.Lookup("executorch_prim::add.Scalar")
	if err := op.Func(kernels.NewCtx(nil), kernels.Args{&counter, &one, &counter}); err != nil || counter.Int != 42 {
		t.Fatalf("got %d, %v, want 42", counter.Int, err)
	}
}

func TestTensors(t *testing.T) {
	m := tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "size", Op: "aten::sym_size.int", Args: []any{m, -1}, Want: []any{3}},
		kerneltest.Case{Name: "stride", Op: "aten::sym_stride.int", Args: []any{m, 0}, Want: []any{3}},
		kerneltest.Case{Name: "no such stride", Op: "aten::sym_stride.int", Args: []any{m, -3}, Refused: "argument 1: got -3"},
		kerneltest.Case{Name: "offset", Op: "aten::sym_storage_offset", Args: []any{m}, Want: []any{0}},
		kerneltest.Case{Name: "no such dimension", Op: "aten::sym_size.int", Args: []any{m, 2}, Refused: "argument 1: got 2"},
		kerneltest.Case{Name: "numel", Op: "aten::sym_numel", Args: []any{m}, Want: []any{6}},
		kerneltest.Case{Name: "double", Op: "aten::_local_scalar_dense", Args: []any{m}, Want: []any{1.0}},
		kerneltest.Case{Name: "int", Op: "aten::_local_scalar_dense", Args: []any{tensor.Of([]uint8{200})}, Want: []any{200}},
		kerneltest.Case{Name: "bool", Op: "aten::_local_scalar_dense", Args: []any{tensor.Of([]bool{true}, 1)}, Want: []any{true}},
		kerneltest.Case{Name: "no element", Op: "aten::_local_scalar_dense", Args: []any{tensor.New(tensor.Int8, 0)}, Refused: "argument 0"},
	)
}

func TestCopyIndex(t *testing.T) {
	to := tensor.Make(tensor.Int32, []int{3, 2}, nil, tensor.DynamicBound)
	to.Bind(tensor.AlignedBytes(to.NBytes()))
	op, _, _, _ := set.Lookup("executorch_prim::et_copy_index.tensor")
	ctx := kernels.NewCtx(nil)
	call := func(from *tensor.Tensor, index int64) error {
		a, b, i := tensor.TensorValue(to), tensor.TensorValue(from), tensor.IntValue(index)
		return op.Func(ctx, kernels.Args{&a, &b, &i})
	}
	for i := range 3 {
		if err := call(tensor.Of([]int32{int32(i), int32(10 * i)}, 2), int64(i)); err != nil {
			t.Fatal(err)
		}
		if to.Sizes[0] != i+1 {
			t.Fatalf("after row %d: got %v", i, to)
		}
	}
	if err := compare.Tensors(to, tensor.Of([]int32{0, 0, 1, 10, 2, 20}, 3, 2), kernels.Tolerance{}); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"row beyond the bound": call(tensor.Of([]int32{1, 2}, 2), 3),
		"negative row":         call(tensor.Of([]int32{1, 2}, 2), -1),
		"row of other sizes":   call(tensor.Of([]int32{1, 2, 3}, 3), 0),
		"row of another type":  call(tensor.Of([]int64{1, 2}, 2), 0),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestView(t *testing.T) {
	self := tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	op, _, _, _ := set.Lookup("executorch_prim::et_view.default")
	three, rest, four := tensor.IntValue(3), tensor.IntValue(-1), tensor.IntValue(4)
	for _, c := range []struct {
		name  string
		out   *tensor.Tensor
		sizes []*tensor.Value
		ok    bool
	}{
		{"inferred", tensor.Make(tensor.Float32, []int{3, 2}, nil, tensor.Static), []*tensor.Value{&three, &rest}, true},
		{"does not divide", tensor.Make(tensor.Float32, []int{4, 2}, nil, tensor.Static), []*tensor.Value{&four, &rest}, false},
		{"another type", tensor.Make(tensor.Int32, []int{3, 2}, nil, tensor.Static), []*tensor.Value{&three, &rest}, false},
		{"other sizes", tensor.Make(tensor.Float32, []int{2, 3}, nil, tensor.Static), []*tensor.Value{&three, &rest}, false},
		{"other order", tensor.Make(tensor.Float32, []int{3, 2}, []uint8{1, 0}, tensor.Static), []*tensor.Value{&three, &rest}, false},
	} {
		a, list, out := tensor.TensorValue(self), tensor.NewList(tensor.KindIntList, c.sizes), tensor.TensorValue(c.out)
		err := op.Func(kernels.NewCtx(nil), kernels.Args{&a, &list, &out})
		if (err == nil) != c.ok {
			t.Errorf("%s: error %v", c.name, err)
		}
		if err == nil && &c.out.Data[0] != &self.Data[0] {
			t.Errorf("%s: the bytes are not shared", c.name)
		}
	}
}
