package nhwc

import "math"

// Padded are N images in a copy with rows and columns of padding around them, so that no window extends over an edge.
type Padded[T comparable] struct {
	Images
	N          int
	Rows, Cols int // of an image with its padding
	padding    []T // a row of it, unless that is 0
}

// Plan sets the copy up for the windows over n images.
func (p *Padded[T]) Plan(s Images, n int) {
	p.Images, p.N = s, n
	size := func(d int) int { return s.Pad[d] + max(s.In[d], s.Start(d, s.Out[d]-1)+s.Extent(d)) }
	p.Rows, p.Cols = size(1), size(2)
}

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
	line, width, left := p.In[2]*p.C, p.Cols*p.C, p.Pad[2]*p.C
	for image := range p.N {
		zero := padding(image)
		p.extend(zero, width)
		for y := range p.Rows {
			row, from := dst[(image*p.Rows+y)*width:][:width], y-p.Pad[1]
			if from < 0 || from >= p.In[1] {
				p.pad(row, zero)
				continue
			}
			p.pad(row[:left], zero)
			copy(row[left:], src[(image*p.In[1]+from)*line:][:line])
			p.pad(row[left+line:], zero)
		}
	}
}

// extend makes a row of padding of n elements.
func (p *Padded[T]) extend(v T, n int) {
	var zero T
	if v == zero || len(p.padding) >= n && p.padding[0] == v {
		return
	}
	p.padding = grow(p.padding, n)
	fill(p.padding, v)
}

func (p *Padded[T]) pad(dst []T, v T) {
	var zero T
	if v == zero {
		clear(dst)
	} else {
		copy(dst, p.padding)
	}
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
