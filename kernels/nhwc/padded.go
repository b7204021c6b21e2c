package nhwc

import (
	"math"

	"github.com/etrun-go/etrun/internal/pack"
)

// Padded are N images in a copy with rows and columns of padding around them, so that no window extends over an edge.
type Padded[T comparable] struct {
	Images
	Repeat     int // how often the copy has each channel, one after the other, if more than once: C counts them all
	N          int
	Rows, Cols int // of an image with its padding
	padding    []T // a row of it at least
}

// Plan sets the copy up for the windows over n images.
func (p *Padded[T]) Plan(s Images, n int) {
	p.Images, p.N = s, n
	size := func(d int) int { return s.Pad[d] + max(s.In[d], s.Start(d, s.Out[d]-1)+s.Extent(d)) }
	p.Rows, p.Cols = size(1), size(2)
}

// DropPadding makes it a copy without padding.
func (p *Padded[T]) DropPadding() { p.Rows, p.Cols, p.Pad = p.In[1], p.In[2], [3]int{} }

// Differs reports whether the copy has padding.
func (p *Padded[T]) Differs() bool { return p.Rows != p.In[1] || p.Cols != p.In[2] }

// Numel returns the number of elements of the copy, or the largest int64 if that is less.
func (p *Padded[T]) Numel() int64 {
	n := int64(1)
	for _, size := range [...]int{p.N, p.Rows, p.Cols, p.C} {
		if size > 0 && n > math.MaxInt64/int64(size) {
			return math.MaxInt64
		}
		n *= int64(size)
	}
	return n
}

// Inside returns the images of the copy, over which no window extends.
func (p *Padded[T]) Inside() Images {
	s := p.Images
	s.In[1], s.In[2], s.Pad = p.Rows, p.Cols, [3]int{}
	return s
}

// Copy copies images to dst, [N, Rows, Cols, C], and pads each with its padding.
func (p *Padded[T]) Copy(dst, src []T, padding func(image int) T) {
	repeat := max(1, p.Repeat)
	line, width, left, top := p.In[2]*p.C, p.Cols*p.C, p.Pad[2]*p.C, p.Pad[1]
	for image := range p.N {
		row, in := p.row(padding(image), width), line/repeat
		to, from := dst[image*p.Rows*width:][:p.Rows*width], src[image*p.In[1]*in:][:p.In[1]*in]
		for y := range p.Rows {
			to, y := to[y*width:][:width], y-top
			if y < 0 || y >= p.In[1] {
				copy(to, row)
				continue
			}
			copy(to[:left], row)
			repeatAll(to[left:][:line], from[y*in:][:in], repeat)
			copy(to[left+line:], row)
		}
	}
}

// repeatAll copies src to dst, each element n times.
func repeatAll[T any](dst, src []T, n int) {
	if n == 1 {
		copy(dst, src)
		return
	}
	for j := range n {
		for i, v := range src {
			dst[i*n+j] = v
		}
	}
}

// row returns a row of padding of n elements.
func (p *Padded[T]) row(v T, n int) []T {
	if len(p.padding) < n || n > 0 && p.padding[0] != v {
		p.padding = pack.Grow(p.padding, n)
		fill(p.padding, v)
	}
	return p.padding[:n]
}

// Offset returns the offset in the copy of the window of an output point.
func (p *Padded[T]) Offset(image, y, x int) int {
	return ((image*p.Rows+y*p.Stride[1])*p.Cols + x*p.Stride[2]) * p.C
}

// Offsets appends the offsets of a window's segments, relative to its own: rows of the kernel if joined, else points.
func (p *Padded[T]) Offsets(dst []int, joined bool) []int {
	for y := range p.Kernel[1] {
		row := y * p.Dilate[1] * p.Cols * p.C
		if joined {
			dst = append(dst, row)
			continue
		}
		for x := range p.Kernel[2] {
			dst = append(dst, row+x*p.Dilate[2]*p.C)
		}
	}
	return dst
}
