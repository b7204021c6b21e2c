package move

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// maxDims is the most dimensions of a copy: an operator that splits dimensions
// (repeat, pixel_shuffle) has up to two for each of the tensor's.
const maxDims = 2 * tensor.MaxRank

// Box is the shape of a strided copy: sizes, and per dimension the distance in
// elements from one index to the next in the destination and in the source.
type Box struct{ Sizes, Dst, Src []int }

// Place is one end of a copy: element (0, 0, …) of the box is element Offset of
// Data, which is aligned to the element size.
type Place struct {
	Data   []byte
	Offset int
}

// Strided copies boxes of elements between two strided places, whatever their type,
// near the speed of memory: dimensions that run on in both places are merged, dense
// rows go through copy, transposes in tiles. The zero value is ready. It belongs
// into what the caller gets from kernels.Keep: then Copy allocates nothing. It must
// not be used by two goroutines at once.
type Strided struct {
	dims [maxDims]dim // outermost in the destination first
	rank int
	walk
}

// walk is a copy with all decided: a plane at each index of the dimensions outside.
type walk struct {
	elem     int // bytes of an element
	dst, src Place
	outside  []dim
	plane    plane
	short    bool // a few rows
	units    int  // how many ranges the work could be cut into at most
	grain    int  // units that take about 20 µs
}

// dim is one dimension of the box: its size and both strides, in elements.
type dim struct{ n, dst, src int }

// Copy moves the elements of a box from src to dst. elem is the element size: 1, 2,
// 4, 8 or 16 bytes. Strides of src may be 0 (the element is repeated) or negative;
// those of dst are positive and let no two elements meet. The two places do not
// overlap. The caller vouches that every element lies within Data. Large boxes are
// copied on several threads.
func (s *Strided) Copy(c *kernels.Ctx, elem int, box Box, dst, src Place) {
	if s.decide(elem, box, dst, src) {
		s.walk.copy(c)
		s.dst, s.src = Place{}, Place{}
	}
}

// decide chooses the walk of a copy; ok is false where there is nothing to copy.
func (s *Strided) decide(elem int, box Box, dst, src Place) (ok bool) {
	if !s.setDims(box) {
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

// Tensor copies src into dst, a tensor of the same sizes and element size whose dim
// order may be another one.
func (s *Strided) Tensor(c *kernels.Ctx, dst, src *tensor.Tensor) {
	s.Copy(c, src.DType.Size(), Box{src.Sizes, dst.Strides, src.Strides}, Place{Data: dst.Data}, Place{Data: src.Data})
}

// setDims takes the dimensions over without those of size 1, sorted by the
// destination's strides. It reports whether there is anything to copy.
func (s *Strided) setDims(box Box) bool {
	s.rank = 0
	for i, n := range box.Sizes {
		if n == 0 {
			return false
		}
		if n > 1 {
			s.insert(dim{n, box.Dst[i], box.Src[i]})
		}
	}
	return true
}

func (s *Strided) insert(d dim) {
	i := s.rank
	for ; i > 0 && s.dims[i-1].dst < d.dst; i-- {
		s.dims[i] = s.dims[i-1]
	}
	s.dims[i] = d
	s.rank++
}

// merge joins neighbours that run on in both places.
func (s *Strided) merge() {
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

// widestRow is the longest dense row, in bytes, that is moved as one wide element.
const widestRow = 16

// widen moves short dense rows as fewer, wider elements: pairs of float32 as one
// uint64.
func (s *Strided) widen() {
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

func (s *Strided) canWiden() bool {
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
