package factory

import (
	"fmt"
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

func of[T tensor.Element](v ...T) *tensor.Tensor { return tensor.Of(v, len(v)) }

// as returns v stored as another type.
func as(d tensor.DType, v ...float64) *tensor.Tensor {
	t := tensor.New(d, len(v))
	tensor.Cast(t, of(v...))
	return t
}

// ordered returns 0, 1, 2, … in logical order, in memory of the given dim order.
func ordered(d tensor.DType, order []uint8, sizes ...int) *tensor.Tensor {
	t := tensor.Make(d, sizes, order, tensor.Static)
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	for i := range t.Numel() {
		rest, at := i, 0
		for dim := len(sizes) - 1; dim >= 0; dim-- {
			at += rest % sizes[dim] * t.Strides[dim]
			rest /= sizes[dim]
		}
		tensor.Put(t.Data[at*d.Size():], d, int64(i))
	}
	return t
}

func TestFill(t *testing.T) {
	nan := math.NaN()
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "full", Op: "aten::full.out", Args: []any{[]int{3}, 2.5}, Want: []any{of[float32](2.5, 2.5, 2.5)}},
		{Name: "a fraction is cut off", Op: "aten::full.out", Args: []any{[]int{1}, -2.9}, Want: []any{of[int16](-2)}},
		{Name: "too large", Op: "aten::full.out", Args: []any{[]int{1}, 300}, Outs: []any{of[int8](0)}, Refused: "argument 1: got 300"},
		{Name: "NaN as integer", Op: "aten::full.out", Args: []any{[]int{1}, nan}, Outs: []any{of[int8](0)}, Refused: "argument 1: got NaN"},
		{Name: "negative size", Op: "aten::full.out", Args: []any{[]int{-1}, 1}, Outs: []any{of[int8](0)}, Refused: "argument 0"},
		{Name: "other size", Op: "aten::full.out", Args: []any{[]int{2}, 1}, Outs: []any{of[int8](0)}, Refused: "out argument 2: cannot resize to 2"},
		{Name: "long", Op: "aten::full.out", Args: []any{[]int{20001}, true}, Want: []any{of(repeated(20001, true)...)}},
		{Name: "like", Op: "aten::full_like.out", Args: []any{of[int8](1, 2), 7, nil}, Want: []any{as(tensor.BFloat16, 7, 7)}},
		{Name: "fill", Op: "aten::fill.Scalar_out", Args: []any{of[int8](1, 2), -1}, Want: []any{of[uint8](255, 255)}},
		{Name: "fill by a tensor", Op: "aten::fill.Tensor_out", Args: []any{of[int8](1, 2), of(2.9)}, Want: []any{of[int8](2, 2)}},
		{Name: "fill by two elements", Op: "aten::fill.Tensor_out", Args: []any{of[int8](1), of(1., 2.)}, Outs: []any{of[int8](0)}, Refused: "argument 1: got float64 2"},
		{Name: "scalar", Op: "aten::scalar_tensor.out", Args: []any{3}, Want: []any{tensor.Of([]int64{3})}},
		{Name: "ones", Op: "aten::ones.out", Args: []any{[]int{2}}, Want: []any{as(tensor.Float16, 1, 1)}},
		{Name: "zeros of any type", Op: "aten::zeros.out", Args: []any{[]int{2}}, Want: []any{of[complex64](0, 0)}},
		{Name: "empty", Op: "aten::empty.out", Args: []any{[]int{0, 3}, nil}, Want: []any{tensor.New(tensor.Int8, 0, 3)}},
	}...)
}

func repeated[T any](n int, v T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = v
	}
	return s
}

func TestArange(t *testing.T) {
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "end", Op: "aten::arange.out", Args: []any{3.5}, Want: []any{of[float32](0, 1, 2, 3)}},
		{Name: "start and step", Op: "aten::arange.start_out", Args: []any{1, 10, 4}, Want: []any{of[int64](1, 5, 9)}},
		{Name: "downward", Op: "aten::arange.start_out", Args: []any{2, -1, -1.5}, Want: []any{of[float32](2, 0.5)}},
		{Name: "integers of fractions", Op: "aten::arange.start_out", Args: []any{2.1, -2.9, -1.0}, Want: []any{of[uint8](2, 1, 0, 255, 254)}},
		{Name: "none", Op: "aten::arange.start_out", Args: []any{3, 3, 1}, Want: []any{of[int8]()}},
		{Name: "more than a block", Op: "aten::arange.out", Args: []any{1300}, Want: []any{ordered(tensor.Int32, nil, 1300)}},
		{Name: "wrong side", Op: "aten::arange.start_out", Args: []any{3, 0, 1}, Outs: []any{of[int8]()}, Refused: "argument 1: got 0 from 3 by 1"},
		{Name: "no step", Op: "aten::arange.start_out", Args: []any{3, 0, 0}, Outs: []any{of[int8]()}, Refused: "argument 2: got 0"},
		{Name: "endless", Op: "aten::arange.out", Args: []any{math.Inf(1)}, Outs: []any{of[int8]()}, Refused: "argument 0: got +Inf"},
		{Name: "not finite", Op: "aten::arange.start_out", Args: []any{math.NaN(), 1, 1}, Outs: []any{of[int8]()}, Refused: "argument 1"},
		{Name: "bools", Op: "aten::arange.out", Args: []any{2}, Outs: []any{of(false, false)}, Refused: "argument 1: got bool"},
	}...)
}

