package reduce_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func floats(sizes []int, v ...float32) *tensor.Tensor { return tensor.Of(v, sizes...) }

func longs(sizes []int, v ...int64) *tensor.Tensor { return tensor.Of(v, sizes...) }

func bools(sizes []int, v ...bool) *tensor.Tensor { return tensor.Of(v, sizes...) }

var (
	nan = float32(math.NaN())
	inf = float32(math.Inf(1))
)

func TestCases(t *testing.T) {
	grid := floats([]int{2, 3}, 1, 5, 3, 4, 2, 6)
	empty := tensor.New(tensor.Float32, 2, 0)
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "no dims are all dims", Op: "aten::sum.IntList_out",
			Args: []any{grid, []int{}, true, nil}, Want: []any{floats([]int{1, 1}, 21)}},
		kerneltest.Case{Name: "bools are counted", Op: "aten::sum.IntList_out",
			Args: []any{bools([]int{3}, true, false, true), nil, false, nil}, Want: []any{longs(nil, 2)}},
		kerneltest.Case{Name: "int8 sums in the out's type", Op: "aten::sum.IntList_out",
			Args: []any{tensor.Of([]int8{127, 127}, 2), nil, false, nil}, Want: []any{longs(nil, 254)}},
		kerneltest.Case{Name: "nothing sums to 0", Op: "aten::sum.IntList_out",
			Args: []any{empty, []int{1}, false, nil}, Want: []any{floats([]int{2}, 0, 0)}},
		kerneltest.Case{Name: "complex parts sum apart", Op: "aten::sum.IntList_out",
			Args: []any{tensor.Of([]complex64{1 + 2i, 3 - 1i, 5i, 1}, 2, 2), []int{0}, false, nil}, Want: []any{tensor.Of([]complex64{1 + 7i, 4 - 1i}, 2)}},
		kerneltest.Case{Name: "a dtype that is not the out's", Op: "aten::sum.IntList_out",
			Args: []any{grid, nil, false, tensor.Float64}, Outs: []any{floats(nil, 0)}, Refused: "the out's type"},
		kerneltest.Case{Name: "a dimension given twice", Op: "aten::sum.IntList_out",
			Args: []any{grid, []int{0, -2}, false, nil}, Outs: []any{floats(nil, 0)}, Refused: "each dimension once"},
		kerneltest.Case{Name: "the mean of nothing is NaN", Op: "aten::mean.out",
			Args: []any{empty, []int{1}, false, nil}, Want: []any{floats([]int{2}, nan, nan)}},
		kerneltest.Case{Name: "means are not integers", Op: "aten::mean.dtype_out",
			Args: []any{longs([]int{2}, 1, 2), nil}, Outs: []any{longs(nil, 0)}, Refused: "a floating type"},
		kerneltest.Case{Name: "the product of nothing is 1", Op: "aten::prod.out",
			Args: []any{empty, nil}, Want: []any{floats(nil, 1)}},
		kerneltest.Case{Name: "integer products wrap", Op: "aten::prod.int_out",
			Args: []any{longs([]int{2}, math.MaxInt64, 2), 0, false, nil}, Want: []any{longs(nil, -2)}},

		kerneltest.Case{Name: "NaN is the greatest", Op: "aten::amax.out",
			Args: []any{floats([]int{2, 2}, inf, nan, 1, 2), []int{1}, false}, Want: []any{floats([]int{2}, nan, 2)}},
		kerneltest.Case{Name: "and the least", Op: "aten::amin.out",
			Args: []any{floats([]int{2, 2}, -inf, nan, 1, 2), []int{0}, false}, Want: []any{floats([]int{2}, -inf, nan)}},
		kerneltest.Case{Name: "nothing has no greatest", Op: "aten::amax.out",
			Args: []any{empty, []int{1}, false}, Outs: []any{floats([]int{2}, 0, 0)}, Refused: "elements along"},
		kerneltest.Case{Name: "but no rows have none each", Op: "aten::amax.out",
			Args: []any{tensor.New(tensor.Float32, 0, 3), []int{1}, false}, Want: []any{tensor.New(tensor.Float32, 0)}},
		kerneltest.Case{Name: "the least of all", Op: "aten::min.unary_out", Args: []any{grid}, Want: []any{floats(nil, 1)}},
		kerneltest.Case{Name: "the first of equals", Op: "aten::max.dim_max",
			Args: []any{longs([]int{2, 3}, 7, 9, 9, 4, 4, 1), 1, true}, Want: []any{longs([]int{2, 1}, 9, 4), longs([]int{2, 1}, 1, 0)}},
		kerneltest.Case{Name: "the first NaN", Op: "aten::min.dim_min",
			Args: []any{floats([]int{4, 1}, -inf, nan, nan, -inf), 0, false}, Want: []any{floats([]int{1}, nan), longs([]int{1}, 1)}},
		kerneltest.Case{Name: "a place among all", Op: "aten::argmax.out",
			Args: []any{grid, nil, false}, Want: []any{longs(nil, 5)}},
		kerneltest.Case{Name: "a place in each column", Op: "aten::argmin.out",
			Args: []any{grid, 0, true}, Want: []any{longs([]int{1, 3}, 0, 1, 0)}},
		kerneltest.Case{Name: "a number's place", Op: "aten::argmin.out",
			Args: []any{floats(nil, 3), -1, true}, Want: []any{longs(nil, 0)}},

		kerneltest.Case{Name: "NaN is true, -0 is not", Op: "aten::any.out",
			Args: []any{floats([]int{2, 2}, 0, nan, float32(math.Copysign(0, -1)), 0), 1, false}, Want: []any{bools([]int{2}, true, false)}},
		kerneltest.Case{Name: "any of nothing is false", Op: "aten::any.all_out", Args: []any{empty}, Want: []any{bools(nil, false)}},
		kerneltest.Case{Name: "an empty list reduces none", Op: "aten::any.dims_out",
			Args: []any{floats([]int{2}, 0, 2), []int{}, false}, Want: []any{bools([]int{2}, false, true)}},
		kerneltest.Case{Name: "no list reduces all", Op: "aten::any.dims_out",
			Args: []any{floats([]int{2}, 0, 2), nil, false}, Want: []any{bools(nil, true)}},

		kerneltest.Case{Name: "running sums", Op: "aten::cumsum.out",
			Args: []any{grid, 1, nil}, Want: []any{floats([]int{2, 3}, 1, 6, 9, 4, 6, 12)}},
		kerneltest.Case{Name: "running sums of narrow integers", Op: "aten::cumsum.out",
			Args: []any{tensor.Of([]int8{100, 100}, 2), 0, tensor.Int8}, Want: []any{tensor.Of([]int8{100, -56}, 2)}},
		kerneltest.Case{Name: "the running sum of a number", Op: "aten::cumsum.out",
			Args: []any{floats(nil, 3), -1, nil}, Want: []any{floats(nil, 3)}},

		kerneltest.Case{Name: "the sample's variance", Op: "aten::var.out",
			Args: []any{grid, []int{1}, true, false}, Want: []any{floats([]int{2}, 4, 4)}},
		kerneltest.Case{Name: "the population's", Op: "aten::var.correction_out",
			Args: []any{grid, []int{0}, 0, false}, Want: []any{floats([]int{3}, 2.25, 2.25, 2.25)}},
		kerneltest.Case{Name: "far from 0", Op: "aten::var.correction_out",
			Args: []any{floats([]int{3}, 1<<23, 1<<23+1, 1<<23+2), nil, nil, false}, Want: []any{floats(nil, 1)}},
		kerneltest.Case{Name: "of one element", Op: "aten::var.out",
			Args: []any{floats([]int{1}, 3), nil, true, false}, Want: []any{floats(nil, nan)}},
		kerneltest.Case{Name: "with the mean", Op: "aten::var_mean.correction_out",
			Args: []any{grid, []int{1}, 1, true}, Want: []any{floats([]int{2, 1}, 4, 4), floats([]int{2, 1}, 3, 4)}},
	)
}

