package index_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func floats(sizes []int, v ...float32) *tensor.Tensor { return tensor.Of(v, sizes...) }

func longs(sizes []int, v ...int64) *tensor.Tensor { return tensor.Of(v, sizes...) }

func list(t ...*tensor.Tensor) []*tensor.Tensor { return t }

// columnwise is t with its last dimension outermost in memory.
func columnwise(t *tensor.Tensor) *tensor.Tensor {
	order := make([]uint8, t.Rank())
	for i := range order {
		order[i] = uint8((i + t.Rank() - 1) % t.Rank())
	}
	c := tensor.Make(t.DType, t.Sizes, order, tensor.Static)
	c.Bind(tensor.AlignedBytes(c.NBytes()))
	tensor.CopyLayout(c, t)
	return c
}

func TestIndexing(t *testing.T) {
	grid := floats([]int{2, 3}, 0, 1, 2, 10, 11, 12)
	cube := floats([]int{2, 2, 2}, 0, 1, 10, 11, 100, 101, 110, 111)
	mask := tensor.Of([]bool{true, false, true}, 3)
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "rows, from the end too", Op: "aten::index.Tensor_out",
			Args: []any{grid, list(longs([]int{2}, -1, 0))}, Want: []any{floats([]int{2, 3}, 10, 11, 12, 0, 1, 2)}},
		kerneltest.Case{Name: "pairs", Op: "aten::index.Tensor_out",
			Args: []any{grid, list(longs([]int{2}, 1, 0), longs([]int{2}, 2, -3))}, Want: []any{floats([]int{2}, 12, 0)}},
		kerneltest.Case{Name: "a column of rows and a row of columns", Op: "aten::index.Tensor_out",
			Args: []any{grid, list(longs([]int{2, 1}, 0, 1), longs([]int{2}, 0, 2))}, Want: []any{floats([]int{2, 2}, 0, 2, 10, 12)}},
		kerneltest.Case{Name: "a mask of columns", Op: "aten::index.Tensor_out",
			Args: []any{columnwise(grid), list(nil, mask)}, Want: []any{floats([]int{2, 2}, 0, 2, 10, 12)}},
		kerneltest.Case{Name: "a mask of everything", Op: "aten::index.Tensor_out",
			Args: []any{grid, list(tensor.Of([]bool{true, false, true, false, true, false}, 2, 3))}, Want: []any{floats([]int{3}, 0, 2, 11)}},
		kerneltest.Case{Name: "indices apart go to the front", Op: "aten::index.Tensor_out",
			Args: []any{cube, list(longs([]int{1}, 1), nil, longs([]int{3}, 0, 1, 0))}, Want: []any{floats([]int{3, 2}, 100, 110, 101, 111, 100, 110)}},
		kerneltest.Case{Name: "nothing is picked", Op: "aten::index.Tensor_out",
			Args: []any{grid, list(longs([]int{0}))}, Want: []any{floats([]int{0, 3})}},
		kerneltest.Case{Name: "an index beyond the end", Op: "aten::index.Tensor_out",
			Args: []any{grid, list(nil, longs([]int{1}, 3))}, Outs: []any{floats([]int{2, 1}, 0, 0)}, Refused: "indices in [-3, 3) for dimension 1"},
		kerneltest.Case{Name: "an index before the start", Op: "aten::index.Tensor_out",
			Args: []any{grid, list(longs([]int{1}, -3))}, Outs: []any{floats([]int{1, 3}, 0, 0, 0)}, Refused: "indices in [-2, 2)"},
		kerneltest.Case{Name: "a mask of other sizes", Op: "aten::index.Tensor_out",
			Args: []any{grid, list(mask)}, Outs: []any{grid}, Refused: "a mask of the sizes"},
		kerneltest.Case{Name: "more indices than dimensions", Op: "aten::index.Tensor_out",
			Args: []any{floats([]int{1}, 1), list(longs([]int{1}, 0), longs([]int{1}, 0))}, Outs: []any{floats([]int{1}, 1)}, Refused: "at most 1 dimensions"},
		kerneltest.Case{Name: "no index at all", Op: "aten::index.Tensor_out",
			Args: []any{grid, list(nil, nil)}, Outs: []any{grid}, Refused: "no index"},

		kerneltest.Case{Name: "one value for all places", Op: "aten::index_put.out",
			Args: []any{grid, list(nil, mask), floats(nil, 7), false}, Want: []any{floats([]int{2, 3}, 7, 1, 7, 7, 11, 7)}},
		kerneltest.Case{Name: "a row for each place", Op: "aten::index_put_",
			Args: []any{grid, list(longs([]int{1}, 1)), floats([]int{3}, 5, 6, 7), false}, Want: []any{floats([]int{2, 3}, 0, 1, 2, 5, 6, 7)}},
		kerneltest.Case{Name: "in place, whatever the dim order", Op: "aten::index_put_",
			Args: []any{columnwise(grid), list(longs([]int{2}, 0, 1), longs([]int{2}, 2, 0)), floats([]int{2}, 8, 9), false}, Want: []any{floats([]int{2, 3}, 0, 1, 8, 9, 11, 12)}},
		kerneltest.Case{Name: "the same place twice adds up", Op: "aten::index_put_",
			Args: []any{grid, list(longs([]int{2}, 1, 1)), floats([]int{2, 1}, 1, 2), true}, Want: []any{floats([]int{2, 3}, 0, 1, 2, 13, 14, 15)}},
		kerneltest.Case{Name: "narrow integers wrap", Op: "aten::index_put_",
			Args: []any{tensor.Of([]int8{127, 0}, 2), list(longs([]int{1}, 0)), tensor.Of([]int8{2}, 1), true}, Want: []any{tensor.Of([]int8{-127, 0}, 2)}},
		kerneltest.Case{Name: "values of another type", Op: "aten::index_put_",
			Args: []any{grid, list(longs([]int{1}, 1)), longs(nil, 7), false}, Refused: "want float32"},
		kerneltest.Case{Name: "values that do not broadcast", Op: "aten::index_put_",
			Args: []any{grid, list(longs([]int{1}, 1)), floats([]int{2}, 1, 2), false}, Refused: "broadcast"},
		kerneltest.Case{Name: "nothing is written where an index is wrong", Op: "aten::index_put_",
			Args: []any{grid, list(longs([]int{2}, 0, 2)), floats(nil, 7), false}, Refused: "indices in [-2, 2)"},

		kerneltest.Case{Name: "columns by index", Op: "aten::index_select.out",
			Args: []any{columnwise(grid), -1, tensor.Of([]int32{2, 2}, 2)}, Want: []any{floats([]int{2, 2}, 2, 2, 12, 12)}},
		kerneltest.Case{Name: "negative indices are refused", Op: "aten::index_select.out",
			Args: []any{grid, 0, longs([]int{1}, -1)}, Outs: []any{floats([]int{1, 3}, 0, 0, 0)}, Refused: "indices in [0, 2)"},
		kerneltest.Case{Name: "rows of a table", Op: "aten::embedding.out",
			Args: []any{grid, longs([]int{1, 2}, 1, 1), 1, false, false}, Want: []any{floats([]int{1, 2, 3}, 10, 11, 12, 10, 11, 12)}},
		kerneltest.Case{Name: "a row outside the table", Op: "aten::embedding.out",
			Args: []any{grid, longs([]int{1}, 2), -1, false, false}, Outs: []any{floats([]int{1, 3}, 0, 0, 0)}, Refused: "indices in [0, 2)"},
		kerneltest.Case{Name: "an empty table", Op: "aten::embedding.out",
			Args: []any{floats([]int{0, 3}), longs([]int{1}, 0), -1, false, false}, Outs: []any{floats([]int{1, 3}, 0, 0, 0)}, Refused: "indices in [0, 0)"},
	)
}

