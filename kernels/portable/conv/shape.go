package conv

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// shape is the geometry of a convolution.
type shape struct {
	window.Shape
	transposed              bool
	batch, groups           int
	inChannels, outChannels int
}

// parse checks the parameters of a convolution of x with w: stride, padding,
// dilation, transposed, output_padding and groups, arguments from stride on. xArg is
// x's index, w's follows it.
func (s *shape) parse(a kernels.Args, x, w *tensor.Tensor, xArg, stride int) error {
	rank := x.Rank()
	if rank < 3 || rank > 5 {
		return kernels.Bad(xArg, x.String(), "rank 3 to 5: batch, channels and 1 to 3 spatial dimensions")
	}
	if w.Rank() != rank {
		return kernels.Badf(xArg+1, fmt.Sprintf("rank %d, as the input", rank), "%v", w)
	}
	for i, t := range []*tensor.Tensor{x, w} {
		for _, n := range t.Sizes {
			if n > window.Limit {
				return kernels.Badf(xArg+i, fmt.Sprintf("sizes of at most 2^%d", window.LimitBits), "%v", t)
			}
		}
	}
	s.transposed = a.Bool(stride + 3)
	s.In, s.Kernel = window.Spatial(x.Sizes, rank-2), window.Spatial(w.Sizes, rank-2)
	var outPad [3]int
	for _, p := range []struct {
		arg   int
		dst   *[3]int
		least int64
	}{{stride, &s.Stride, 1}, {stride + 1, &s.Pad, 0}, {stride + 2, &s.Dilate, 1}, {stride + 4, &outPad, 0}} {
		if err := window.Read(p.dst, a, p.arg, rank-2, p.least, nil); err != nil {
			return err
		}
	}
	if err := s.channels(a, x, w, xArg, stride+5); err != nil {
		return err
	}
	return s.extent(x, w, xArg, outPad, stride+4)
}

// channels checks groups and the channel sizes: weight is [out, in/groups, …], or [in, out/groups, …] if transposed.
func (s *shape) channels(a kernels.Args, x, w *tensor.Tensor, xArg, groupsArg int) error {
	g := a.Int(groupsArg)
	if g < 1 || g > window.Limit {
		return kernels.Badf(groupsArg, "at least 1", "%d", g)
	}
	s.batch, s.groups = x.Sizes[0], int(g)
	s.inChannels, s.outChannels = x.Sizes[1], w.Sizes[0]
	perGroup := w.Sizes[1] * s.groups
	want := s.inChannels
	if s.transposed {
		s.outChannels = perGroup
		perGroup = w.Sizes[0]
	}
	if perGroup != want || w.Sizes[0]%s.groups != 0 || want%s.groups != 0 {
		return kernels.Badf(xArg+1, fmt.Sprintf("channels that fit an input of %d in %d groups", want, s.groups), "%v", w)
	}
	return nil
}

// extent computes the output's spatial sizes.
func (s *shape) extent(x, w *tensor.Tensor, xArg int, outPad [3]int, outPadArg int) error {
	for i := range 3 {
		if s.Kernel[i] == 0 {
			return kernels.Bad(xArg+1, w.String(), "a kernel without zero sizes")
		}
		least := 1
		if s.transposed {
			if outPad[i] > 0 && outPad[i] >= max(s.Stride[i], s.Dilate[i]) {
				return kernels.Badf(outPadArg, "less than the stride or the dilation", "%d", outPad[i])
			}
			s.SlideBack(i, outPad[i])
			least = 0
		} else {
			s.Slide(i, false)
		}
		if s.Out[i] < least || s.Out[i] > window.Limit {
			return kernels.Badf(xArg, "sizes that the kernel fits into", "%v with kernel %v, stride %v, padding %v, dilation %v",
				x, w.Sizes[2:], s.Stride, s.Pad, s.Dilate)
		}
	}
	return nil
}

func (s *shape) outSizes(dst *[5]int, rank int) []int {
	dst[0], dst[1] = s.batch, s.outChannels
	copy(dst[2:], s.Out[5-rank:])
	return dst[:rank]
}

// reversed returns the convolution from s's output to its input, with the same weights: transposed if s is not, and
// vice versa.
func (s *shape) reversed() shape {
	r := *s
	r.transposed = !s.transposed
	r.Reverse()
	r.inChannels, r.outChannels = s.outChannels, s.inChannels
	return r
}
