package index_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestRanks(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	grid := floats([]int{2, 4}, 3, 1, 2, 4, 8, nan, 6, nan)
	even, odd := longs([]int{4}, 7, 5, 9, 6), longs([]int{5}, 1, 3, 1, 3, 2)
	one, two := floats(nil, 0), []any{floats(nil, 0), longs(nil, 0)}
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "the lower median, or NaN", Op: "aten::median.dim_values",
			Args: []any{grid, 1, false}, Want: []any{floats([]int{2}, 2, nan), longs([]int{2}, 2, 1)}},
		kerneltest.Case{Name: "of columns, kept", Op: "aten::median.dim_values",
			Args: []any{columnwise(grid), -2, true}, Want: []any{floats([]int{1, 4}, 3, nan, 2, nan), longs([]int{1, 4}, 0, 1, 0, 1)}},
		kerneltest.Case{Name: "of an even number of integers", Op: "aten::median.dim_values",
			Args: []any{even, 0, false}, Want: []any{longs(nil, 6), longs(nil, 3)}},
		kerneltest.Case{Name: "of extreme integers", Op: "aten::median.dim_values",
			Args: []any{longs([]int{3}, math.MaxInt64, math.MaxInt64, math.MinInt64), 0, false},
			Want: []any{longs(nil, math.MaxInt64), longs(nil, 0)}},
		kerneltest.Case{Name: "of a number", Op: "aten::median.dim_values", Args: []any{floats(nil, 4), 0, false},
			Want: []any{floats(nil, 4), longs(nil, 0)}},
		kerneltest.Case{Name: "of no rows", Op: "aten::median.dim_values",
			Args: []any{tensor.New(tensor.Float32, 0, 3), 1, false}, Want: []any{tensor.New(tensor.Float32, 0), tensor.New(tensor.Int64, 0)}},
		kerneltest.Case{Name: "of an empty row", Op: "aten::median.dim_values",
			Args: []any{tensor.New(tensor.Float32, 0), 0, false}, Outs: two, Refused: "a dimension that is not empty"},
		kerneltest.Case{Name: "no such dimension", Op: "aten::median.dim_values", Args: []any{even, 1, false},
			Outs: []any{longs(nil, 0), longs(nil, 0)}, Refused: "a dimension in [-1, 0]"},
		kerneltest.Case{Name: "int32 indices", Op: "aten::median.dim_values",
			Args: []any{grid, 1, false}, Outs: []any{floats([]int{2}, 0, 0), tensor.New(tensor.Int32, 2)},
			Refused: "argument 4: got int32, want int64"},
		kerneltest.Case{Name: "values of another type", Op: "aten::median.dim_values",
			Args: []any{grid, 1, false}, Outs: []any{longs([]int{2}, 0, 0), longs([]int{2}, 0, 0)}, Refused: "want float32"},
		kerneltest.Case{Name: "of complex numbers", Op: "aten::median.dim_values", Args: []any{tensor.Of([]complex64{1}, 1), 0, false},
			Outs: []any{tensor.New(tensor.Complex64), longs(nil, 0)}, Refused: "a real type"},

		kerneltest.Case{Name: "without NaN", Op: "aten::nanmedian.dim_values",
			Args: []any{grid, 1, false}, Want: []any{floats([]int{2}, 2, 6), longs([]int{2}, 2, 2)}},
		kerneltest.Case{Name: "of NaN alone", Op: "aten::nanmedian.dim_values",
			Args: []any{floats([]int{2}, nan, nan), 0, false}, Want: []any{floats(nil, nan), longs(nil, 0)}},
		kerneltest.Case{Name: "of all elements", Op: "aten::median.out", Args: []any{columnwise(floats([]int{2, 2}, 4, 1, 3, 2))},
			Want: []any{floats(nil, 2)}},
		kerneltest.Case{Name: "of all, one is NaN", Op: "aten::median.out", Args: []any{grid}, Want: []any{floats(nil, nan)}},
		kerneltest.Case{Name: "of all that are numbers", Op: "aten::nanmedian.out", Args: []any{grid}, Want: []any{floats(nil, 3)}},
		kerneltest.Case{Name: "of none", Op: "aten::median.out", Args: []any{tensor.New(tensor.Float32, 0)}, Want: []any{floats(nil, nan)}},
		kerneltest.Case{Name: "of no integers", Op: "aten::median.out", Args: []any{tensor.New(tensor.Int64, 0)}, Outs: []any{longs(nil, 0)},
			Refused: "at least one element"},

		kerneltest.Case{Name: "the second", Op: "aten::kthvalue.values", Args: []any{even, 2, 0, false},
			Want: []any{longs(nil, 6), longs(nil, 3)}},
		kerneltest.Case{Name: "the last is NaN", Op: "aten::kthvalue.values",
			Args: []any{floats([]int{3}, nan, inf, 1), 3, -1, true}, Want: []any{floats([]int{1}, nan), longs([]int{1}, 0)}},
		kerneltest.Case{Name: "k counts from 1", Op: "aten::kthvalue.values", Args: []any{floats(nil, 1), 0, 0, false}, Outs: two,
			Refused: "from 1 to 1"},
		kerneltest.Case{Name: "k beyond the row", Op: "aten::kthvalue.values", Args: []any{even, 5, 0, false},
			Outs: []any{longs(nil, 0), longs(nil, 0)}, Refused: "from 1 to 4"},

		kerneltest.Case{Name: "the least of the most frequent", Op: "aten::mode.values", Args: []any{odd, 0, false},
			Want: []any{longs(nil, 1), longs(nil, 2)}},
		kerneltest.Case{Name: "NaN is not equal to NaN", Op: "aten::mode.values",
			Args: []any{floats([]int{5}, nan, 2, nan, 2, nan), 0, false}, Want: []any{floats(nil, 2), longs(nil, 3)}},
		kerneltest.Case{Name: "of bools", Op: "aten::mode.values", Args: []any{tensor.Of([]bool{true, false, true}, 3), 0, true},
			Want: []any{tensor.Of([]bool{true}, 1), longs([]int{1}, 2)}},
	)
	kerneltest.NoAllocs(t, set,
		kerneltest.Case{Op: "aten::median.dim_values", Args: []any{grid, 1, false}, Outs: []any{floats([]int{2}, 0, 0), longs([]int{2}, 0, 0)}},
		kerneltest.Case{Op: "aten::kthvalue.values", Args: []any{even, 2, 0, false}, Outs: []any{longs(nil, 0), longs(nil, 0)}},
		kerneltest.Case{Op: "aten::median.out", Args: []any{grid}, Outs: []any{one}},
	)
}

