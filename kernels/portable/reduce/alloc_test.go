package reduce_test

import (
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestNoAllocs(t *testing.T) {
	x := tensor.New(tensor.Float32, 6, 40, 12)
	half := tensor.New(tensor.Float16, 6, 40, 12)
	last := tensor.Make(tensor.Float32, []int{6, 40, 12}, []uint8{2, 0, 1}, tensor.Static)
	row := func(d tensor.DType) *tensor.Tensor { return tensor.New(d, 6, 40) }
	for _, c := range []kerneltest.Case{
		{Op: "aten::sum.IntList_out", Args: []any{x, []int{2}, false, nil}, Outs: []any{row(tensor.Float32)}},
		{Op: "aten::sum.IntList_out", Args: []any{half, []int{0, 2}, true, nil}, Outs: []any{tensor.New(tensor.Float16, 1, 40, 1)}},
		{Op: "aten::mean.out", Args: []any{last, []int{0}, false, nil}, Outs: []any{tensor.New(tensor.Float32, 40, 12)}},
		{Op: "aten::prod.out", Args: []any{x, nil}, Outs: []any{tensor.New(tensor.Float32)}},
		{Op: "aten::amax.out", Args: []any{x, []int{-1}, false}, Outs: []any{row(tensor.Float32)}},
		{Op: "aten::max.dim_max", Args: []any{half, 2, false}, Outs: []any{row(tensor.Float16), row(tensor.Int64)}},
		{Op: "aten::argmin.out", Args: []any{last, nil, false}, Outs: []any{tensor.New(tensor.Int64)}},
		{Op: "aten::any.dims_out", Args: []any{half, []int{2}, false}, Outs: []any{row(tensor.Bool)}},
		{Op: "aten::cumsum.out", Args: []any{last, 1, nil}, Outs: []any{x}},
		{Op: "aten::var_mean.correction_out", Args: []any{x, []int{1}, 1, true}, Outs: []any{tensor.New(tensor.Float32, 6, 1, 12), tensor.New(tensor.Float32, 6, 1, 12)}},
	} {
		c.Name = c.Op
		kerneltest.NoAllocs(t, set, c)
	}
}
