// Package pool (no compatibility promise) implements the ATen pooling operators over one to three spatial
// dimensions.
package pool

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// Ops returns the operators of the package.
func Ops() []kernels.Op { return slices.Concat(lineOps, ops(2), ops(3), columnOps) }

// lineOps are the operators over one spatial dimension.
var lineOps = []kernels.Op{
	{Schema: "aten::avg_pool1d.out(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, " +
		"bool count_include_pad=True, *, Tensor(a!) out)", Func: avgPool(1), DTypes: meanTypes, Family: kernels.Sum},
	{Schema: "aten::adaptive_avg_pool1d.out(Tensor self, int[1] output_size, *, Tensor(a!) out)", Func: adaptiveAvgPool(1),
		DTypes: meanTypes, Family: kernels.Sum},
}

const meanTypes = "int64, float16, bfloat16, float32, float64"

// ops returns the operators over dims spatial dimensions.
func ops(dims int) []kernels.Op {
	const float = "float16, bfloat16, float32, float64"
	list := fmt.Sprintf("int[%d]", dims)
	name := func(format string) string { return fmt.Sprintf(format, dims) }
	return []kernels.Op{
		{Schema: name("aten::max_pool%dd_with_indices.out(Tensor self, ") + list + " kernel_size, " +
			list + " stride=[], " + list + " padding=0, " + list + " dilation=1, bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices)",
			Func: maxPool(dims), DTypes: "integers, " + float, Family: kernels.Exact, Note: "NaN wins, as in PyTorch"},
		{Schema: name("aten::max_pool%dd_with_indices_backward.grad_input(Tensor grad_output, Tensor self, ") + list + " kernel_size, " + list +
			" stride, " + list + " padding, " + list + " dilation, bool ceil_mode, Tensor indices, *, Tensor(a!) grad_input)",
			Func: maxPoolBackward(dims), DTypes: float, Family: kernels.Sum},
		{Schema: name("aten::avg_pool%dd.out(Tensor self, ") + list + " kernel_size, " + list + " stride=[], " + list + " padding=0, " +
			"bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None, *, Tensor(a!) out)",
			Func: avgPool(dims), DTypes: meanTypes, Family: kernels.Sum},
		{Schema: name("aten::_adaptive_avg_pool%dd.out(Tensor self, SymInt") + fmt.Sprintf("[%d] output_size, *, Tensor(a!) out)", dims),
			Func: adaptiveAvgPool(dims), DTypes: meanTypes, Family: kernels.Sum},
		adaptiveMaxOp(dims),
	}
}

// pooling is the geometry of a pooling: planes of points, over the last dims dimensions of tensors of the given rank.
type pooling struct {
	window.Shape
	planes, rank, dims int
	c                  *kernels.Ctx // for loops over large windows
}

// input checks argument i: channels and spatial dimensions, with or without a batch.
func (w *pooling) input(i int, t *tensor.Tensor, dims int) error {
	w.dims, w.rank = dims, t.Rank()
	if w.rank != dims+1 && w.rank != dims+2 {
		return kernels.Bad(i, t.String(), fmt.Sprintf("rank %d or %d", dims+1, dims+2))
	}
	for d, n := range t.Sizes {
		if n > window.Limit || n == 0 && (d > 0 || w.rank == dims+1) {
			return kernels.Bad(i, t.String(), fmt.Sprintf("sizes of at least 1 and at most 2^%d behind the batch", window.LimitBits))
		}
	}
	w.In = window.Spatial(t.Sizes, dims)
	w.planes = 1
	for _, n := range t.Sizes[:w.rank-dims] {
		w.planes *= n
	}
	return nil
}

// sizes returns the sizes of the output. They are stored in dst.
func (w *pooling) sizes(dst *[5]int, in *tensor.Tensor) []int {
	copy(dst[:], in.Sizes)
	copy(dst[w.rank-w.dims:], w.Out[3-w.dims:])
	return dst[:w.rank]
}

// slide reads kernel size, stride and padding, the arguments from first, then dilation unless dilation is negative,
// and computes the output's size.
func (w *pooling) slide(a kernels.Args, first, dilation int, ceil bool) error {
	if err := window.Read(&w.Kernel, a, first, w.dims, 1, nil); err != nil {
		return err
	}
	if err := window.Read(&w.Stride, a, first+1, w.dims, 1, &w.Kernel); err != nil {
		return err
	}
	if err := window.Read(&w.Pad, a, first+2, w.dims, 0, nil); err != nil {
		return err
	}
	w.Dilate = [3]int{1, 1, 1}
	if dilation >= 0 {
		if err := window.Read(&w.Dilate, a, dilation, w.dims, 1, nil); err != nil {
			return err
		}
	}
	for i := range 3 {
		extent := w.Extent(i)
		if w.Pad[i] > extent/2 {
			return kernels.Badf(first+2, "%d", fmt.Sprintf("at most half of the kernel's extent %d", extent), w.Pad[i])
		}
		if w.Slide(i, ceil); w.Out[i] < 1 {
			return kernels.Badf(first, "extent %d for size %d and padding %d", "a kernel that fits the input", extent, w.In[i], w.Pad[i])
		}
	}
	return nil
}

// place returns the index of a point in a plane of the input.
func (w *pooling) place(d, h, x int) int { return (d*w.In[1]+h)*w.In[2] + x }

// point returns the plane, depth and height of output row i, counted over the planes.
func (w *pooling) point(i int) (plane, d, h int) {
	return i / w.Out[1] / w.Out[0], i / w.Out[1] % w.Out[0], i % w.Out[1]
}
