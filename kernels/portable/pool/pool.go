// Package pool (no compatibility promise) implements the ATen pooling operators over one to three spatial
// dimensions.
package pool

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

const meanTypes = "int64, float16, bfloat16, float32, float64"

// pooling is the geometry of a pooling: planes of points, over the last dims dimensions of tensors of the given rank.
type pooling struct {
	window.Shape
	planes, rank, dims int
	adaptive           bool         // windows are the parts of the input, see [window.Part], and have no kernel
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

// outSizes reads the sizes of an adaptive pool's output, argument 1.
func (w *pooling) outSizes(a kernels.Args, dims int) error {
	if n := len(a.Ints(1)); n != dims {
		return kernels.Badf(1, fmt.Sprintf("%d entries", dims), "%d", n)
	}
	if err := window.Read(&w.Out, a, 1, dims, 0, nil); err != nil {
		return err
	}
	for i := range 3 - dims {
		w.Out[i] = 1
	}
	w.adaptive, w.Dilate = true, [3]int{1, 1, 1}
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
	w.adaptive = false
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
			return kernels.Badf(first+2, fmt.Sprintf("at most half of the kernel's extent %d", extent), "%d", w.Pad[i])
		}
		if w.Slide(i, ceil); w.Out[i] < 1 {
			return kernels.Badf(first, "a kernel that fits the input", "extent %d for size %d and padding %d", extent, w.In[i], w.Pad[i])
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

// longest returns a bound for the length of windows along a dimension.
func (w *pooling) longest(d int) int {
	if w.adaptive {
		return min(w.In[d]/w.Out[d]+2, w.In[d])
	}
	return min(w.Kernel[d], w.In[d])
}

// span returns the first tap of a window along a dimension that does not lie before the input, and how many are in it.
func (w *pooling) span(d, at int) (first, n int) {
	if w.adaptive {
		lo, hi := window.Part(w.In[d], w.Out[d], at)
		return lo, hi - lo
	}
	start, lo, hi := w.Taps(d, at)
	return start + lo*w.Dilate[d], hi - lo
}

// alike returns the number of windows from at on with the same n taps, so many that the work of each stays within tileWork.
func (w *pooling) alike(d, at, n, work int) int {
	if w.adaptive {
		return 1
	}
	return min(w.Alike(d, at, n), max(tileWork/max(work, 1), 1))
}
