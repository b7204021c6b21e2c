package cortexm

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// window is the geometry of a convolution or pooling of images [N, C, H, W]; index 0
// is height, 1 width.
type window struct {
	batch, channels             int // of the input
	in, out                     [2]int
	kernel, stride, pad, dilate [2]int
	outPad                      [2]int
	transposed                  bool
}

// limit bounds every size and parameter, as the device's int32 does, so that no sum of
// two products of two leaves int64.
const limit = math.MaxInt32

// setInput reads the input, argument i.
func (w *window) setInput(a kernels.Args, i int) error {
	t := a.Tensor(i)
	if t.Rank() != 4 || t.Sizes[1] < 1 || t.Sizes[2] < 1 || t.Sizes[3] < 1 {
		return kernels.Badf(i, "an image [N, C, H, W], C, H and W at least 1", "%v", t)
	}
	for _, n := range t.Sizes {
		if n > limit {
			return kernels.Badf(i, "sizes of at most 2^31-1", "%v", t)
		}
	}
	w.batch, w.channels, w.in = t.Sizes[0], t.Sizes[1], [2]int(t.Sizes[2:])
	w.dilate, w.outPad, w.transposed = [2]int{1, 1}, [2]int{}, false
	return nil
}

// setKernel takes the kernel of weights, argument i, whose two middle dimensions it is.
func (w *window) setKernel(a kernels.Args, i int) error {
	t := a.Tensor(i)
	if t.Rank() != 4 || t.Numel() == 0 {
		return kernels.Badf(i, "4 dimensions of at least 1", "%v", t)
	}
	for _, n := range t.Sizes {
		if n > limit {
			return kernels.Badf(i, "sizes of at most 2^31-1", "%v", t)
		}
	}
	w.kernel = [2]int(t.Sizes[1:])
	return nil
}

// pair reads an int[] of two entries.
func pair(dst *[2]int, a kernels.Args, i int, least int64) error {
	list := a.Ints(i)
	if len(list) != 2 {
		return kernels.Badf(i, "2 entries", "%v", list)
	}
	for d, v := range list {
		if v < least || v > limit {
			return kernels.Badf(i, fmt.Sprintf("entries in [%d, 2^31-1]", least), "%v", list)
		}
		dst[d] = int(v)
	}
	return nil
}

// slide computes the output's size; arg is the argument to blame where there is none.
func (w *window) slide(arg int, ceil bool) error {
	for d := range 2 {
		extent := w.dilate[d]*(w.kernel[d]-1) + 1
		if w.transposed {
			w.out[d] = (w.in[d]-1)*w.stride[d] - 2*w.pad[d] + extent + w.outPad[d]
		} else {
			w.out[d] = windows(w.in[d]+2*w.pad[d]-extent, w.in[d]+w.pad[d], w.stride[d], ceil)
		}
		if w.out[d] < 1 || w.out[d] > limit {
			return kernels.Badf(arg, "a kernel that fits the input", "extent %d, padding %d and stride %d for size %d",
				extent, w.pad[d], w.stride[d], w.in[d])
		}
	}
	return nil
}

// windows is how often a window slides where room is left beside it; in ceil mode the
// last may end outside, but starts before end.
func windows(room, end, stride int, ceil bool) int {
	if room < 0 {
		return 0
	}
	n := room/stride + 1
	if ceil && room%stride != 0 && n*stride < end {
		n++
	}
	return n
}

// resize gives the out, argument i, its sizes with the given number of channels.
func (w *window) resize(a kernels.Args, i, channels int) error {
	sizes := [4]int{w.batch, channels, w.out[0], w.out[1]}
	if _, ok := tensor.Product(sizes[:]); !ok {
		return kernels.Badf(0, "sizes whose product fits", "%v", sizes)
	}
	return kernels.ResizeOut(a, i, sizes[:])
}

// source is the input index in dimension d that tap k of window at reads; ok is false
// where it lies outside or, of a transposed convolution, between.
func (w *window) source(d, at, k int) (i int, ok bool) {
	if !w.transposed {
		i = at*w.stride[d] - w.pad[d] + k*w.dilate[d]
		return i, i >= 0 && i < w.in[d]
	}
	i = at + w.pad[d] - k*w.dilate[d]
	if i < 0 || i%w.stride[d] != 0 {
		return 0, false
	}
	i /= w.stride[d]
	return i, i < w.in[d]
}

// inside is the range of taps of window at that read inside the input, in steps of one:
// for windows that are not dilated.
func (w *window) inside(d, at int) (start, lo, hi int) {
	start = at*w.stride[d] - w.pad[d]
	return start, max(0, -start), max(min(w.kernel[d], w.in[d]-start), 0)
}