// TestLongRanks finds elements of long rows, with equal ones among them, against a sort.
func TestLongRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.Int64, tensor.Int8, tensor.Uint8} {
		for _, n := range []int{1, 2, 3, 4, 17, 100, 1000} {
			x := make([]float64, n)
			for i := range x {
				x[i] = float64(r.IntN(min(2*n, 100)))
			}
			sorted := slices.Sorted(slices.Values(x))
			in := kerneltest.FromDense(d, []int{n}, nil, x)
			k := 1 + r.IntN(n)
			checkRank(t, "aten::median.dim_values", in, sorted[(n-1)/2], 0, false)
			checkRank(t, "aten::nanmedian.dim_values", in, sorted[(n-1)/2], 0, false)
			checkRank(t, "aten::kthvalue.values", in, sorted[k-1], k, 0, false)
			checkRank(t, "aten::mode.values", in, mostFrequent(sorted), 0, false)
		}
	}
}

// checkRank checks the element of a row that an operator finds, and that its index refers to an equal one.
func checkRank(t *testing.T, op string, in *tensor.Tensor, want float64, args ...any) {
	t.Helper()
	run, written := kerneltest.Prepare(t, set, kerneltest.Case{Op: op, Args: append([]any{in}, args...),
		Outs: []any{tensor.New(in.DType), longs(nil, 0)}})
	if err := run(); err != nil {
		t.Fatal(err)
	}
	got, at := kerneltest.Dense(written[0])[0], int(tensor.Data[int64](written[1])[0])
	if got != want || kerneltest.Dense(in)[at] != want {
		t.Errorf("%s of %v: got %v at %d, want %v", op, in, got, at, want)
	}
}