func TestAlong(t *testing.T) {
	grid := floats([]int{2, 3}, 0, 1, 2, 10, 11, 12)
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "gather rows", Op: "aten::gather.out",
			Args: []any{grid, 0, longs([]int{1, 2}, 1, 0), false}, Want: []any{floats([]int{1, 2}, 10, 1)}},
		kerneltest.Case{Name: "gather columns", Op: "aten::gather.out",
			Args: []any{columnwise(grid), 1, longs([]int{2, 2}, 2, 0, 1, 1), false}, Want: []any{floats([]int{2, 2}, 2, 0, 11, 11)}},
		kerneltest.Case{Name: "gather from a number", Op: "aten::gather.out",
			Args: []any{floats(nil, 4), 0, longs(nil, 0), false}, Want: []any{floats(nil, 4)}},
		kerneltest.Case{Name: "gather with a negative index", Op: "aten::gather.out",
			Args: []any{grid, 0, longs([]int{1, 1}, -1), false}, Outs: []any{floats([]int{1, 1}, 0)}, Refused: "indices in [0, 2)"},
		kerneltest.Case{Name: "gather beyond the other dimension", Op: "aten::gather.out",
			Args: []any{grid, 0, longs([]int{1, 4}, 0, 0, 0, 0), false}, Outs: []any{floats([]int{1, 4}, 0, 0, 0, 0)}, Refused: "sizes within"},
		kerneltest.Case{Name: "scatter, the last one stays", Op: "aten::scatter.src_out",
			Args: []any{grid, 1, longs([]int{1, 2}, 0, 0), floats([]int{2, 2}, 5, 6, 7, 8)}, Want: []any{floats([]int{2, 3}, 6, 1, 2, 10, 11, 12)}},
		kerneltest.Case{Name: "scatter from fewer elements than indices", Op: "aten::scatter.src_out",
			Args: []any{grid, 1, longs([]int{1, 2}, 0, 0), floats([]int{1, 1}, 5)}, Outs: []any{grid}, Refused: "at least the sizes of index"},
		kerneltest.Case{Name: "scatter a number", Op: "aten::scatter.value_out",
			Args: []any{columnwise(grid), 0, longs([]int{1, 3}, 1, 0, 1), 7}, Want: []any{floats([]int{2, 3}, 0, 7, 2, 7, 11, 7)}},
		kerneltest.Case{Name: "scatter a number that does not fit", Op: "aten::scatter.value_out",
			Args: []any{tensor.Of([]uint8{1}, 1), 0, longs([]int{1}, 0), 256}, Outs: []any{tensor.New(tensor.Uint8, 1)}, Refused: "fits uint8"},
		kerneltest.Case{Name: "scatter adds up", Op: "aten::scatter_add.out",
			Args: []any{grid, 1, longs([]int{2, 3}, 0, 0, 0, 2, 1, 2), grid}, Want: []any{floats([]int{2, 3}, 3, 1, 2, 10, 22, 34)}},
		kerneltest.Case{Name: "bools add up to true", Op: "aten::scatter_add.out",
			Args: []any{tensor.Of([]bool{false, false}, 2), 0, longs([]int{2}, 0, 0), tensor.Of([]bool{true, true}, 2)}, Want: []any{tensor.Of([]bool{true, false}, 2)}},
	)
}

