// Package strided (no compatibility promise) copies between strided tensors.
package strided

import (
	"sync"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Threads runs the body of a loop over [0, n) in ranges of at least grain, on the available
// threads.
type Threads interface {
	Parallel(n, grain int, body cpu.Body)
}

// Serial runs everything on the calling goroutine.
type Serial struct{}

// Parallel implements [Threads].
func (Serial) Parallel(n, _ int, body cpu.Body) { body.Range(0, 0, n) }

// maxDims is the largest number of dimensions of a copy: an operator that splits dimensions
// (repeat, pixel_shuffle) has up to two per dimension of the tensor.
const maxDims = 2 * tensor.MaxRank

// Shape is the shape of a strided copy: sizes, and for each dimension the distance in
// elements from one index to the next in the destination and in the source.
type Shape struct{ Sizes, Dst, Src []int }

// Buffer is the source or destination of a copy: element (0, 0, …) of the shape is element Offset
// of Data, which must be aligned to the element size.
type Buffer struct {
	Data   []byte
	Offset int
}

// Copier copies elements of any type between two strided buffers near memory bandwidth: dimensions
// that are contiguous in both buffers are merged, dense rows are copied whole, and transposes are
// tiled. The zero value is ready to use. Copy does not allocate. A Copier must not be used by two
// goroutines at once.
type Copier struct {
	dims [maxDims]dim // outermost in the destination first
	rank int
	plan
}

// plan is a planned copy: a plane for each index of the outer dimensions.
type plan struct {
	elem     int // bytes per element
	dst, src Buffer
	outside  []dim
	plane    plane
	short    bool // a few rows
	units    int  // maximum number of ranges of the work
	grain    int  // units that take about 20 µs
}

// dim is one dimension of the shape: its size and both strides, in elements.
type dim struct{ n, dst, src int }

// Copy copies the elements of a shape from src to dst. elem is the element size: 1, 2, 4, 8 or 16
// bytes. Strides of src may be 0 (repeated elements) or negative; those of dst must be positive and
// must not make elements overlap. The buffers must not overlap, and the caller must ensure that
// every element is inside Data. Large shapes are copied on several threads.
func (s *Copier) Copy(c Threads, elem int, shape Shape, dst, src Buffer) {
	if s.decide(elem, shape, dst, src) {
		s.plan.copy(c)
		s.dst, s.src = Buffer{}, Buffer{}
	}
}

// decide plans a copy; ok is false if there is nothing to copy.
func (s *Copier) decide(elem int, shape Shape, dst, src Buffer) (ok bool) {
	if !s.setDims(shape) {
		return false
	}
	s.elem, s.dst, s.src = elem, dst, src
	s.merge()
	s.widen()
	s.choosePlane()
	s.outside = s.dims[:s.rank]
	s.cut()
	return true
}

// copiers are idle Copiers; few callers copy often enough to own one.
var copiers = sync.Pool{New: func() any { return new(Copier) }}

// Copy is [Copier.Copy] with a Copier that is idle.
func Copy(c Threads, elem int, shape Shape, dst, src Buffer) {
	s := copiers.Get().(*Copier)
	s.Copy(c, elem, shape, dst, src)
	copiers.Put(s)
}

// setDims stores the dimensions with more than one index, sorted by the destination's strides. It
// reports whether there is anything to copy.
func (s *Copier) setDims(shape Shape) bool {
	s.rank = 0
	for i, n := range shape.Sizes {
		if n == 0 {
			return false
		}
		if n > 1 {
			s.insert(dim{n, shape.Dst[i], shape.Src[i]})
		}
	}
	return true
}

func (s *Copier) insert(d dim) {
	i := s.rank
	for ; i > 0 && s.dims[i-1].dst < d.dst; i-- {
		s.dims[i] = s.dims[i-1]
	}
	s.dims[i] = d
	s.rank++
}

// merge merges adjacent dimensions that are contiguous in both buffers.
func (s *Copier) merge() {
	last := 0
	for i := 1; i < s.rank; i++ {
		d, up := s.dims[i], &s.dims[last]
		if up.dst == d.n*d.dst && up.src == d.n*d.src {
			*up = dim{up.n * d.n, d.dst, d.src}
			continue
		}
		last++
		s.dims[last] = d
	}
	s.rank = min(s.rank, last+1)
}

// widestRow is the size in bytes of the longest dense row that is copied as one wide element.
const widestRow = 16

// widen copies short dense rows as fewer, wider elements: pairs of float32 as one uint64.
func (s *Copier) widen() {
	for s.canWiden() {
		s.elem *= 2
		s.dst.Offset /= 2
		s.src.Offset /= 2
		in := s.rank - 1
		for i := range s.dims[:in] {
			s.dims[i].dst /= 2
			s.dims[i].src /= 2
		}
		s.dims[in].n /= 2
		if s.dims[in].n == 1 {
			s.rank--
		}
	}
}

func (s *Copier) canWiden() bool {
	if s.rank < 2 || s.elem == 16 {
		return false
	}
	in := s.dims[s.rank-1]
	if in.dst != 1 || in.src != 1 || in.n*s.elem > widestRow {
		return false
	}
	odd := in.n | s.dst.Offset | s.src.Offset
	for _, d := range s.dims[:s.rank-1] {
		odd |= d.dst | d.src
	}
	return odd&1 == 0 && tensor.Aligned(s.dst.Data, 2*s.elem) && tensor.Aligned(s.src.Data, 2*s.elem)
}

func copyLines[T tensor.Element](dst, src []T, at int, p, q dim) {
	for j := 0; j < q.n; j += block {
		n := min(block, q.n-j)
		for i := range p.n {
			copyLine(dst[i*p.dst+j*q.dst:], src, at+i*p.src+j*q.src, dim{n, q.dst, q.src})
		}
	}
}