// TestHostile calls operators with sizes that a small file can name but no machine
// can walk through.
func TestHostile(t *testing.T) {
	const huge = 1 << (bits.UintSize * 5 / 8)
	none := tensor.New(tensor.Float32, 2, huge, 0)
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "rows of nothing", Op: "aten::cumsum.out", Args: []any{none, 2, nil}, Want: []any{none}},
		kerneltest.Case{Name: "columns of nothing", Op: "aten::cumsum.out", Args: []any{none, 1, nil}, Want: []any{none}},
		kerneltest.Case{Name: "no results", Op: "aten::sum.IntList_out", Args: []any{none, []int{1}, false, nil}, Want: []any{tensor.New(tensor.Float32, 2, 0)}},
		kerneltest.Case{Name: "one result", Op: "aten::sum.IntList_out", Args: []any{none, nil, false, nil}, Want: []any{floats(nil, 0)}},
		kerneltest.Case{Name: "no extremes", Op: "aten::max.dim_max", Args: []any{none, 1, false}, Want: []any{tensor.New(tensor.Float32, 2, 0), tensor.New(tensor.Int64, 2, 0)}},
		kerneltest.Case{Name: "no spread", Op: "aten::var.out", Args: []any{none, []int{1}, true, false}, Want: []any{tensor.New(tensor.Float32, 2, 0)}},
		kerneltest.Case{Name: "no truth", Op: "aten::any.out", Args: []any{none, 1, false}, Want: []any{tensor.New(tensor.Bool, 2, 0)}},
	)
}

