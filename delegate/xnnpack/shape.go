package xnnpack

import (
	"fmt"
	"math/bits"

	"github.com/etrun-go/etrun/cbindings/xnn"
)

// steps are distances in memory along the dimensions of a value, in elements.
type steps [xnn.MaxDims]int

// shape is the sizes of a value in memory order. It is comparable.
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

// numel returns the number of elements of a shape that passed check.
func (s shape) numel() int { return s.leading(s.rank) }

// leading returns the product of the first n sizes.
func (s shape) leading(n int) int {
	p := 1
	for _, d := range s.dim[:n] {
		p *= d
	}
	return p
}

// trailing returns the product of the sizes from dimension n on.
func (s shape) trailing(n int) int {
	p := 1
	for _, d := range s.dim[n:s.rank] {
		p *= d
	}
	return p
}

// last returns the innermost size; 1 for rank 0.
func (s shape) last() int {
	if s.rank == 0 {
		return 1
	}
	return s.dim[s.rank-1]
}

// fromEnd returns the size of the i-th dimension, counted from the innermost; 1 beyond the rank.
func (s shape) fromEnd(i int) int {
	if i >= s.rank {
		return 1
	}
	return s.dim[s.rank-1-i]
}

// squeezed returns s without dimensions of size 1. It is equal for shapes with the same memory
// layout.
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

// permuted returns the shape of a transposed value: dimension i is dimension perm[i] of s.
func (s shape) permuted(perm []int) shape {
	out := shape{rank: s.rank}
	for i, p := range perm {
		out.dim[i] = s.dim[p]
	}
	return out
}

// maxElements limits the size of a value, so that products of a few such numbers do not overflow.
const maxElements = 1 << min(30, bits.UintSize-5)

// check returns an error for invalid sizes.
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

// broadcast returns the output shape of an elementwise node with two operands. It reports whether
// they can be broadcast.
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
