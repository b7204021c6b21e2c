package strided

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// plane is the iteration over the two innermost dimensions of a copy.
type plane struct {
	form  form
	p, q  dim  // p the outer of the two, q the inner
	outQ  bool // work is divided along q instead of p
	apart int  // of pairs: the distance of their rows in the source
}

type form uint8

const (
	rows  form = iota // q is dense in both buffers
	tiles             // q is dense in the destination, p in the source
	lines             // anything else
	pairs             // two dense rows of the source are one of the destination, an element of each in turn
)

// minTile is the size from which both dimensions of a transpose are tiled.
const minTile = 8

// choosePlane selects the two innermost dimensions and how to iterate over them, and leaves the
// others in s.dims.
func (s *Copier) choosePlane() {
	one := dim{1, 1, 1}
	p, q := one, one
	if s.rank > 0 {
		s.rank--
		q = s.dims[s.rank]
	}
	dense := q.dst == 1 && q.src == 1
	if s.rank > 0 {
		near := s.nearest(q.src)
		if dense && s.dims[near].n < minTile {
			near = s.longest()
		}
		p = s.popDim(near)
	}
	s.plane = plane{p: p, q: q}
	switch {
	case dense && (q.n*s.elem > widestRow || p.n == 1):
		s.plane.form = rows
	case q.dst == 1 && p.src == 1 && q.src > 0 && min(p.n, q.n) >= minTile:
		s.plane.form = tiles
	default:
		s.plane.form = lines
	}
	if s.plane.form == lines && s.elem == 4 && q.n == 2 && p.n >= minTile && interleaves(p, q) {
		s.choosePairs()
		return
	}
	s.plane.outQ = q.n > p.n && (s.plane.form != rows || p.n < minTile)
}

// choosePairs makes a plane that interleaves two rows one of many pairs of rows, along the next outer dimension.
func (s *Copier) choosePairs() {
	s.plane = plane{form: pairs, p: dim{1, 1, 1}, q: dim{s.plane.p.n, 2, 1}, apart: s.plane.q.src}
	if in := s.rank - 1; in >= 0 && s.dims[in].src >= 0 {
		s.plane.p, s.rank = s.dims[in], in
	}
}

// nearest returns the dimension to combine with an inner one whose source stride is stride: the one
// with the smallest source stride if that is smaller, so that whole cache lines are used, else the
// next outer one.
func (s *Copier) nearest(stride int) int {
	best, least := s.rank-1, abs(stride)
	for i, d := range s.dims[:s.rank] {
		if a := abs(d.src); a != 0 && a < least {
			best, least = i, a
		}
	}
	return best
}

// longest returns the largest dimension, the inner one of equals.
func (s *Copier) longest() int {
	best := s.rank - 1
	for i := best; i >= 0; i-- {
		if s.dims[i].n > s.dims[best].n {
			best = i
		}
	}
	return best
}

func (s *Copier) popDim(i int) dim {
	d := s.dims[i]
	copy(s.dims[i:s.rank-1], s.dims[i+1:s.rank])
	s.rank--
	return d
}

func abs(n int) int { return max(n, -n) }

// units returns the number of units of one plane.
func (p *plane) units() int {
	if p.outQ {
		return p.q.n
	}
	return p.p.n
}

// cut computes the number of units of the plan, and the grain.
func (w *plan) cut() {
	n := w.plane.units()
	unit := w.plane.p.n * w.plane.q.n / n * w.elem
	if w.plane.form == rows {
		w.grain = 128 << 10 / unit
	} else {
		w.grain = (64<<10/unit + widestTile) &^ (widestTile - 1)
	}
	w.short = w.plane.form == rows && w.plane.p.n <= fewRows && len(w.outside) == 0
	for _, d := range w.outside {
		n *= d.n
	}
	w.units = n
}

// copy executes the plan.
func (w *plan) copy(t Threads) {
	if w.short && w.units <= w.grain {
		w.copyShort()
		return
	}
	t.Parallel(w.units, w.grain, w)
}

// fewRows is the number of rows that are copied without a plan for threads.
const fewRows = 8

// copyShort copies a few rows.
func (w *plan) copyShort() {
	n, p := w.plane.q.n*w.elem, w.plane.p
	dst, src := w.dst.Offset*w.elem, w.src.Offset*w.elem
	for range p.n {
		copy(w.dst.Data[dst:dst+n], w.src.Data[src:src+n])
		dst += p.dst * w.elem
		src += p.src * w.elem
	}
}

// Range copies units lo to hi (for Threads).
func (w *plan) Range(_, lo, hi int) {
	BySize(w.elem, copyUnits[uint8], copyUnits[uint16], copyUnits[uint32], copyUnits[uint64], copyUnits[complex128])(w, lo, hi)
}

