package reduce

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// cell is a type that folds compute in.
type cell interface {
	float32 | float64 | int64 | uint8
}

// Sizes of a stage's work.
const (
	rowChunk = 4096 // cells that are folded to one result at most
	colChunk = 256  // rows that are folded to one at most
	block    = 1024 // cells of a row that are folded at a time, and of a worker's buffer
)

// stage folds chunks of a layout to one row each: outer × chunks × inner remain.
type stage[C cell] struct {
	layout
	source[C]
	fold   *fold[C]
	chunk  int // rows
	chunks int
	blocks int // of a row
	shift  []C // per result, or nil
	dst    []C
	off    []int // of the rows of a chunk, for fold.stack
}

// results folds the elements of a layout to its results, in scratch memory.
func (s *stage[C]) results(c *kernels.Ctx, f *fold[C], l layout, from source[C]) []C {
	s.fold, s.source, s.layout = f, from, l
	for {
		s.cut()
		s.placeRows()
		s.dst = kernels.Scratch[C](c, s.outer*s.chunks*s.inner)
		c.Parallel(s.outer*s.chunks*s.blocks, cpu.Grain(s.chunk*min(s.inner, block), 600), s)
		if s.chunks == 1 {
			break
		}
		if s.fold.join != nil {
			s.fold = s.fold.join
		}
		s.source, s.n = source[C]{data: tensor.BytesOf(s.dst)}, s.chunks
	}
	d := s.dst
	s.source, s.dst, s.shift = source[C]{}, nil, nil
	return d
}

// cut divides the rows into chunks.
func (s *stage[C]) cut() {
	limit := colChunk
	if s.inner == 1 {
		limit = rowChunk
	}
	s.chunk = min(s.n, limit)
	s.chunks = max(1, (s.n+limit-1)/limit)
	s.blocks = (s.inner + block - 1) / block
}

// placeRows lists where the rows of a chunk start.
func (s *stage[C]) placeRows() {
	if s.off = s.off[:0]; s.fold.stack == nil || s.inner == 1 || s.load != nil {
		return
	}
	for r := range s.chunk {
		s.off = append(s.off, r*s.inner)
	}
}

// Range folds chunks lo to hi, counted through outer indices, chunks and blocks.
func (s *stage[C]) Range(worker, lo, hi int) {
	if s.fold.shortRows(s.layout) {
		s.foldRows(worker, lo, hi)
		return
	}
	at := lo % s.blocks
	row := lo / s.blocks
	o, chunk := row/s.chunks, row%s.chunks
	for range hi - lo {
		if s.inner == 1 {
			s.foldRow(worker, o, chunk)
		} else {
			s.foldCols(worker, o, chunk, at*block)
		}
		if at++; at == s.blocks {
			at = 0
			if chunk++; chunk == s.chunks {
				chunk = 0
				o++
			}
		}
	}
}

// shortRows reports whether f folds the rows of l several at a time.
func (f *fold[C]) shortRows(l layout) bool {
	return f.rows != nil && l.inner == 1 && l.n > 0 && l.n <= shortRow
}

// foldRows folds rows [lo, hi), as many at a time as the buffer has space for if they are converted.
func (s *stage[C]) foldRows(worker, lo, hi int) {
	if s.half && s.fold.halves != nil && s.fold.halves(s.dst[lo:hi], s.data[2*lo*s.n:2*hi*s.n], s.n) {
		return
	}
	for rows := hi - lo; lo < hi; lo += rows {
		if s.load != nil {
			rows = block / s.n &^ 3
		}
		rows = min(rows, hi-lo)
		s.fold.rows(s.dst[lo:lo+rows], s.cells(worker, lo*s.n, rows*s.n), s.n)
	}
}

func (s *stage[C]) foldRow(worker, o, chunk int) {
	from := chunk * s.chunk
	end := o*s.n + min(from+s.chunk, s.n)
	var shift C
	if s.shift != nil {
		shift = s.shift[o]
	}
	acc := s.fold.init
	if s.fold.row32 != nil {
		s.dst[o*s.chunks+chunk] = acc + s.fold.row32(tensor.View[float32](s.data)[o*s.n+from:end], shift)
		return
	}
	for i := o*s.n + from; i < end; {
		x := s.cells(worker, i, end-i)
		acc = s.fold.row(acc, x, shift)
		i += len(x)
	}
	s.dst[o*s.chunks+chunk] = acc
}

func (s *stage[C]) foldCols(worker, o, chunk, at int) {
	n := min(block, s.inner-at)
	var shift []C
	if s.shift != nil {
		shift = s.shift[o*s.inner+at:][:n]
	}
	acc := s.dst[(o*s.chunks+chunk)*s.inner+at:][:n]
	first, end := chunk*s.chunk, min((chunk+1)*s.chunk, s.n)
	if len(s.off) > 0 {
		s.fold.stack(acc, tensor.View[C](s.data)[(o*s.n+first)*s.inner+at:], s.off[:end-first])
		return
	}
	for i := range acc {
		acc[i] = s.fold.init
	}
	for r := first; r < end; r++ {
		if from := (o*s.n+r)*s.inner + at; s.fold.cols32 != nil {
			s.fold.cols32(acc, tensor.View[float32](s.data)[from:][:n], shift)
			continue
		}
		s.fold.cols(acc, s.cells(worker, (o*s.n+r)*s.inner+at, n), shift)
	}
}

// source is the source of cells.
type source[C cell] struct {
	data []byte
	elem int                       // bytes of an element
	load func(dst []C, src []byte) // nil where data holds cells
	half bool                      // data holds float16
	buf  []C                       // block cells for each worker
}

// newSource returns a source of elements of elem bytes, converted by load if that is not nil.
func newSource[C cell](c *kernels.Ctx, data []byte, elem int, load func(dst []C, src []byte)) source[C] {
	s := source[C]{data: data, elem: elem, load: load}
	if load != nil {
		s.buf = kernels.Scratch[C](c, block*c.Threads())
	}
	return s
}

// Rows below shortRow cells are not converted one by one but all together, unless there are more than maxShort elements.
const shortRow, maxShort = 256, 1 << 20

// sourceOf returns a source of elements of type d in a layout.
func sourceOf[C tensor.Compute](c *kernels.Ctx, data []byte, d tensor.DType, l layout) source[C] {
	load, n := loader[C](d), l.results()*l.n
	if short := l.inner < shortRow && (l.inner > 1 || l.n < shortRow); load == nil || !short || n > maxShort {
		return newSource(c, data, d.Size(), load)
	}
	wide := kernels.Scratch[C](c, n)
	load(wide, data)
	return newSource[C](c, tensor.BytesOf(wide), d.Size(), nil)
}

// cells returns elements from i: n of them, or as many as fit the worker's buffer.
func (s *source[C]) cells(worker, i, n int) []C {
	if s.load == nil {
		return tensor.View[C](s.data)[i : i+n]
	}
	buf := s.buf[worker*block:][:min(n, block)]
	s.load(buf, s.data[i*s.elem:])
	return buf
}
