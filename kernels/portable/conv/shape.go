package conv

import (
	"fmt"
	"math/bits"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// shape is the geometry of a convolution, always over three spatial dimensions
// (depth, height, width): missing leading ones have size, kernel and stride 1.
type shape struct {
	transposed                  bool
	batch, groups               int
	inChannels, outChannels     int
	in, out                     [3]int // spatial sizes
	kernel, stride, pad, dilate [3]int
}

// limit bounds every size, parameter and extent: 2^31, or where int has 32 bits 2^28. No
// product of two leaves int64, and no sum of four leaves int.
const (
	limit     = 1 << limitBits
	limitBits = min(31, bits.UintSize-4)
)

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
			if n > limit {
				return kernels.Badf(xArg+i, fmt.Sprintf("sizes of at most 2^%d", limitBits), "%v", t)
			}
		}
	}
	s.transposed = a.Bool(stride + 3)
	s.in, s.kernel = spatial(x.Sizes), spatial(w.Sizes)
	var outPad [3]int
	for _, p := range []struct {
		arg   int
		dst   *[3]int
		least int64
		unset int
	}{{stride, &s.stride, 1, 1}, {stride + 1, &s.pad, 0, 0}, {stride + 2, &s.dilate, 1, 1}, {stride + 4, &outPad, 0, 0}} {
		if err := spread(p.dst, a, p.arg, rank-2, p.least, p.unset); err != nil {
			return err
		}
	}
	if err := s.channels(a, x, w, xArg, stride+5); err != nil {
		return err
	}
	return s.extent(x, w, xArg, outPad, stride+4)
}

// spatial is the last one to three sizes of a tensor of rank 3 to 5.
func spatial(sizes []int) [3]int {
	d := [3]int{1, 1, 1}
	copy(d[5-len(sizes):], sizes[2:])
	return d
}

// spread reads an int[] of one entry for all n spatial dimensions or one for each.
func spread(dst *[3]int, a kernels.Args, arg, n int, least int64, unset int) error {
	list := a.Ints(arg)
	if len(list) != 1 && len(list) != n {
		return kernels.Badf(arg, fmt.Sprintf("1 or %d entries", n), "%v", list)
	}
	*dst = [3]int{unset, unset, unset}
	for i := range n {
		v := list[min(i, len(list)-1)]
		if v < least || v > limit {
			return kernels.Badf(arg, fmt.Sprintf("entries in [%d, 2^%d]", least, limitBits), "%v", list)
		}
		dst[3-n+i] = int(v)
	}
	return nil
}

// channels checks groups and the channel sizes: weight is [out, in/groups, …], or
// [in, out/groups, …] where transposed.
func (s *shape) channels(a kernels.Args, x, w *tensor.Tensor, xArg, groupsArg int) error {
	g := a.Int(groupsArg)
	if g < 1 || g > limit {
		return kernels.Badf(groupsArg, "at least 1", "%d", g)
	}
	s.batch, s.groups = x.Sizes[0], int(g)
	s.inChannels, s.outChannels = x.Sizes[1], w.Sizes[0]
	if int64(w.Sizes[1])*g > limit {
		return kernels.Badf(groupsArg, "groups that fit the weight", "%d for %v", g, w)
	}
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
		if s.kernel[i] == 0 {
			return kernels.Bad(xArg+1, w.String(), "a kernel without zero sizes")
		}
		if s.transposed && outPad[i] > 0 && outPad[i] >= max(s.stride[i], s.dilate[i]) {
			return kernels.Badf(outPadArg, "less than the stride or the dilation", "%d", outPad[i])
		}
		n := s.points(i, int64(outPad[i]))
		s.out[i] = int(max(-1, min(n, limit)))
		if n < 0 || n > limit {
			return kernels.Badf(xArg, "sizes that the kernel fits into", "%v with kernel %v, stride %v, padding %v, dilation %v",
				x, w.Sizes[2:], s.stride, s.pad, s.dilate)
		}
	}
	return nil
}

// points is the output's size along spatial dimension i, negative where the kernel does not
// fit. Products of two sizes leave an int of 32 bits.
func (s *shape) points(i int, outPad int64) int64 {
	in, stride, pad := int64(s.in[i]), int64(s.stride[i]), int64(s.pad[i])
	reach := int64(s.dilate[i]) * int64(s.kernel[i]-1)
	if s.transposed {
		return (in-1)*stride - 2*pad + reach + outPad + 1
	}
	room := in + 2*pad - reach - 1
	if room < 0 {
		return -1
	}
	return room/stride + 1
}

func (s *shape) outSizes(dst *[5]int, rank int) []int {
	dst[0], dst[1] = s.batch, s.outChannels
	copy(dst[2:], s.out[5-rank:])
	return dst[:rank]
}

// volume is the number of points of spatial sizes.
func volume(d [3]int) int { return d[0] * d[1] * d[2] }

// reversed is the convolution that runs from s's output to its input: the transposed
// of a forward one and the other way round, with the same weights.
func (s *shape) reversed() shape {
	r := *s
	r.transposed = !s.transposed
	r.in, r.out = s.out, s.in
	r.inChannels, r.outChannels = s.outChannels, s.inChannels
	return r
}