func copyUnits[T tensor.Element](w *plan, lo, hi int) {
	d, t := tensor.View[T](w.dst.Data), tensor.View[T](w.src.Data)
	pl, at := &w.plane, cursor{dst: w.dst.Offset, src: w.src.Offset}
	n := pl.units()
	at.seek(w.outside, lo/n)
	for i := lo % n; lo < hi; i = 0 {
		k := min(n-i, hi-lo)
		p, q, from := pl.p, pl.q, pl.p
		if pl.outQ {
			q.n, from = k, q
		} else {
			p.n = k
		}
		copyPlane(pl, d[at.dst+i*from.dst:], t, at.src+i*from.src, p, q)
		lo += k
		at.next(w.outside)
	}
}

// cursor iterates over the dimensions outside the plane.
type cursor struct {
	dst, src int // offsets
	index    [maxDims]int
}

// seek moves to the i-th plane.
func (c *cursor) seek(dims []dim, i int) {
	for j := len(dims) - 1; j >= 0 && i > 0; j-- {
		d := dims[j]
		c.index[j] = i % d.n
		i /= d.n
		c.dst += c.index[j] * d.dst
		c.src += c.index[j] * d.src
	}
}

func (c *cursor) next(dims []dim) {
	for j := len(dims) - 1; j >= 0; j-- {
		d := dims[j]
		c.index[j]++
		c.dst += d.dst
		c.src += d.src
		if c.index[j] < d.n {
			return
		}
		c.index[j] = 0
		c.dst -= d.n * d.dst
		c.src -= d.n * d.src
	}
}

// copyPlane copies p by q of a plane to the start of dst, from src[at]. Negative strides reach before
// at.
func copyPlane[T tensor.Element](pl *plane, dst, src []T, at int, p, q dim) {
	switch pl.form {
	case rows:
		size := len(tensor.BytesOf(dst[:1]))
		copyRows(tensor.BytesOf(dst), tensor.BytesOf(src), at, p, q.n*size, size)
	case tiles:
		transpose(dst, src[at:], p, q)
	case pairs:
		a, b := floats(src[at:]), floats(src[at+pl.apart:])
		simd.Zip2Rows(floats(dst), a, b, p.n, q.n, p.dst, p.src)
	default:
		if interleaves(p, q) {
			interleave(dst, src[at:], p.n, q.n, q.src)
			return
		}
		if q.n < minTile && p.n > q.n {
			p, q = q, p
		}
		if done := deinterleave(dst, src, at, p, q); done > 0 {
			dst, at, q.n = dst[done:], at+done*q.src, q.n-done
		}
		copyLines(dst, src, at, p, q)
	}
}

// floats views elements of four bytes as float32, which vector loops move.
func floats[T tensor.Element](x []T) []float32 { return tensor.View[float32](tensor.BytesOf(x)) }

// copyRows copies p.n dense rows of n bytes. Strides are in elements of size bytes.
func copyRows(dst, src []byte, at int, p dim, n, size int) {
	if p.src >= 0 {
		simd.CopyRows(dst, src[at*size:], p.n, n, p.dst*size, p.src*size)
		return
	}
	for i := range p.n {
		copy(dst[i*p.dst*size:][:n], src[(at+i*p.src)*size:])
	}
}

// block is the part of a long dimension that is copied for every index of a short one before the
// next part, so that the cache lines of both remain in the first-level cache.
const block = 512

func copyLine[T tensor.Element](dst, src []T, at int, q dim) {
	switch {
	case q.dst != 1:
		for i := range q.n {
			dst[i*q.dst] = src[at]
			at += q.src
		}
	case q.src == 0:
		Fill(dst[:q.n], src[at])
	default:
		pick(dst[:q.n], src, at, q.src)
	}
}

// pick fills row with every step-th element from src[at].
func pick[T tensor.Element](row, src []T, at, step int) {
	switch {
	case step == -1:
		reverse(row, src[at-len(row)+1:at+1])
		return
	case step == 2 && tensor.TypeOf[T]().Size() == 4:
		simd.Stride2(floats(row), floats(src[at:]))
		return
	}
	for ; len(row) >= 4; row = row[4:] {
		row[0], row[1], row[2], row[3] = src[at], src[at+step], src[at+2*step], src[at+3*step]
		at += 4 * step
	}
	for i := range row {
		row[i] = src[at]
		at += step
	}
}

// reverse copies src, which is as long as row, backwards.
func reverse[T tensor.Element](row, src []T) {
	for ; len(row) >= 4 && len(src) >= 4; row = row[4:] {
		s := src[len(src)-4:]
		row[0], row[1], row[2], row[3] = s[3], s[2], s[1], s[0]
		src = src[:len(src)-4]
	}
	for i := range row {
		row[i] = src[len(row)-1-i]
	}
}