func TestCopy(t *testing.T) {
	channelsLast := []uint8{0, 2, 3, 1}
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "broadcast and convert", Op: "aten::copy.out", Args: []any{tensor.New(tensor.Int8, 2, 2), of[float32](1.9, -1.9), false},
			Want: []any{tensor.Of([]int8{1, -1, 1, -1}, 2, 2)}},
		{Name: "broadcast", Op: "aten::copy.out", Args: []any{tensor.New(tensor.Int8, 2, 2), of[int8](3), false}, Want: []any{tensor.Of([]int8{3, 3, 3, 3}, 2, 2)}},
		{Name: "too many", Op: "aten::copy.out", Args: []any{of[int8](1, 2), of[int8](1, 2, 3), false}, Outs: []any{of[int8](0, 0)}, Refused: "argument 1: got sizes [3]"},
		{Name: "in place", Op: "aten::copy_", Args: []any{of[float32](0, 0), of[int64](1, 2), false}, Want: []any{of[float32](1, 2)}},
		{Name: "clone in another order", Op: "aten::clone.out", Args: []any{ordered(tensor.Float32, nil, 2, 3, 4, 5), nil},
			Want: []any{ordered(tensor.Float32, channelsLast, 2, 3, 4, 5)}},
		{Name: "clone as another type", Op: "aten::clone.out", Args: []any{of[int8](1), nil}, Outs: []any{of[int16](0)}, Refused: "argument 2: got int16"},
		{Name: "convert to another order", Op: "dim_order_ops::_to_dim_order_copy.out", Args: []any{ordered(tensor.Int16, channelsLast, 2, 9, 40, 40), false, nil},
			Want: []any{ordered(tensor.Float32, nil, 2, 9, 40, 40)}},
		{Name: "bytes of any type", Op: "aten::alias_copy.out", Args: []any{tensor.New(tensor.QInt8, 3)}, Want: []any{tensor.New(tensor.QInt8, 3)}},
		{Name: "no conversion", Op: "aten::_to_copy.out", Args: []any{tensor.New(tensor.QInt8, 3), false, nil}, Outs: []any{of[int8](0, 0, 0)}, Refused: "qint8"},
		{Name: "float to bool", Op: "aten::_to_copy.out", Args: []any{of[float32](0, 0.1), false, nil}, Want: []any{of(false, true)}},
		{Name: "real to complex", Op: "aten::_to_copy.out", Args: []any{of[int8](2), false, nil}, Want: []any{of[complex64](2)}},
		{Name: "complex to real", Op: "aten::_to_copy.out", Args: []any{of(2 + 3i), false, nil}, Want: []any{of[float32](2)}},
		{Name: "to the device and back", Op: "et_copy::_h2d_copy.out", Args: []any{of[int8](2)}, Want: []any{of[int8](2)}},
		{Name: "parts of complex", Op: "aten::view_as_real_copy.out", Args: []any{of[complex64](1+2i, 3)}, Want: []any{tensor.Of([]float32{1, 2, 3, 0}, 2, 2)}},
		{Name: "complex of parts", Op: "aten::view_as_complex_copy.out", Args: []any{tensor.Of([]float32{1, 2, 3, -0.5}, 2, 2)},
			Want: []any{of[complex64](1+2i, 3-0.5i)}},
		{Name: "one complex number", Op: "aten::view_as_complex_copy.out", Args: []any{of[float64](1, 2)},
			Want: []any{tensor.Of([]complex128{1 + 2i})}},
		{Name: "complex of parts apart in memory", Op: "aten::view_as_complex_copy.out",
			Args: []any{ordered(tensor.Float32, []uint8{1, 0}, 3, 2)}, Want: []any{of[complex64](1i, 2+3i, 4+5i)}},
		{Name: "complex of three parts", Op: "aten::view_as_complex_copy.out", Args: []any{of[float32](1, 2, 3)},
			Outs: []any{tensor.New(tensor.Complex64)}, Refused: "a last dimension of size 2"},
		{Name: "complex of integers", Op: "aten::view_as_complex_copy.out", Args: []any{of[int64](1, 2)},
			Outs: []any{tensor.New(tensor.Complex64)}, Refused: "argument 1"},
		{Name: "parts of real", Op: "aten::view_as_real_copy.out", Args: []any{of[float32](1)}, Outs: []any{tensor.New(tensor.Float32, 1, 2)}, Refused: "argument 0: got float32 1"},
	}...)
}

