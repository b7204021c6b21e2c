package move_test

import (
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/portable/move"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var set = kernels.NewSet(move.Ops())

func TestTable(t *testing.T)  { kerneltest.Table(t, set) }
func TestRandom(t *testing.T) { kerneltest.Random(t, set, 400) }
func FuzzOps(f *testing.F)    { kerneltest.Fuzz(f, set) }

func TestNoAllocs(t *testing.T) {
	x := tensor.New(tensor.Float32, 8, 6, 4)
	order := []uint8{0, 2, 1}
	y := tensor.Make(tensor.Float32, []int{8, 24}, []uint8{1, 0}, tensor.Static)
	for _, c := range []kerneltest.Case{
		{Op: "aten::permute_copy.out", Args: []any{x, []int{2, 0, 1}}, Want: []any{tensor.New(tensor.Float32, 4, 8, 6)}},
		{Op: "aten::view_copy.out", Args: []any{tensor.Make(tensor.Float32, []int{8, 6, 4}, order, tensor.Static), []int{8, -1}}, Outs: []any{y}},
		{Op: "aten::cat.out", Args: []any{[]*tensor.Tensor{x, tensor.New(tensor.Float16, 8, 2, 4)}, 1}, Outs: []any{tensor.New(tensor.Float32, 8, 8, 4)}},
		{Op: "aten::slice_copy.Tensor_out", Args: []any{x, 0, 1, nil, 3}, Outs: []any{tensor.New(tensor.Float32, 3, 6, 4)}},
		{Op: "aten::split_copy.Tensor_out", Args: []any{x, 4, 0}, Outs: []any{[]*tensor.Tensor{tensor.New(tensor.Float32, 4, 6, 4), tensor.New(tensor.Float32, 4, 6, 4)}}},
		{Op: "aten::constant_pad_nd.out", Args: []any{x, []int{1, 1, -1, 2}, 1.5}, Outs: []any{tensor.New(tensor.Float32, 8, 7, 6)}},
		{Op: "aten::reflection_pad1d.out", Args: []any{x, []int{1, 2}}, Outs: []any{tensor.New(tensor.Float32, 8, 6, 7)}},
		{Op: "aten::roll.out", Args: []any{x, []int{1, 2}, []int{0, 2}}, Outs: []any{x}},
		{Op: "aten::roll.out", Args: []any{tensor.Make(tensor.Float32, []int{8, 6, 4}, order, tensor.Static), []int{1}, []int{}}, Outs: []any{x}},
		{Op: "aten::repeat.out", Args: []any{x, []int{2, 1, 2, 1}}, Outs: []any{tensor.New(tensor.Float32, 2, 8, 12, 4)}},
		{Op: "aten::as_strided_copy.out", Args: []any{x, []int{2, 2}, []int{1, 2}, 3}, Outs: []any{tensor.New(tensor.Float32, 2, 2)}},
		{Op: "aten::tril.out", Args: []any{x, 1}, Outs: []any{x}},
		{Op: "aten::pixel_shuffle.out", Args: []any{x, 2}, Outs: []any{tensor.New(tensor.Float32, 2, 12, 8)}},
		{Op: "aten::select_scatter.out", Args: []any{x, tensor.New(tensor.Int32, 8, 4), 1, -1}, Outs: []any{x}},
	} {
		c.Name = c.Op
		kerneltest.NoAllocs(t, set, c)
	}
}