// mostFrequent is the first of the most frequent numbers.
func mostFrequent(sorted []float64) (mode float64) {
	most := 0
	for _, v := range sorted {
		n := 0
		for _, w := range sorted {
			if v == w {
				n++
			}
		}
		if n > most {
			mode, most = v, n
		}
	}
	return mode
}

// TestSlowSelection gives kthvalue a row for which a partition by medians of three shrinks by two elements each time.
func TestSlowSelection(t *testing.T) {
	const n = 1 << 17
	x := make([]int64, n)
	for i := range n / 2 { // Musser's sequence
		x[i], x[n/2+i] = int64(i+1), int64(2*(i+1))
		if i%2 == 1 {
			x[i] = int64(n/2 + i)
		}
	}
	want := slices.Sorted(slices.Values(x))[n/2]
	checkRank(t, "aten::kthvalue.values", tensor.Of(x, n), float64(want), n/2+1, 0, false)
}

func TestScatterReduce(t *testing.T) {
	nan := float32(math.NaN())
	base, src, index := floats([]int{4}, 10, 20, 30, 40), floats([]int{5}, 1, 2, 3, 4, 5), longs([]int{5}, 0, 0, 1, 1, 1)
	reduce := func(name, how string, self bool, want ...float32) kerneltest.Case {
		return kerneltest.Case{Name: name, Op: "aten::scatter_reduce.two_out", Args: []any{base, 0, index, src, how, self},
			Want: []any{floats([]int{4}, want...)}}
	}
	refused := func(name, why string, args ...any) kerneltest.Case {
		return kerneltest.Case{Name: name, Op: "aten::scatter_reduce.two_out", Args: args, Outs: []any{args[0]}, Refused: why}
	}
	bytes := tensor.Of([]int8{100, -7}, 2)
	kerneltest.Run(t, set,
		reduce("sums", "sum", true, 13, 32, 30, 40),
		reduce("sums of the source", "sum", false, 3, 12, 30, 40),
		reduce("products", "prod", true, 20, 1200, 30, 40),
		reduce("products of the source", "prod", false, 2, 60, 30, 40),
		reduce("means", "mean", true, 13./3, 8, 30, 40),
		reduce("means of the source", "mean", false, 1.5, 4, 30, 40),
		reduce("maxima", "amax", true, 10, 20, 30, 40),
		reduce("maxima of the source", "amax", false, 2, 5, 30, 40),
		reduce("minima", "amin", true, 1, 3, 30, 40),
		reduce("minima of the source", "amin", false, 1, 3, 30, 40),
		kerneltest.Case{Name: "NaN is an extreme", Op: "aten::scatter_reduce.two_out",
			Args: []any{floats([]int{2}, nan, 1), 0, longs([]int{2}, 0, 1), floats([]int{2}, 5, nan), "amax", true},
			Want: []any{floats([]int{2}, nan, nan)}},
		kerneltest.Case{Name: "means of integers round down, and their sums wrap", Op: "aten::scatter_reduce.two_out",
			Args: []any{bytes, 0, longs([]int{2}, 0, 1), tensor.Of([]int8{100, 0}, 2), "mean", true}, Want: []any{tensor.Of([]int8{-28, -4}, 2)}},
		kerneltest.Case{Name: "along rows", Op: "aten::scatter_reduce.two_out",
			Args: []any{columnwise(floats([]int{2, 2}, 1, 2, 3, 4)), 1, longs([]int{2, 2}, 1, 1, 0, 1), floats([]int{2, 2}, 5, 6, 7, 8), "sum",
				true},
			Want: []any{floats([]int{2, 2}, 1, 13, 10, 12)}},
		kerneltest.Case{Name: "any of bools", Op: "aten::scatter_reduce.two_out",
			Args: []any{tensor.Of([]bool{false, false}, 2), 0, longs([]int{2}, 0, 0), tensor.Of([]bool{true, false}, 2), "amax", true},
			Want: []any{tensor.Of([]bool{true, false}, 2)}},
		refused("an unknown reduction", `got "max", want sum, prod, mean, amax or amin`, base, 0, index, src, "max", true),
		refused("a negative index", "indices in [0, 4)", base, 0, longs([]int{1}, -1), src, "sum", true),
		refused("an index beyond the end", "indices in [0, 4)", base, 0, longs([]int{1}, 4), src, "sum", true),
		refused("fewer source elements", "at least the sizes of index", base, 0, index, floats([]int{1}, 1), "sum", true),
		refused("another type", "want float32", base, 0, index, index, "sum", true),
		refused("no such dimension", "a dimension in [-1, 0]", base, 1, index, src, "sum", true),
		refused("maxima of uint64", "a type that int64 represents", tensor.Of([]uint64{1}, 1), 0, longs([]int{1}, 0), tensor.Of([]uint64{1}, 1),
			"amax", true),
		refused("means of bools", "a number type", tensor.Of([]bool{true}, 1), 0, longs([]int{1}, 0), tensor.Of([]bool{true}, 1), "mean", true),

		kerneltest.Case{Name: "multiplied by elements", Op: "aten::scatter.reduce_out", Args: []any{base, 0, index, src, "multiply"},
			Want: []any{floats([]int{4}, 20, 1200, 30, 40)}},
		kerneltest.Case{Name: "added to", Op: "aten::scatter.value_reduce_out", Args: []any{base, 0, index, 0.5, "add"},
			Want: []any{floats([]int{4}, 11, 21.5, 30, 40)}},
		kerneltest.Case{Name: "the names of scatter_reduce", Op: "aten::scatter.reduce_out", Args: []any{base, 0, index, src, "sum"},
			Outs: []any{base}, Refused: "add or multiply"},
	)
	kerneltest.NoAllocs(t, set, kerneltest.Case{Op: "aten::scatter_reduce.two_out", Args: []any{base, 0, index, src, "mean", false},
		Outs: []any{base}})
}

