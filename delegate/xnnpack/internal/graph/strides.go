package graph

import "github.com/etrun-go/etrun/kernels/strided"

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