func TestMasks(t *testing.T) {
	grid := floats([]int{2, 3}, 0, 1, 2, 10, 11, 12)
	row := tensor.Of([]bool{true, false, true}, 3)
	negative := float32(math.Copysign(0, -1))
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "a mask for each row", Op: "aten::masked_select.out",
			Args: []any{columnwise(grid), row}, Want: []any{floats([]int{4}, 0, 2, 10, 12)}},
		kerneltest.Case{Name: "the tensor repeats for the mask", Op: "aten::masked_select.out",
			Args: []any{floats(nil, 5), row}, Want: []any{floats([]int{2}, 5, 5)}},
		kerneltest.Case{Name: "elements in order", Op: "aten::masked_scatter.out",
			Args: []any{grid, row, floats([]int{5}, 1, 2, 3, 4, 5)}, Want: []any{floats([]int{2, 3}, 1, 1, 2, 3, 11, 4)}},
		kerneltest.Case{Name: "too few elements", Op: "aten::masked_scatter.out",
			Args: []any{grid, row, floats([]int{3}, 1, 2, 3)}, Outs: []any{grid}, Refused: "at least 4 elements"},
		kerneltest.Case{Name: "NaN is not zero, -0 is", Op: "aten::nonzero.out",
			Args: []any{columnwise(floats([]int{2, 2}, 0, float32(math.NaN()), negative, 3))}, Want: []any{longs([]int{2, 2}, 0, 1, 1, 1)}},
		kerneltest.Case{Name: "a number has no index", Op: "aten::nonzero.out",
			Args: []any{floats(nil, 3)}, Want: []any{longs([]int{1, 0})}},
	)
}

