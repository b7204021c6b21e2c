package reduce_test

import (
	"math"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestRunning(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	grid := floats([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "products", Op: "aten::cumprod.out", Args: []any{grid, 1, nil},
			Want: []any{floats([]int{2, 3}, 1, 2, 6, 4, 20, 120)}},
		kerneltest.Case{Name: "products of columns", Op: "aten::cumprod.out", Args: []any{grid, -2, tensor.Float32},
			Want: []any{floats([]int{2, 3}, 1, 2, 3, 4, 10, 18)}},
		kerneltest.Case{Name: "products of bytes as int64", Op: "aten::cumprod.out", Args: []any{tensor.Of([]uint8{200, 200}, 2), 0,
			tensor.Int64}, Want: []any{longs([]int{2}, 200, 40000)}},
		kerneltest.Case{Name: "products of a number", Op: "aten::cumprod.out", Args: []any{floats(nil, 3), 0, nil}, Want: []any{floats(nil, 3)}},
		kerneltest.Case{Name: "another type than the out's", Op: "aten::cumprod.out", Args: []any{grid, 1, tensor.Int64}, Outs: []any{grid},
			Refused: "the out's type, float32"},
		kerneltest.Case{Name: "sums of exponentials", Op: "aten::logcumsumexp.out", Args: []any{floats([]int{4}, -inf, 0, 0, 1000), 0},
			Want: []any{floats([]int{4}, -inf, 0, 0.6931472, 1000)}},
		kerneltest.Case{Name: "and of infinity", Op: "aten::logcumsumexp.out", Args: []any{floats([]int{3}, inf, inf, nan), 0},
			Want: []any{floats([]int{3}, inf, inf, nan)}},
		kerneltest.Case{Name: "of integers", Op: "aten::logcumsumexp.out", Args: []any{longs([]int{1}, 1), 0}, Outs: []any{longs([]int{1}, 1)},
			Refused: "a float type"},
		kerneltest.Case{Name: "maxima, the last of equal ones", Op: "aten::cummax.out",
			Args: []any{floats([]int{6}, 1, 3, 2, 3, nan, 9), 0}, Want: []any{floats([]int{6}, 1, 3, 3, 3, nan, nan),
				longs([]int{6}, 0, 1, 1, 3, 4, 4)}},
		kerneltest.Case{Name: "minima of columns", Op: "aten::cummin.out",
			Args: []any{longs([]int{3, 2}, 4, 1, 4, 2, 3, 0), 0}, Want: []any{longs([]int{3, 2}, 4, 1, 4, 1, 3, 0),
				longs([]int{3, 2}, 0, 0, 1, 0, 2, 2)}},
		kerneltest.Case{Name: "int32 indices", Op: "aten::cummin.out", Args: []any{grid, 0}, Outs: []any{grid, tensor.New(tensor.Int32, 2, 3)},
			Refused: "want int64"},
		kerneltest.Case{Name: "no such dimension", Op: "aten::cummax.out", Args: []any{grid, 2},
			Outs: []any{grid, tensor.New(tensor.Int64, 2, 3)}, Refused: "a dimension in [-2, 1]"},
		kerneltest.Case{Name: "of nothing", Op: "aten::cummax.out", Args: []any{tensor.New(tensor.Float32, 0, 3), 0},
			Want: []any{tensor.New(tensor.Float32, 0, 3), tensor.New(tensor.Int64, 0, 3)}},
	)
	kerneltest.NoAllocs(t, set,
		kerneltest.Case{Op: "aten::cumprod.out", Args: []any{grid, 1, nil}, Outs: []any{grid}},
		kerneltest.Case{Op: "aten::cummax.out", Args: []any{grid, 1}, Outs: []any{grid, tensor.New(tensor.Int64, 2, 3)}},
	)
}
