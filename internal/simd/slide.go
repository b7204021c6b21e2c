package simd

import (
	"fmt"
	"unsafe"
)

// Windows are those of rows: N windows of Kernel adjacent columns, Stride apart, of an input with Width columns and Pad
// more on the left. The columns of padding are left out of a window; there is at least one more.
type Windows struct{ N, Kernel, Stride, Width, Pad int }

// window is columns [lo, hi) of the input.
func (w *Windows) window(j int) (lo, hi int) {
	lo = j*w.Stride - w.Pad
	return max(lo, 0), min(lo+w.Kernel, w.Width)
}

// SlideElement is a type of elements that windows are pooled in.
type SlideElement uint8

// The types of elements. float16 and integers have the loops for maxima of AVX-512 only, float16 also those for sums.
const (
	SlideFloat32 SlideElement = iota
	SlideFloat16
	SlideInt8
	SlideUint8
)

var slideSizes = [...]int{4, 2, 1, 1}

// words reports whether elements are words of 16 bits in registers, not of 32.
func (e SlideElement) words() bool { return slideSizes[e] == 1 }

// SlideRows are the rows that windows read: those at offsets Off, in elements, for the first row of windows of the first
// plane. Rows of windows are YS elements apart, and read XS elements apart; planes YP and XP. Rows of
// results do not overlap, and there is at least one tap.
type SlideRows struct {
	Off                          []int
	Rows, Planes, YS, XS, YP, XP int
}

// Slider pools windows in place. The zero value has to be planned.
type Slider struct {
	windows Windows
	element SlideElement
	level   string
	blocks  []slideBlock
	pair    [1]slideBlock // of two planes, if their rows are narrow
	paired  bool
	end     int // the number of columns of a row that are read, from the first one

	index, pairIndex slideIndex
}

// slideBlock is windows that a vector loop computes together, in one lane each, from two vectors of columns: masks of the
// columns in both, and of the results of both planes. From is the first column, At the first window. The loops know the
// layout. NEON has no masks for loads: it loads four registers of four columns each from columns that the row has, and moves
// those by Moves bytes.
type slideBlock struct {
	Masks    [4]uint32
	From, At int
	Moves    [4]int8
}

// neonColumns is the number of columns in a register of NEON.
const neonColumns = 4

// slideIndex is the first column of the window in each lane: in both vectors, 16 or 32 words, and in its own row, for
// types of 16 lanes.
type slideIndex struct {
	Index, Place [16]int32
	Second       int32 // the first column of the second vector in its own row
}

// set is the window in lane i of 16, or of 32 words.
func (x *slideIndex) set(i, index, place int, words bool) {
	if words {
		(*[32]int16)(unsafe.Pointer(&x.Index))[i] = int16(index)
		return
	}
	x.Index[i], x.Place[i] = int32(index), int32(place)
}

// lanes is the number of lanes, 0 without vectors.
func (e SlideElement) lanes() int {
	switch {
	case avx512 && e.words():
		return 32
	case avx512:
		return 16
	case avx2(), neon:
		return 8
	}
	return 0
}

// Plan prepares for windows, and reports whether there are vector loops for them. Without those only float32 is pooled.
func (s *Slider) Plan(w Windows, e SlideElement) bool {
	const columns, least = 8, 4 // of a window at most, windows of a block at least
	if s.windows == w && s.element == e && s.level == level {
		return len(s.blocks) > 0
	}
	s.windows, s.element, s.level, s.blocks = w, e, level, s.blocks[:0]
	_, s.end = w.window(w.N - 1)
	lanes := e.lanes()
	most := min(lanes, (2*lanes-w.Kernel)/w.Stride+1)
	if w.Kernel > columns || most < least || w.Width >= 1<<30 || e != SlideFloat32 && !avx512 || neon && w.Width < neonColumns {
		return false
	}
	for at := 0; at < w.N; at += most {
		n := min(most, w.N-at)
		s.blocks, s.end = append(s.blocks, w.block(at, n, lanes)), max(s.end, w.blockEnd(at, n, lanes))
	}
	s.index.Second = int32(lanes)
	for i := range most {
		s.index.set(i, i*w.Stride, i*w.Stride, e.words())
	}
	if s.paired = 2*w.N <= lanes && (w.N-1)*w.Stride+w.Kernel <= lanes; s.paired {
		s.pair[0], s.pairIndex = w.block(0, w.N, lanes), s.index
		s.pairIndex.Second = 0
		s.pair[0].Masks[1], s.pair[0].Masks[3] = s.pair[0].Masks[0], s.pair[0].Masks[2]<<w.N
		copy(s.pair[0].Moves[2:], s.pair[0].Moves[:2])
		first := w.N // lane of the second plane
		if neon {
			first = lanes / 2
		}
		for i := range w.N {
			s.pairIndex.set(first+i, lanes+i*w.Stride, i*w.Stride, e.words())
		}
	}
	return true
}

