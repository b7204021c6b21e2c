package xnnpack

import (
	"fmt"
	"math/bits"

	"github.com/etrun-go/etrun/cbindings/xnn"
)

// steps are distances in memory, in elements, along the dimensions of a value.
type steps [xnn.MaxDims]int

// shape is the sizes of a value in the order of its memory. It is comparable.
type shape struct {
	rank int
	dim  [xnn.MaxDims]int
}

func shapeOf(dims ...int) shape {
	s := shape{rank: len(dims)}
	copy(s.dim[:], dims)
	return s
}

func (s shape) dims() []int { return s.dim[:s.rank] }

func (s shape) String() string { return fmt.Sprint(s.dim[:s.rank]) }

// numel is the number of elements; the shape has passed check.
func (s shape) numel() int { return s.leading(s.rank) }

// leading is the product of the first n sizes.
func (s shape) leading(n int) int {
	p := 1
	for _, d := range s.dim[:n] {
		p *= d
	}
	return p
}

// trailing is the product of the sizes from dimension n on.
func (s shape) trailing(n int) int {
	p := 1
	for _, d := range s.dim[n:s.rank] {
		p *= d
	}
	return p
}

// last is the innermost size; 1 for rank 0.
func (s shape) last() int {
	if s.rank == 0 {
		return 1
	}
	return s.dim[s.rank-1]
}

// fromEnd is the size of the i-th dimension from the innermost, 1 beyond the rank.
func (s shape) fromEnd(i int) int {
	if i >= s.rank {
		return 1
	}
	return s.dim[s.rank-1-i]
}

// squeezed leaves the dimensions of size 1 out: equal for shapes that lie in memory
// in the same way.
func (s shape) squeezed() shape {
	var out shape
	for _, d := range s.dims() {
		if d != 1 {
			out.dim[out.rank] = d
			out.rank++
		}
	}
	return out
}

// permuted is the shape of a transposed value: dimension i is dimension perm[i] of s.
func (s shape) permuted(perm []int) shape {
	out := shape{rank: s.rank}
	for i, p := range perm {
		out.dim[i] = s.dim[p]
	}
	return out
}

// maxElements bounds one value: products of a few such numbers do not overflow.
const maxElements = 1 << min(30, bits.UintSize-5)

// check reports sizes that no value may have.
func (s shape) check() error {
	n := 1
	for _, d := range s.dims() {
		if d <= 0 {
			return fmt.Errorf("sizes %v, want at least 1 each", s)
		}
		if d > maxElements/n {
			return fmt.Errorf("sizes %v, at most %d elements in all", s, maxElements)
		}
		n *= d
	}
	return nil
}

// broadcast is the shape of an elementwise function of two operands.
func broadcast(a, b shape) (shape, bool) {
	out := shape{rank: max(a.rank, b.rank)}
	for i := range out.rank {
		x, y := a.fromEnd(i), b.fromEnd(i)
		if x != y && x != 1 && y != 1 {
			return shape{}, false
		}
		out.dim[out.rank-1-i] = max(x, y)
	}
	return out, true
}