func TestSorting(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	odd := floats([]int{5}, 2, nan, -inf, 2, inf)
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "NaN is the greatest", Op: "aten::topk.values",
			Args: []any{odd, 2, 0, true, true}, Want: []any{floats([]int{2}, nan, inf), longs([]int{2}, 1, 4)}},
		kerneltest.Case{Name: "the least", Op: "aten::topk.values",
			Args: []any{odd, 1, -1, false, true}, Want: []any{floats([]int{1}, -inf), longs([]int{1}, 2)}},
		kerneltest.Case{Name: "along columns", Op: "aten::topk.values",
			Args: []any{columnwise(longs([]int{3, 2}, 1, 9, 5, 7, 3, 8)), 2, 0, true, true},
			Want: []any{longs([]int{2, 2}, 5, 9, 3, 8), longs([]int{2, 2}, 1, 0, 2, 2)}},
		kerneltest.Case{Name: "none", Op: "aten::topk.values",
			Args: []any{odd, 0, 0, true, true}, Want: []any{floats([]int{0}), longs([]int{0})}},
		kerneltest.Case{Name: "more than there are", Op: "aten::topk.values",
			Args: []any{odd, 6, 0, true, true}, Outs: []any{floats([]int{5}, 0, 0, 0, 0, 0), longs([]int{5}, 0, 0, 0, 0, 0)}, Refused: "at most 5"},
		kerneltest.Case{Name: "a number", Op: "aten::topk.values",
			Args: []any{floats(nil, 4), 1, -1, true, true}, Want: []any{floats(nil, 4), longs(nil, 0)}},
		kerneltest.Case{Name: "equal elements keep their order", Op: "aten::sort.values",
			Args: []any{odd, 0, false}, Want: []any{floats([]int{5}, -inf, 2, 2, inf, nan), longs([]int{5}, 2, 0, 3, 4, 1)}},
		kerneltest.Case{Name: "and downwards too", Op: "aten::sort.values_stable",
			Args: []any{odd, true, 0, true}, Want: []any{floats([]int{5}, nan, inf, 2, 2, -inf), longs([]int{5}, 1, 4, 0, 3, 2)}},
		kerneltest.Case{Name: "extreme integers", Op: "aten::sort.values",
			Args: []any{longs([]int{3}, math.MaxInt64, math.MinInt64, -1), 0, false}, Want: []any{longs([]int{3}, math.MinInt64, -1, math.MaxInt64), longs([]int{3}, 1, 2, 0)}},
		kerneltest.Case{Name: "unsigned integers", Op: "aten::sort.values",
			Args: []any{tensor.Of([]uint64{math.MaxUint64, 1}, 2), 0, false}, Want: []any{tensor.Of([]uint64{1, math.MaxUint64}, 2), longs([]int{2}, 1, 0)}},
	)
}

// TestLongRows sorts rows around the limits of the algorithms, of every type, against
// a stable sort of what the elements are as float64.
func TestLongRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	nan := float32(math.NaN())
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint32, tensor.Bool} {
		for _, n := range []int{1, 7, 32, 33, 159, 160, 700} {
			for _, down := range []bool{false, true} {
				x := kerneltest.Noise(r, d, []int{n, 2}, kerneltest.AnyOrder(r, 2))
				if d == tensor.Float32 && n > 10 {
					xs := tensor.Data[float32](x)
					xs[3], xs[8], xs[9], xs[n] = nan, nan, 0, float32(math.Copysign(0, -1))
				}
				values, index := sortedColumns(kerneltest.Dense(x), n, down)
				kerneltest.Run(t, set, kerneltest.Case{Name: fmt.Sprint(d, " ", n, " down ", down), Op: "aten::sort.values", Args: []any{x, 0, down},
					Want: []any{kerneltest.FromDense(d, []int{n, 2}, nil, values), kerneltest.FromDense(tensor.Int64, []int{n, 2}, nil, index)}})
			}
		}
	}
}

// sortedColumns are the columns of x, [n, 2], each in order, and where their elements
// were.
func sortedColumns(x []float64, n int, down bool) (values, index []float64) {
	values, index = make([]float64, 2*n), make([]float64, 2*n)
	for col := range 2 {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(i, j int) int {
			a, b := x[2*i+col], x[2*j+col]
			if down {
				a, b = b, a
			}
			return cmp.Or(cmp.Compare(nans(a), nans(b)), cmp.Compare(a, b)) // NaN is the greatest
		})
		for i, at := range order {
			values[2*i+col], index[2*i+col] = x[2*at+col], float64(at)
		}
	}
	return values, index
}

func nans(v float64) int {
	if v != v {
		return 1
	}
	return 0
}