// blockEnd returns the end of the columns that a block of n windows from at on reads: those of its windows, or all columns of
// both vectors where more windows follow.
func (w *Windows) blockEnd(at, n, lanes int) int {
	from := at*w.Stride - w.Pad
	if at+n == w.N {
		end := from + (n-1)*w.Stride + w.Kernel
		if neon {
			end = max(end, neonColumns)
		}
		return min(end, w.Width)
	}
	return min(from+2*lanes, w.Width)
}

// block is n windows from at on. Where lanes more follow, loops of 8 lanes store all: the next block overwrites those in excess.
func (w *Windows) block(at, n, lanes int) slideBlock {
	from, end := at*w.Stride-w.Pad, w.blockEnd(at, n, lanes)
	if lanes == 8 && at+lanes <= w.N {
		n = lanes
	}
	columns := (uint64(1)<<max(end-from, 0) - 1) &^ (uint64(1)<<max(-from, 0) - 1)
	one := uint64(1)<<lanes - 1
	b := slideBlock{[4]uint32{uint32(columns & one), uint32(columns >> lanes & one), uint32(1)<<n - 1}, from, at, [4]int8{}}
	for i := range b.Moves {
		if neon {
			column := from + i*neonColumns
			b.Moves[i] = int8(4 * (column - min(max(column, 0), end-neonColumns)))
		}
	}
	return b
}

// Sum sums windows, each of which is scaled, scale[j] being that of window j of each row:
//
//	y[p*YP+i*YS+j] = scale[j] · Σ_t Σ_b x[Off[t]+p*XP+i*XS+j*Stride-Pad+b]    p < Planes, i < Rows, j < N, b < Kernel
//
// It needs a plan for float32 or float16. It panics where a slice ends before an element that the last window
// wants, or x before one that a vector loop reads in addition, up to column Width of a row.
func (s *Slider) Sum(y, x []byte, r *SlideRows, scale []float32) {
	if !s.check(len(y), len(x), r) {
		return
	}
	n := s.windows.N
	if _ = scale[n-1]; len(s.blocks) == 0 {
		s.sumGo(floatsOf(y), floatsOf(x), r, scale)
		return
	}
	var pair [16]float32
	copy(pair[copy(pair[:], scale[:n]):], scale)
	for i := range s.calls(r) {
		c := s.call(i, y, x, r)
		weight := &scale[0]
		if c.split >= 0 {
			weight = &pair[0]
		}
		b, blocks, index, columns, off, taps := &c.blocks[0], len(c.blocks), &c.index.Index[0], s.windows.Kernel, &r.Off[0], len(r.Off)
		switch { // not by a variable: pair would escape to the heap
		case s.element == SlideFloat16:
			sumSlide16Half(c.planes, r.Rows, blocks, c.y, c.x, off, taps, columns, c.ys, c.xs, c.yp, c.xp, c.second, c.split, b, index, weight)
		case avx512:
			sumSlide16(c.planes, r.Rows, blocks, c.y, c.x, off, taps, columns, c.ys, c.xs, c.yp, c.xp, c.second, c.split, b, index, weight)
		default:
			sumSlide8(c.planes, r.Rows, blocks, c.y, c.x, off, taps, columns, c.ys, c.xs, c.yp, c.xp, c.second, c.split, b, index, weight)
		}
	}
}

// Max finds the largest elements of windows, NaN where there is one:
//
//	y[p*YP+i*YS+j] = max_t max_b x[Off[t]+p*XP+i*XS+j*Stride-Pad+b]    p < Planes, i < Rows, j < N, b < Kernel
//
// It panics as [Slider.Sum] does.
func (s *Slider) Max(y, x []byte, r *SlideRows) {
	if !s.check(len(y), len(x), r) {
		return
	}
	if len(s.blocks) == 0 {
		s.maxGo(floatsOf(y), nil, floatsOf(x), r)
		return
	}
	f := maxSlide8
	if avx512 {
		f = [...]func(planes, rows, blocks int, y, x *byte, off *int, taps, kernel, ys, xs, yp, xp, second, split int,
			block *slideBlock, index *int32){maxSlide16, maxSlide16Half, maxSlide16Int8, maxSlide16Uint8}[s.element]
	}
	for i := range s.calls(r) {
		c := s.call(i, y, x, r)
		f(c.planes, r.Rows, len(c.blocks), c.y, c.x, &r.Off[0], len(r.Off), s.windows.Kernel, c.ys, c.xs, c.yp, c.xp, c.second, c.split,
			&c.blocks[0], &c.index.Index[0])
	}
}

// HasPlaces reports whether there is a vector loop for MaxPlaces, after Plan.
func (s *Slider) HasPlaces() bool { return avx512 && s.element == SlideFloat32 && len(s.blocks) > 0 }