func TestSearchSorted(t *testing.T) {
	rows := floats([]int{2, 3}, 1, 3, 5, 2, 4, 6)
	values := floats([]int{2, 2}, 3, 6, 2, 7)
	line := longs([]int{4}, 1, 2, 2, 4)
	out := longs([]int{2, 2}, 0, 0, 0, 0)
	const op = "aten::searchsorted.Tensor_out"
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "each row in its own", Op: op, Args: []any{rows, values, false, false, nil, nil},
			Want: []any{longs([]int{2, 2}, 1, 3, 0, 3)}},
		kerneltest.Case{Name: "after equal ones", Op: op, Args: []any{columnwise(rows), values, false, true, nil, nil},
			Want: []any{longs([]int{2, 2}, 2, 3, 1, 3)}},
		kerneltest.Case{Name: "by side", Op: op, Args: []any{rows, values, true, false, "right", nil},
			Want: []any{tensor.Of([]int32{2, 3, 1, 3}, 2, 2)}},
		kerneltest.Case{Name: "one row for all", Op: op, Args: []any{line, longs([]int{2, 2}, 0, 2, 3, 9), false, false, "left", nil},
			Want: []any{longs([]int{2, 2}, 0, 1, 3, 4)}},
		kerneltest.Case{Name: "in the order of a sorter", Op: op,
			Args: []any{floats([]int{3}, 5, 1, 3), values, false, false, nil, longs([]int{3}, 1, 2, 0)},
			Want: []any{longs([]int{2, 2}, 1, 3, 1, 3)}},
		kerneltest.Case{Name: "a number", Op: "aten::searchsorted.Scalar_out", Args: []any{line, 2, false, true, nil, nil},
			Want: []any{longs(nil, 3)}},
		kerneltest.Case{Name: "an index of the sorter", Op: op, Args: []any{floats([]int{3}, 5, 1, 3), values, false, false, nil,
			longs([]int{3}, 1, 3, 0)}, Outs: []any{out}, Refused: "indices in [0, 3)"},
		kerneltest.Case{Name: "other rows", Op: op, Args: []any{rows, floats([]int{3, 2}, 0, 0, 0, 0, 0, 0), false, false, nil, nil},
			Outs: []any{longs([]int{3, 2}, 0, 0, 0, 0, 0, 0)}, Refused: "the sizes of the values but for the last one"},
		kerneltest.Case{Name: "an unknown side", Op: op, Args: []any{rows, values, false, false, "up", nil}, Outs: []any{out},
			Refused: "left or right"},
		kerneltest.Case{Name: "contradictory sides", Op: op, Args: []any{rows, values, false, true, "left", nil}, Outs: []any{out},
			Refused: "as the argument right"},
	)
}
