package cortexm

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// images is the geometry of a convolution or pooling of images [N, C, H, W].
type images struct {
	window.Shape
	batch, channels int // of the input
	outPad          [3]int
	transposed      bool
}

// limit bounds every size, as the device's int32 does.
const limit = math.MaxInt32

// setInput reads the input, argument i.
func (w *images) setInput(a kernels.Args, i int) error {
	t := a.Tensor(i)
	if err := sized(a, i); err != nil {
		return err
	}
	if t.Rank() != 4 || t.Sizes[1] < 1 || t.Sizes[2] < 1 || t.Sizes[3] < 1 {
		return kernels.Badf(i, "an image [N, C, H, W], C, H and W at least 1", "%v", t)
	}
	w.batch, w.channels, w.In = t.Sizes[0], t.Sizes[1], window.Spatial(t.Sizes, 2)
	w.Dilate, w.outPad, w.transposed = ones, [3]int{}, false
	return nil
}

var ones = [3]int{1, 1, 1}

func sized(a kernels.Args, i int) error {
	for _, n := range a.Tensor(i).Sizes {
		if n > limit {
			return kernels.Badf(i, "sizes of at most 2^31-1", "%v", a.Tensor(i))
		}
	}
	return nil
}

// setKernel takes the kernel of weights, argument i, whose two middle dimensions it is.
func (w *images) setKernel(a kernels.Args, i int) error {
	t := a.Tensor(i)
	if t.Rank() != 4 || t.Numel() == 0 {
		return kernels.Badf(i, "4 dimensions of at least 1", "%v", t)
	}
	w.Kernel = window.Spatial(t.Sizes[:3], 2)
	return sized(a, i)
}

// pair reads an int[] of two entries.
func pair(dst *[3]int, a kernels.Args, i int, least int64) error {
	list := a.Ints(i)
	if len(list) != 2 {
		return kernels.Badf(i, "2 entries", "%v", list)
	}
	if max(list[0], list[1]) > limit {
		return kernels.Badf(i, fmt.Sprintf("entries in [%d, 2^31-1]", least), "%v", list)
	}
	return window.Read(dst, a, i, 2, least, nil)
}

// slide computes the output's size; arg is the argument to blame where there is none.
func (w *images) slide(arg int, ceil bool) error {
	for d := range 3 {
		if w.transposed {
			w.SlideBack(d, w.outPad[d])
		} else {
			w.Slide(d, ceil)
		}
		if w.Out[d] < 1 || w.Out[d] > limit {
			return kernels.Badf(arg, "a kernel that fits the input", "extent %d, padding %d and stride %d for size %d",
				w.Extent(d), w.Pad[d], w.Stride[d], w.In[d])
		}
	}
	return nil
}

// resize gives the out, argument i, its sizes with the given number of channels.
func (w *images) resize(a kernels.Args, i, channels int) error {
	sizes := [4]int{w.batch, channels, w.Out[1], w.Out[2]}
	if _, ok := tensor.Product(sizes[:]); !ok {
		return kernels.Badf(0, "sizes whose product fits", "%v", sizes)
	}
	return kernels.ResizeOut(a, i, sizes[:])
}

// source is the input index in dimension d that tap k of window at reads; ok is false
// where it lies outside or, of a transposed convolution, between.
func (w *images) source(d, at, k int) (i int, ok bool) {
	if !w.transposed {
		i = w.Start(d, at) + k*w.Dilate[d]
		return i, i >= 0 && i < w.In[d]
	}
	i = at + w.Pad[d] - k*w.Dilate[d]
	if i < 0 || i%w.Stride[d] != 0 {
		return 0, false
	}
	i /= w.Stride[d]
	return i, i < w.In[d]
}
