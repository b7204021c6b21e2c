package pool

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// bands cuts the output of contiguous planes into bands of rows. The windows of a band
// are pooled together, tap by tap: tap t of the window at row i and column j of a band
// is element off[t] + i·step + j of what load brings. For that the input rows are
// padded, and their columns dealt out to as many phases as the stride has columns.
type bands[T tensor.Compute] struct {
	window      // planes may be stacked to one tall plane
	fill   T    // what the padding holds
	direct bool // read in place
	even   bool // two phases divide rows up without a remainder
	rows   int  // of the output in a band, fewer in the last one of a plane
	count  int  // bands of a plane
	phases []phase
	height int // input rows of a band
	width  int // columns of a phase
	off    []int
	step   int // between output rows
	room   []T // phases · height · width for each worker
}

// phase is every stride-th column of an input row, as it comes to columns [lo, hi) of
// a padded row, the first from input column from on.
type phase struct{ lo, hi, from int }

// mostTaps is the largest kernel that is pooled tap by tap, bandSize the number of
// elements that a band's input should not exceed, and mostRoom the one that it cannot.
const mostTaps, bandSize, mostRoom = 64, 1 << 13, 1 << 18

// plan cuts w's planes. It reports false for windows that are too large.
func (b *bands[T]) plan(c *kernels.Ctx, w *window, fill T) bool {
	b.window, b.fill = *w, fill
	if w.kernel[0] > mostTaps || w.kernel[1] > mostTaps || w.kernel[0]*w.kernel[1] > mostTaps {
		return false
	}
	extent := [2]int{w.dilate[0]*(w.kernel[0]-1) + 1, w.dilate[1]*(w.kernel[1]-1) + 1}
	b.width = w.out[1] + (extent[1]-1)/w.stride[1]
	row := min(w.stride[1], extent[1]) * b.width
	if extent[0] > mostRoom || row > mostRoom || row*extent[0] > mostRoom {
		return false
	}
	if w.pad[0] == 0 && extent[0] <= w.stride[0] && w.in[0] == w.out[0]*w.stride[0] {
		b.in[0], b.out[0], b.planes = b.in[0]*b.planes, b.out[0]*b.planes, 1
	}
	b.rows = 1
	if size := row * extent[0]; size < bandSize {
		b.rows += min((bandSize-size)/(row*min(w.stride[0], bandSize)), b.out[0]-1)
	}
	b.count = (b.out[0] + b.rows - 1) / b.rows
	b.height = (b.rows-1)*w.stride[0] + extent[0]
	b.direct = w.stride[1] == 1 && b.inside(0, extent[0]) && b.inside(1, extent[1])
	b.even = w.stride[1] == 2 && w.pad[1] == 0 && w.in[1] == 2*b.width
	if b.direct {
		b.width = w.in[1]
	} else {
		b.planPhases(min(w.stride[1], extent[1]))
		b.room = kernels.Scratch[T](c, c.Threads()*row*b.height)
	}
	b.step = w.stride[0] * b.width
	b.placeTaps()
	return true
}

// inside reports whether no window reaches over an edge of the input.
func (w *window) inside(d, extent int) bool {
	return w.pad[d] == 0 && (w.out[d]-1)*w.stride[d]+extent <= w.in[d]
}

func (b *bands[T]) planPhases(n int) {
	b.phases = b.phases[:0]
	s := b.stride[1]
	for q := range n {
		f := phase{from: q - b.pad[1]}
		if f.from < 0 {
			f.lo = min((-f.from+s-1)/s, b.width)
			f.from += f.lo * s
		}
		f.hi = f.lo
		if f.from < b.in[1] {
			f.hi = min(f.lo+(b.in[1]-f.from+s-1)/s, b.width)
		}
		b.phases = append(b.phases, f)
	}
}

func (b *bands[T]) placeTaps() {
	b.off = b.off[:0]
	for h := range b.kernel[0] {
		for k := range b.kernel[1] {
			x := k * b.dilate[1]
			b.off = append(b.off, (x%b.stride[1]*b.height+h*b.dilate[0])*b.width+x/b.stride[1])
		}
	}
}

// at is the plane of band i, its first output row and how many it has.
func (b *bands[T]) at(i int) (plane, row, n int) {
	row = i % b.count * b.rows
	return i / b.count, row, min(b.rows, b.out[0]-row)
}

// load gives the input of n output rows from row on.
func (b *bands[T]) load(worker int, plane []T, row, n int) []T {
	top := row*b.stride[0] - b.pad[0]
	if b.direct {
		return plane[top*b.in[1]:]
	}
	plot := b.height * b.width
	room := b.room[worker*len(b.phases)*plot:][:len(b.phases)*plot]
	rows := b.height - (b.rows-n)*b.stride[0]
	if b.even && top >= 0 && top+rows <= b.in[0] {
		for q := range b.phases {
			simd.Stride2(room[q*plot:][:rows*b.width], plane[top*b.in[1]+q:])
		}
		return room
	}
	for q, f := range b.phases {
		for r := range rows {
			dst := room[q*plot+r*b.width:][:b.width]
			if h := top + r; h >= 0 && h < b.in[0] && f.lo < f.hi {
				fill(dst[:f.lo], b.fill)
				b.every(dst[f.lo:f.hi], plane[h*b.in[1]+f.from:(h+1)*b.in[1]])
				fill(dst[f.hi:], b.fill)
			} else {
				fill(dst, b.fill)
			}
		}
	}
	return room
}

// every takes every stride-th element of src.
func (b *bands[T]) every(dst, src []T) {
	switch s := b.stride[1]; s {
	case 1:
		copy(dst, src)
	case 2:
		simd.Stride2(dst, src)
	default:
		for i := range dst {
			dst[i] = src[i*s]
		}
	}
}

func fill[T any](s []T, v T) {
	for i := range s {
		s[i] = v
	}
}