// TestCopyOfItself writes state back that did not change.
func TestCopyOfItself(t *testing.T) {
	self := of[float32](1, 2)
	v, off := tensor.TensorValue(self), tensor.BoolValue(false)
	if err := copyInPlace(kernels.NewCtx(nil), kernels.Args{&v, &v, &off, &v}); err != nil {
		t.Fatal(err)
	}
	if err := compare.Tensors(self, of[float32](1, 2), kernels.Tolerance{}); err != nil {
		t.Error(err)
	}
}

// TestRandomNumbers checks the range and the first two moments.
func TestRandomNumbers(t *testing.T) {
	const n = 20000
	for _, c := range []struct {
		op             string
		mean, deviates float64
		low, high      float64
	}{
		{"aten::rand.out", 0.5, math.Sqrt(1. / 12), 0, 1},
		{"aten::randn.out", 0, 1, -8, 8},
	} {
		for _, d := range []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64} {
			out, size := tensor.New(d, n), tensor.IntValue(n)
			op, _, _, _ := set.Lookup(c.op)
			list, slot := tensor.NewList(tensor.KindIntList, []*tensor.Value{&size}), tensor.TensorValue(out)
			if err := op.Func(kernels.NewCtx(nil), kernels.Args{&list, &slot, &slot}); err != nil {
				t.Fatal(err)
			}
			wide := tensor.New(tensor.Float64, n)
			tensor.Cast(wide, out)
			sum, squares := 0.0, 0.0
			for i, v := range tensor.Data[float64](wide) {
				if !(v >= c.low && v < c.high) {
					t.Fatalf("%s %v, element %d: %v is not in [%v, %v)", c.op, d, i, v, c.low, c.high)
				}
				sum, squares = sum+v, squares+v*v
			}
			mean := sum / n
			if dev := math.Sqrt(squares/n - mean*mean); math.Abs(mean-c.mean) > 0.03 || math.Abs(dev-c.deviates) > 0.03 {
				t.Errorf("%s %v: mean %.3f, deviation %.3f, want %.3f, %.3f", c.op, d, mean, dev, c.mean, c.deviates)
			}
		}
	}
}

func TestAllocatesNothing(t *testing.T) {
	for i, c := range []kerneltest.Case{
		{Op: "aten::full.out", Args: []any{[]int{300}, 2.5}, Want: []any{tensor.New(tensor.Float16, 300)}},
		{Op: "aten::arange.out", Args: []any{300}, Want: []any{tensor.New(tensor.Float16, 300)}},
		{Op: "aten::randn.out", Args: []any{[]int{300}}, Want: []any{tensor.New(tensor.Float16, 300)}},
		{Op: "aten::copy.out", Args: []any{tensor.New(tensor.Int8, 90, 90), of[float32](1), false}, Want: []any{tensor.New(tensor.Int8, 90, 90)}},
		{Op: "aten::clone.out", Args: []any{ordered(tensor.Int8, []uint8{1, 0}, 90, 90), nil}, Want: []any{tensor.New(tensor.Int8, 90, 90)}},
	} {
		c.Name = fmt.Sprint(i, " ", c.Op)
		kerneltest.NoAllocs(t, set, c)
	}
}

// TestPermutations checks that every permutation of three numbers is drawn, each about as often.
func TestPermutations(t *testing.T) {
	counts := map[string]int{}
	run, written := kerneltest.Prepare(t, set, kerneltest.Case{Op: "aten::randperm.out", Args: []any{3}, Outs: []any{of[int64](0, 0, 0)}})
	for range 6000 {
		if err := run(); err != nil {
			t.Fatal(err)
		}
		counts[fmt.Sprint(tensor.Data[int64](written[0]))]++
	}
	for order, n := range counts {
		if len(counts) != 6 || n < 800 || n > 1200 {
			t.Errorf("%s: %d times of 6000, %d orders", order, n, len(counts))
		}
	}
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "no numbers", Op: "aten::randperm.out", Args: []any{0}, Want: []any{tensor.New(tensor.Int64, 0)}},
		{Name: "more than int8 counts", Op: "aten::randperm.out", Args: []any{200}, Outs: []any{tensor.New(tensor.Int8, 200)},
			Refused: "int8 counts"},
		{Name: "bools", Op: "aten::randperm.out", Args: []any{1}, Outs: []any{tensor.New(tensor.Bool, 1)}, Refused: "a number type"},
	}...)
}
