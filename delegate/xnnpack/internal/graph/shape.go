package graph

import (
	"fmt"
	"math/bits"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/kernels/strided"
)

// Steps are distances in memory along the dimensions of a value, in elements.
type Steps [xnn.MaxDims]int

// Shape is the sizes of a value in memory order. It is comparable.
type Shape struct {
	Rank int
	Dim  [xnn.MaxDims]int
}

// ShapeOf returns the shape of these sizes, at most xnn.MaxDims.
func ShapeOf(dims ...int) Shape {
	s := Shape{Rank: len(dims)}
	copy(s.Dim[:], dims)
	return s
}

// Dims returns the sizes, in the memory of a copy of the shape.
func (s Shape) Dims() []int { return s.Dim[:s.Rank] }

// String returns the sizes for messages.
func (s Shape) String() string { return fmt.Sprint(s.Dim[:s.Rank]) }

// Numel returns the number of elements of a shape that passed check.
func (s Shape) Numel() int { return s.Leading(s.Rank) }

// Leading returns the product of the first n sizes.
func (s Shape) Leading(n int) int {
	p := 1
	for _, d := range s.Dim[:n] {
		p *= d
	}
	return p
}

// Trailing returns the product of the sizes from dimension n on.
func (s Shape) Trailing(n int) int {
	p := 1
	for _, d := range s.Dim[n:s.Rank] {
		p *= d
	}
	return p
}

// Last returns the innermost size; 1 for rank 0.
func (s Shape) Last() int {
	if s.Rank == 0 {
		return 1
	}
	return s.Dim[s.Rank-1]
}

// FromEnd returns the size of the i-th dimension, counted from the innermost; 1 beyond the rank.
func (s Shape) FromEnd(i int) int {
	if i >= s.Rank {
		return 1
	}
	return s.Dim[s.Rank-1-i]
}

// squeezed returns s without dimensions of size 1. It is equal for shapes with the same memory
// layout.
func (s Shape) squeezed() Shape {
	var out Shape
	for _, d := range s.Dims() {
		if d != 1 {
			out.Dim[out.Rank] = d
			out.Rank++
		}
	}
	return out
}

// Permuted returns the shape of a transposed value: dimension i is dimension perm[i] of s.
func (s Shape) Permuted(perm []int) Shape {
	out := Shape{Rank: s.Rank}
	for i, p := range perm {
		out.Dim[i] = s.Dim[p]
	}
	return out
}

// MaxElements limits the size of a value, so that products of a few such numbers do not overflow.
const MaxElements = 1 << min(30, bits.UintSize-5)

// Check returns an error for invalid sizes.
func (s Shape) Check() error {
	n := 1
	for _, d := range s.Dims() {
		if d <= 0 {
			return fmt.Errorf("sizes %v, want at least 1 each", s)
		}
		if d > MaxElements/n {
			return fmt.Errorf("sizes %v, at most %d elements in all", s, MaxElements)
		}
		n *= d
	}
	return nil
}

// Broadcast returns the output shape of an elementwise node with two operands. It reports whether
// they can be broadcast.
func Broadcast(a, b Shape) (Shape, bool) {
	out := Shape{Rank: max(a.Rank, b.Rank)}
	for i := range out.Rank {
		x, y := a.FromEnd(i), b.FromEnd(i)
		if x != y && x != 1 && y != 1 {
			return Shape{}, false
		}
		out.Dim[out.Rank-1-i] = max(x, y)
	}
	return out, true
}

// Strides returns the strides of a dense value, in elements.
func Strides(s Shape) (out Steps) {
	step := 1
	for i := s.Rank - 1; i >= 0; i-- {
		out[i] = step
		step *= s.Dim[i]
	}
	return out
}

// Box is a strided copy. Element (i, j, …) of sizes is copied from the sum of i·from to the sum of
// i·to, in elements relative to FirstFrom and into.
type Box struct {
	Sizes           Shape
	From, To        Steps
	FirstFrom, Into int
}

// Shape returns the box as package strided has it.
func (b *Box) Shape() strided.Shape {
	n := b.Sizes.Rank
	return strided.Shape{Sizes: b.Sizes.Dim[:n], Dst: b.To[:n], Src: b.From[:n]}
}
