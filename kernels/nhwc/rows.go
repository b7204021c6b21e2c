package nhwc

// Rows are the windows of a convolution as the rows of a matrix: for each tap, the channels of a group. Points outside of
// the input, and those between the points of a transposed convolution, are padding. Images have no depth.
type Rows[T comparable] struct {
	Images
	Group      int  // channels of a group
	Transposed bool // In is the input of a transposed convolution
	X          []T
}

// Source returns the position along dimension d that tap k of window at reads; ok is false for padding.
func (r *Rows[T]) Source(d, at, k int) (i int, ok bool) {
	if r.Transposed {
		return r.Shape.SourceBack(d, at, k)
	}
	return r.Shape.Source(d, at, k)
}

// Point returns image, line and column of a point of the output.
func (r *Rows[T]) Point(at int) (image, y, x int) {
	x, y = at%r.Out[2], at/r.Out[2]
	return y / r.Out[1], y % r.Out[1], x
}

// Gather copies elements [k, k+len(dst)) of the row of output point at, which may start or end within a tap.
func (r *Rows[T]) Gather(dst []T, group, at, k int, padding T) {
	image, oy, ox := r.Point(at)
	if k == 0 && len(dst) == r.Kernel[1]*r.Kernel[2]*r.Group && !r.Transposed {
		r.all(dst, group, image, oy, ox, padding)
		return
	}
	joined := r.joined()
	for n := 0; len(dst) > 0; dst, k = dst[n:], k+n {
		tap, from := k/r.Group, k%r.Group
		kx := tap % r.Kernel[2]
		y, inY := r.Source(1, oy, tap/r.Kernel[2])
		x, inX := r.Source(2, ox, kx)
		n = min(r.Group-from, len(dst))
		switch {
		case !inY: // the rest of a row of taps
			n = min((r.Kernel[2]-kx)*r.Group-from, len(dst))
			fill(dst[:n], padding)
		case !inX:
			fill(dst[:n], padding)
		default:
			if joined {
				n = min(min(r.Kernel[2]-kx, r.In[2]-x)*r.C-from, len(dst))
			}
			copy(dst[:n], r.X[((image*r.In[1]+y)*r.In[2]+x)*r.C+group*r.Group+from:])
		}
	}
}

// joined reports whether adjacent taps are adjacent in the input.
func (r *Rows[T]) joined() bool { return r.Group == r.C && r.Dilate[2] == 1 && !r.Transposed }

// all copies a row, line by line.
func (r *Rows[T]) all(dst []T, group, image, oy, ox int, padding T) {
	top, y0, y1 := r.Taps(1, oy)
	left, x0, x1 := r.Taps(2, ox)
	if y1-y0 < r.Kernel[1] || x1-x0 < r.Kernel[2] {
		fill(dst, padding)
	}
	n, step := r.Group, r.Dilate[2]*r.C
	if r.joined() {
		n *= x1 - x0
	}
	for y := y0; y < y1; y++ {
		from := ((image*r.In[1]+top+y*r.Dilate[1])*r.In[2]+left+x0*r.Dilate[2])*r.C + group*r.Group
		for to := dst[(y*r.Kernel[2]+x0)*r.Group : (y*r.Kernel[2]+x1)*r.Group]; len(to) > 0; to, from = to[n:], from+step {
			copyFew(to[:n], r.X[from:][:n])
		}
	}
}

// copyFew is copy of as many elements, without a call for at most 8.
func copyFew[T any](dst, src []T) {
	switch n := len(dst); {
	case n > 8:
		copy(dst, src)
	case n >= 4:
		first, last := *(*[4]T)(src), *(*[4]T)(src[n-4:])
		*(*[4]T)(dst), *(*[4]T)(dst[n-4:]) = first, last
	default:
		for i := range dst {
			dst[i] = src[i]
		}
	}
}
