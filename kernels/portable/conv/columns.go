package conv

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/window"
)

// rect is a block of output points: rows of cols points at depth d, from (h, w). It has one row, or whole rows, so
// that its points are adjacent in the output.
type rect struct{ d, h, w, rows, cols int }

// from returns the index of the first point of r in the output.
func (s *shape) from(r *rect) int { return (r.d*s.Out[1]+r.h)*s.Out[2] + r.w }

// read describes the elements that one tap of the kernel reads for a rect of output points: rows × cols elements of
// an input plane. The rest of the rect is padding.
type read struct {
	from, to   int // first element in the plane and in the rect
	rows, cols int // none read if 0
	padded     bool
}

// tap returns the position that a tap of the kernel reads, relative to stride times the output point.
func tap(s *shape, t int) (at [3]int) {
	for i := 2; i >= 0; i-- {
		at[i] = t%s.Kernel[i]*s.Dilate[i] - s.Pad[i]
		t /= s.Kernel[i]
	}
	return at
}

// reads returns the elements that a tap at offset t reads for r.
func (s *shape) reads(t [3]int, r *rect) read {
	z, y, x := r.d*s.Stride[0]+t[0], r.h*s.Stride[1]+t[1], r.w*s.Stride[2]+t[2]
	top, bottom := window.Inside(r.rows, s.In[1], y, s.Stride[1])
	lo, hi := window.Inside(r.cols, s.In[2], x, s.Stride[2])
	if z < 0 || z >= s.In[0] || top == bottom || lo == hi {
		return read{padded: true}
	}
	return read{
		from: (z*s.In[1]+y+top*s.Stride[1])*s.In[2] + x + lo*s.Stride[2],
		to:   top*r.cols + lo,
		rows: bottom - top, cols: hi - lo,
		padded: bottom-top < r.rows || hi-lo < r.cols,
	}
}

// fill writes the elements that a tap reads from plane to dst, a rect whose rows are pitch apart.
func fill[T simd.Copied](s *shape, dst []T, pitch int, plane []T, d *read) {
	if s.Stride[2] == 1 && (d.rows == 1 || d.rows > 1 && s.In[2]*s.Stride[1] == pitch) {
		fillRun(dst, pitch, plane, d)
		return
	}
	if d.padded {
		clear(dst)
	}
	if d.rows > 0 {
		copyGrid(dst[d.to:], pitch, plane[d.from:], s.In[2]*s.Stride[1], s.Stride[2], d.rows, d.cols)
	}
}

// fillRun is fill if rows have the same distance in the plane: one copy includes what is between them, which is then
// overwritten with the padding.
func fillRun[T any](dst []T, pitch int, plane []T, d *read) {
	n := (d.rows-1)*pitch + d.cols
	clear(dst[:d.to])
	copy(dst[d.to:][:n], plane[d.from:])
	clear(dst[d.to+n:])
	var zero T
	for gap := d.cols; gap < pitch; gap++ {
		for i := d.to + gap; i < d.to+n; i += pitch {
			dst[i] = zero
		}
	}
}

// copyGrid copies rows of cols elements. Rows are ds and ss apart; elements are adjacent in dst and step apart in
// src.
func copyGrid[T simd.Copied](dst []T, ds int, src []T, ss, step, rows, cols int) {
	switch step {
	case 1:
		simd.CopyRows(dst, src, rows, cols, ds, ss)
	case 2:
		simd.Stride2Rows(dst, src, rows, cols, ds, ss)
	default:
		for i := range rows {
			d, s := dst[i*ds:][:cols], src[i*ss:]
			for j := range d {
				d[j] = s[j*step]
			}
		}
	}
}
