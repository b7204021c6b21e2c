package cortexm

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/kernels/window"
)

// images are input and output of a convolution or pooling, [N, C, H, W], and its geometry.
type images struct {
	window.Shape
	input, output   layout // as [N, H, W, C]
	batch, channels int    // of the input
	outPad          [3]int
	transposed      bool
}

// limit bounds every size, as the device's int32 does.
const limit = math.MaxInt32

// setInput reads the input, argument i.
func (w *images) setInput(r *reader, i int) {
	t := r.Tensor(i)
	r.sized(i)
	if t.Rank() != 4 || t.Sizes[1] < 1 || t.Sizes[2] < 1 || t.Sizes[3] < 1 {
		r.bad(i, "%v", "an image [N, C, H, W], C, H and W at least 1", t)
		return
	}
	w.batch, w.channels, w.In = t.Sizes[0], t.Sizes[1], window.Spatial(t.Sizes, 2)
	w.Dilate, w.outPad, w.transposed = ones, [3]int{}, false
}

var ones = [3]int{1, 1, 1}

// sized checks the sizes of tensor argument i.
func (r *reader) sized(i int) {
	for _, n := range r.Tensor(i).Sizes {
		if n > limit {
			r.bad(i, "%v", "sizes of at most 2^31-1", r.Tensor(i))
		}
	}
}

// setKernel takes the kernel of weights, argument i, whose two middle dimensions it is.
func (w *images) setKernel(r *reader, i int) {
	t := r.Tensor(i)
	if t.Rank() != 4 || t.Numel() == 0 {
		r.bad(i, "%v", "4 dimensions of at least 1", t)
		return
	}
	w.Kernel = window.Spatial(t.Sizes[:3], 2)
	r.sized(i)
}

// pair reads an int[] of two entries.
func (r *reader) pair(dst *[3]int, i int, least int64) {
	switch list := r.Ints(i); {
	case len(list) != 2:
		r.bad(i, "%v", "2 entries", list)
	case max(list[0], list[1]) > limit:
		r.bad(i, "%v", fmt.Sprintf("entries in [%d, 2^31-1]", least), list)
	default:
		r.keep(window.Read(dst, r.Args, i, 2, least, nil))
	}
}

// place computes the output's size, resizes the out, argument out, and describes both images. arg is
// the argument to blame where no window fits.
func (w *images) place(r *reader, arg int, ceil bool, out, channels int) {
	if w.slide(r, arg, ceil); r.err != nil {
		return
	}
	sizes := [4]int{w.batch, channels, w.Out[1], w.Out[2]}
	if r.resize(out, sizes[:]); r.err == nil {
		w.input.setImage(r.Tensor(0))
		w.output.setImage(r.Tensor(out))
	}
}

func (w *images) slide(r *reader, arg int, ceil bool) {
	for d := 0; d < 3 && r.err == nil; d++ {
		if w.transposed {
			w.SlideBack(d, w.outPad[d])
		} else {
			w.Slide(d, ceil)
		}
		if w.Out[d] < 1 || w.Out[d] > limit {
			r.bad(arg, "extent %d, padding %d and stride %d for size %d", "a kernel that fits the input",
				w.Extent(d), w.Pad[d], w.Stride[d], w.In[d])
		}
	}
}

// source is the input index in dimension d that tap k of window at reads; ok is false where it lies outside or, of a transposed
// convolution, between.
func (w *images) source(d, at, k int) (i int, ok bool) {
	if w.transposed {
		return w.SourceBack(d, at, k)
	}
	return w.Source(d, at, k)
}