// TestLayouts checks the sums and the places of extremes of random tensors against
// one loop over all elements: any set of dimensions, any dim order, and sizes beyond
// every chunk and block.
func TestLayouts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, sizes := range [][]int{{3, 5, 4, 2}, {2, 9001}, {700, 11}, {2, 300, 1500}, {1, 30, 1, 20}, {6, 9000, 2}} {
		for range 4 {
			x := shuffled(r, sizes)
			dims := []int{}
			for d := range sizes {
				if r.IntN(2) == 0 {
					dims = append(dims, d)
				}
			}
			if len(dims) == 0 {
				dims = append(dims, r.IntN(len(sizes)))
			}
			total := reduceSlowly(x, dims, func(acc, v float32, _ int) float32 { return acc + v })
			greatest := reduceSlowly(x, dims[:1], func(acc, v float32, i int) float32 {
				if i == 0 {
					return v
				}
				return max(acc, v)
			})
			name := fmt.Sprint(sizes, x.DimOrder, dims)
			kerneltest.Run(t, set,
				kerneltest.Case{Name: "sum " + name, Op: "aten::sum.IntList_out", Args: []any{x, dims, true, nil}, Want: []any{total}},
				kerneltest.Case{Name: "amax " + name, Op: "aten::amax.out", Args: []any{x, dims[:1], true}, Want: []any{greatest}},
				kerneltest.Case{Name: "max " + name, Op: "aten::max.dim_max", Args: []any{x, dims[0], true},
					Outs: []any{greatest, tensor.New(tensor.Int64, greatest.Sizes...)}, Want: []any{greatest, nil}},
			)
		}
	}
}

// shuffled is a tensor of whole numbers, so that sums are exact, in a random dim order.
func shuffled(r *rand.Rand, sizes []int) *tensor.Tensor {
	order := make([]uint8, len(sizes))
	for i, d := range r.Perm(len(sizes)) {
		order[i] = uint8(d)
	}
	x := tensor.Make(tensor.Float32, sizes, order, tensor.Static)
	x.Bind(tensor.AlignedBytes(x.NBytes()))
	data := tensor.Data[float32](x)
	for i := range data {
		data[i] = float32(r.IntN(17) - 8)
	}
	return x
}

// reduceSlowly folds the listed dimensions, which stay with size 1; i counts the
// elements of a result.
func reduceSlowly(x *tensor.Tensor, dims []int, f func(acc, v float32, i int) float32) *tensor.Tensor {
	sizes := append([]int{}, x.Sizes...)
	for _, d := range dims {
		sizes[d] = 1
	}
	out := tensor.New(tensor.Float32, sizes...)
	results, counts := tensor.Data[float32](out), make([]int, out.Numel())
	data := tensor.Data[float32](x)
	at := make([]int, len(sizes))
	for range x.Numel() {
		from, to := 0, 0
		for d, i := range at {
			from += i * x.Strides[d]
			to += min(i, sizes[d]-1) * out.Strides[d]
		}
		results[to] = f(results[to], data[from], counts[to])
		counts[to]++
		for d := len(at) - 1; d >= 0; d-- {
			if at[d]++; at[d] < x.Sizes[d] {
				break
			}
			at[d] = 0
		}
	}
	return out
}

// TestAccuracy sums a million equal numbers, which loses digits in one accumulator.
func TestAccuracy(t *testing.T) {
	const n = 1 << 20
	x := tensor.New(tensor.Float32, n)
	for i, d := 0, tensor.Data[float32](x); i < n; i++ {
		d[i] = 0.1
	}
	wide := tensor.New(tensor.Float32, n/16, 16)
	copy(wide.Data, x.Data)
	column := make([]float32, 16)
	for i := range column {
		column[i] = float32(n/16) * float32(0.1)
	}
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "row", Op: "aten::sum.IntList_out", Args: []any{x, nil, false, nil}, Want: []any{floats(nil, n*float32(0.1))}},
		kerneltest.Case{Name: "columns", Op: "aten::sum.IntList_out", Args: []any{wide, []int{0}, false, nil}, Want: []any{floats([]int{16}, column...)}},
		kerneltest.Case{Name: "mean", Op: "aten::mean.dtype_out", Args: []any{x, nil}, Want: []any{floats(nil, 0.1)}},
	)
}