// MaxPlaces is Max of float32 with the places of the elements in a plane, which are smaller than 2^30: those of the first
// of equal ones, of the last of several NaN. Off must be in ascending order.
//
//	at[p*YP+i*YS+j] = Off[t] + i*XS + j*Stride - Pad + b
func (s *Slider) MaxPlaces(y []byte, at []int64, x []byte, r *SlideRows) {
	if !s.check(min(len(y), 4*len(at)), len(x), r) {
		return
	}
	if !s.HasPlaces() {
		s.maxGo(floatsOf(y), at, floatsOf(x), r)
		return
	}
	for i := range s.calls(r) {
		c := s.call(i, y, x, r)
		placesSlide16(c.planes, r.Rows, len(c.blocks), c.y, c.x, &r.Off[0], len(r.Off), s.windows.Kernel, c.ys, c.xs, c.yp, c.xp,
			c.second, c.split, &c.blocks[0], &c.index.Index[0], &at[c.at*r.YP], r.XS)
	}
}

// slideCall is a call of a vector loop, distances in bytes: of rows, of planes, and of the second vector and its results.
type slideCall struct {
	planes, at                    int // how many, and the first one
	y, x                          *byte
	ys, xs, yp, xp, second, split int // split is -1 if there are no such results
	blocks                        []slideBlock
	index                         *slideIndex
}

// pairs is the number of pairs of planes that are pooled together.
func (s *Slider) pairs(r *SlideRows) int {
	if s.paired {
		return r.Planes / 2
	}
	return 0
}

// calls is the number of calls of a vector loop.
func (s *Slider) calls(r *SlideRows) int {
	pairs := s.pairs(r)
	return min(pairs, 1) + min(r.Planes-2*pairs, 1)
}

// call is one of them: first that of all pairs, if there are any.
func (s *Slider) call(i int, y, x []byte, r *SlideRows) slideCall {
	size, pairs := slideSizes[s.element], s.pairs(r)
	c := slideCall{ys: r.YS * size, xs: r.XS * size, yp: r.YP * size, xp: r.XP * size}
	if i == 0 && pairs > 0 {
		c.planes, c.second, c.split, c.blocks, c.index = pairs, c.xp, c.yp-s.windows.N*size, s.pair[:], &s.pairIndex
		c.yp, c.xp = 2*c.yp, 2*c.xp
	} else {
		c.at, c.planes, c.second, c.split, c.blocks, c.index = 2*pairs, r.Planes-2*pairs, s.element.lanes()*size, -1, s.blocks, &s.index
	}
	c.y, c.x = &y[c.at*c.yp], &x[c.at*c.xp]
	return c
}

// check panics where a slice is too short. It returns false if there is nothing to compute.
func (s *Slider) check(y, x int, r *SlideRows) bool {
	w, size := &s.windows, slideSizes[s.element]
	if r.Rows <= 0 || r.Planes <= 0 || w.N <= 0 {
		return false
	}
	if end := (r.Planes-1)*r.YP + (r.Rows-1)*r.YS + w.N; end > y/size {
		panic(fmt.Sprintf("simd: results of windows end at %d of %d", end, y/size))
	}
	for _, o := range r.Off {
		if end := o + (r.Planes-1)*r.XP + (r.Rows-1)*r.XS + s.end; o < 0 || end > x/size {
			panic(fmt.Sprintf("simd: rows of windows end at %d of %d", end, x/size))
		}
	}
	return true
}

// each calls f for every window: its result, its columns, and where its plane and its row in the plane begin.
func (s *Slider) each(r *SlideRows, f func(at, j, lo, hi, plane, row int)) {
	for p := range r.Planes {
		for i := range r.Rows {
			for j := range s.windows.N {
				lo, hi := s.windows.window(j)
				f(p*r.YP+i*r.YS+j, j, lo, hi, p*r.XP, i*r.XS)
			}
		}
	}
}

func (s *Slider) sumGo(y, x []float32, r *SlideRows, scale []float32) {
	s.each(r, func(at, j, lo, hi, plane, row int) {
		var sum float32
		for _, o := range r.Off {
			for _, v := range x[o+plane+row+lo : o+plane+row+hi] {
				sum += v
			}
		}
		y[at] = sum * scale[j]
	})
}

// maxGo stores places unless the slice of them is nil.
func (s *Slider) maxGo(y []float32, places []int64, x []float32, r *SlideRows) {
	s.each(r, func(at, j, lo, hi, plane, row int) {
		best, place := -inf, r.Off[0]+lo
		for _, o := range r.Off {
			for c := lo; c < hi; c++ {
				if v := x[o+plane+row+c]; v > best || v != v {
					best, place = v, o+c
				}
			}
		}
		if y[at] = best; places != nil {
			places[at] = int64(place + row)
		}
	})
}

// floatsOf views bytes as float32.
func floatsOf(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
