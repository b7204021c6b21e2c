// Package window (no compatibility promise) is the geometry of windows that slide over one
// to three spatial dimensions: what convolutions and poolings of all families read.
package window

import (
	"fmt"
	"math/bits"

	"github.com/etrun-go/etrun/kernels"
)

// Limit bounds every size and parameter: 2^31, or 2^28 if int has 32 bits. No sum of products of two exceeds int64,
// and no sum of four exceeds int.
const (
	Limit     = 1 << LimitBits
	LimitBits = min(31, bits.UintSize-4)
)

// Shape is the geometry of windows of Kernel taps, Dilate apart, that slide by Stride over In points with Pad points
// around them: Out windows. It always has depth, height and width; missing leading dimensions have size, kernel and
// stride 1.
type Shape struct {
	In, Out, Kernel, Stride, Pad, Dilate [3]int
}

// Volume returns the number of points of spatial sizes.
func Volume(d [3]int) int { return d[0] * d[1] * d[2] }

// Spatial returns the last n sizes of a tensor, after ones.
func Spatial(sizes []int, n int) [3]int {
	d := [3]int{1, 1, 1}
	copy(d[3-n:], sizes[len(sizes)-n:])
	return d
}

// Read reads argument arg, an int[] of one entry for all n spatial dimensions or one for each, of at least least, the
// value of missing dimensions. unset, if not nil, replaces an empty list.
func Read(dst *[3]int, a kernels.Args, arg, n int, least int64, unset *[3]int) error {
	list := a.Ints(arg)
	if len(list) == 0 && unset != nil {
		*dst = *unset
		return nil
	}
	if len(list) != 1 && len(list) != n {
		return kernels.Badf(arg, fmt.Sprintf("1 or %d entries", n), "%v", list)
	}
	*dst = [3]int{int(least), int(least), int(least)}
	for i := range n {
		v := list[min(i, len(list)-1)]
		if v < least || v > Limit {
			return kernels.Badf(arg, fmt.Sprintf("entries in [%d, 2^%d]", least, LimitBits), "%v", list)
		}
		dst[3-n+i] = int(v)
	}
	return nil
}

// Extent returns the number of points that a window covers along dimension d, or a number greater than all padded
// inputs.
func (s *Shape) Extent(d int) int { return int(min(s.extent(d), 4*Limit-1)) }

func (s *Shape) extent(d int) int64 { return int64(s.Dilate[d])*int64(s.Kernel[d]-1) + 1 }

// Slide computes the number of windows along dimension d, 0 if none fits. In ceil mode the last one may end outside
// of the padded input, but not start after the input.
func (s *Shape) Slide(d int, ceil bool) {
	slack := s.In[d] + 2*s.Pad[d] - s.Extent(d)
	if ceil {
		slack += s.Stride[d] - 1
	}
	if s.Out[d] = 0; slack < 0 {
		return
	}
	s.Out[d] = slack/s.Stride[d] + 1
	if ceil && (s.Out[d]-1)*s.Stride[d] >= s.In[d]+s.Pad[d] {
		s.Out[d]--
	}
}

// SlideBack computes the number of points along dimension d that the windows of a transposed convolution cover for
// In, plus more: at least -1 and at most Limit+1.
func (s *Shape) SlideBack(d, more int) {
	n := int64(s.In[d]-1)*int64(s.Stride[d]) - 2*int64(s.Pad[d]) + s.extent(d) + int64(more)
	s.Out[d] = int(max(-1, min(n, Limit+1)))
}

// Reverse exchanges input and output.
func (s *Shape) Reverse() { s.In, s.Out = s.Out, s.In }

// Start returns the start of window at along dimension d; it may be in the padding.
func (s *Shape) Start(d, at int) int { return at*s.Stride[d] - s.Pad[d] }

// Taps returns the start of window at along dimension d, and the range of its taps that are in the input.
func (s *Shape) Taps(d, at int) (start, lo, hi int) {
	start = s.Start(d, at)
	lo, hi = Inside(s.Kernel[d], s.In[d], start, s.Dilate[d])
	return start, lo, hi
}

// Source returns the point of the input along dimension d that tap k of window at reads, and whether there is one.
func (s *Shape) Source(d, at, k int) (i int, ok bool) {
	i = s.Start(d, at) + k*s.Dilate[d]
	return i, uint(i) < uint(s.In[d])
}

// SourceBack is Source of a transposed convolution, which has padding between the points of In too.
func (s *Shape) SourceBack(d, at, k int) (i int, ok bool) {
	i = at + s.Pad[d] - k*s.Dilate[d]
	if i < 0 || i%s.Stride[d] != 0 {
		return 0, false
	}
	i /= s.Stride[d]
	return i, i < s.In[d]
}

// Part returns the range of part at of size points that are divided into parts, which may overlap.
func Part(size, parts, at int) (lo, hi int) {
	n, all := int64(size), int64(parts)
	return int(int64(at) * n / all), int((int64(at+1)*n + all - 1) / all)
}

// Inside reports whether no window extends over an edge of the input along dimension d.
func (s *Shape) Inside(d int) bool {
	return s.Pad[d] == 0 && s.Start(d, s.Out[d]-1)+s.Extent(d) <= s.In[d]
}

// Alike returns the number of windows from at along dimension d with the same taps in the input, of which that one
// has the given number.
func (s *Shape) Alike(d, at, taps int) int {
	if taps < s.Kernel[d] {
		return 1
	}
	slack := s.In[d] - s.Start(d, at) - s.Extent(d)
	if slack < 0 {
		return 1
	}
	return min(slack/s.Stride[d]+1, s.Out[d]-at)
}

// Inside returns the range of i < n with 0 ≤ x+i·step < size; lo = hi if there are none.
func Inside(n, size, x, step int) (lo, hi int) {
	if x < 0 {
		lo = min(stepsTo(-x, step), n)
	}
	if size <= x {
		return lo, lo
	}
	return lo, max(min(stepsTo(size-x, step), n), lo)
}

// stepsTo returns ⌈distance / step⌉, for the usual steps without a division.
func stepsTo(distance, step int) int {
	switch step {
	case 1:
		return distance
	case 2:
		return (distance + 1) >> 1
	}
	return (distance + step - 1) / step
}
