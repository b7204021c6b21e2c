package index_test

import (
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestNoAllocs(t *testing.T) {
	x := tensor.New(tensor.Float32, 6, 5, 4)
	half := tensor.New(tensor.Float16, 6, 5, 4)
	last := tensor.Make(tensor.Float32, []int{6, 5, 4}, []uint8{2, 0, 1}, tensor.Static)
	rows := tensor.Of([]int64{5, 0, 3}, 3)
	narrow := tensor.Of([]int32{-1, 2, 0}, 3)
	mask := tensor.Of([]bool{true, false, true, true, false, true}, 6)
	along := tensor.New(tensor.Int64, 6, 2, 4)
	grid := tensor.New(tensor.Bool, 6, 5, 4)
	for _, c := range []kerneltest.Case{
		{Op: "aten::index.Tensor_out", Args: []any{x, []*tensor.Tensor{rows, nil, narrow}}, Outs: []any{tensor.New(tensor.Float32, 3, 5)}},
		{Op: "aten::index.Tensor_out", Args: []any{last, []*tensor.Tensor{mask}}, Outs: []any{tensor.New(tensor.Float32, 4, 5, 4)}},
		{Op: "aten::index_put.out", Args: []any{half, []*tensor.Tensor{nil, narrow}, tensor.New(tensor.Float16, 1), true}, Outs: []any{half}},
		{Op: "aten::index_put_", Args: []any{x, []*tensor.Tensor{nil, narrow}, tensor.New(tensor.Float32, 6, 3, 4), false}},
		{Op: "aten::index_select.out", Args: []any{x, 0, rows}, Outs: []any{tensor.New(tensor.Float32, 3, 5, 4)}},
		{Op: "aten::embedding.out", Args: []any{tensor.New(tensor.Float32, 6, 8), rows, -1, false, false}, Outs: []any{tensor.New(tensor.Float32, 3, 8)}},
		{Op: "aten::_embedding_bag.out", Args: []any{tensor.New(tensor.Float16, 6, 8), rows, longs([]int{2}, 0, 1), false, 2, false, nil, false, -1},
			Outs: []any{tensor.New(tensor.Float16, 2, 8), tensor.New(tensor.Int64, 3), tensor.New(tensor.Int64, 2), tensor.New(tensor.Int64, 2, 8)}},
		{Op: "aten::bucketize.Tensor_out", Args: []any{half, tensor.New(tensor.Float32, 9), true, false}, Outs: []any{tensor.New(tensor.Int32, 6, 5, 4)}},
		{Op: "aten::bucketize.Scalar_out", Args: []any{2.5, tensor.New(tensor.Int8, 9), false, false}, Outs: []any{tensor.New(tensor.Int64)}},
		{Op: "aten::gather.out", Args: []any{x, 1, along, false}, Outs: []any{tensor.New(tensor.Float32, 6, 2, 4)}},
		{Op: "aten::scatter.src_out", Args: []any{x, 1, along, x}, Outs: []any{last}},
		{Op: "aten::scatter.value_out", Args: []any{x, 1, along, 2.5}, Outs: []any{x}},
		{Op: "aten::scatter_add.out", Args: []any{half, 1, along, half}, Outs: []any{half}},
		{Op: "aten::masked_select.out", Args: []any{x, grid}, Outs: []any{tensor.New(tensor.Float32, 0)}},
		{Op: "aten::masked_scatter.out", Args: []any{x, tensor.Of([]bool{true, false, true, false}, 4), x}, Outs: []any{x}},
		{Op: "aten::nonzero.out", Args: []any{mask}, Outs: []any{tensor.New(tensor.Int64, 4, 1)}},
		{Op: "aten::topk.values", Args: []any{x, 2, 1, true, true}, Outs: []any{tensor.New(tensor.Float32, 6, 2, 4), tensor.New(tensor.Int64, 6, 2, 4)}},
		{Op: "aten::sort.values", Args: []any{half, -1, false}, Outs: []any{half, tensor.New(tensor.Int64, 6, 5, 4)}},
	} {
		c.Name = c.Op
		kerneltest.NoAllocs(t, set, c)
	}
}
