package index_test

import (
	"math/bits"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestHostile calls operators with sizes that a small file can name but no machine
// can walk through.
func TestHostile(t *testing.T) {
	const huge = 1 << (bits.UintSize * 5 / 8)
	none := tensor.New(tensor.Float32, 5, huge, 3, 0)
	tall, wide := tensor.New(tensor.Int64, 1<<12, 1), tensor.New(tensor.Int64, 1, 1<<12)
	one := floats([]int{1, 1}, 1)
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "rests without elements", Op: "aten::index.Tensor_out",
			Args: []any{none, list(longs([]int{1}, 4), nil, longs([]int{1}, 2))}, Want: []any{tensor.New(tensor.Float32, 1, huge, 0)}},
		kerneltest.Case{Name: "picks without elements", Op: "aten::index.Tensor_out",
			Args: []any{tensor.New(tensor.Float32, 1, 0), list(tensor.New(tensor.Int64, huge, 0))}, Want: []any{tensor.New(tensor.Float32, huge, 0, 0)}},
		kerneltest.Case{Name: "writes of nothing", Op: "aten::index_put_",
			Args: []any{tensor.New(tensor.Float32, huge, 2, 0), list(nil, longs([]int{1}, 1)), floats(nil, 1), false}},
		kerneltest.Case{Name: "sums of nothing", Op: "aten::index_put_",
			Args: []any{tensor.New(tensor.Float32, huge, 2, 0), list(nil, longs([]int{1}, 1)), floats(nil, 1), true}},
		kerneltest.Case{Name: "indices that broadcast to millions", Op: "aten::index_put_",
			Args: []any{one, list(tall, wide), one, false}, Refused: "a few times"},
		kerneltest.Case{Name: "masks that broadcast to millions", Op: "aten::masked_select.out",
			Args: []any{tensor.New(tensor.Float32, 1<<12, 1), tensor.New(tensor.Bool, 1, 1<<12)}, Outs: []any{floats([]int{0})}, Refused: "a few times"},
		kerneltest.Case{Name: "columns of nothing", Op: "aten::index_select.out",
			Args: []any{tensor.New(tensor.Float32, huge, 2, 0), 1, longs([]int{1}, 1)}, Want: []any{tensor.New(tensor.Float32, huge, 1, 0)}},
		kerneltest.Case{Name: "rows of nothing in order", Op: "aten::sort.values",
			Args: []any{tensor.New(tensor.Float32, huge, 0), 1, false}, Want: []any{tensor.New(tensor.Float32, huge, 0), tensor.New(tensor.Int64, huge, 0)}},
		kerneltest.Case{Name: "gather nothing", Op: "aten::gather.out",
			Args: []any{none, 1, tensor.New(tensor.Int64, huge, huge, 3, 0), false}, Want: []any{tensor.New(tensor.Float32, huge, huge, 3, 0)}},
		kerneltest.Case{Name: "indices of nothing", Op: "aten::nonzero.out",
			Args: []any{none}, Want: []any{longs([]int{0, 4})}},
	)
}
