package graphtest

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// Chain builds a random graph over values of known shapes.
type Chain struct {
	*Maker
	Ready []int // values that nodes may read
}

// Joined adds a concatenation of two values.
func (c *Chain) Joined(x, y int, d graph.Datatype, axis int, dims []int) int {
	z := c.Add("Concatenate2", []int{x, y}, d, graph.ShapeOf(dims...), func(n *graph.Node) { graph.Params[graph.ConcatenateParams](n).Axis = axis })
	c.Keep(z, x)
	return z
}

// SizesOf splits and merges the sizes of a shape.
func (c *Chain) SizesOf(s graph.Shape) (sizes []int) {
	for _, n := range s.Dims() {
		if n%2 == 0 && c.R.IntN(3) == 0 && len(sizes) < 4 {
			sizes = append(sizes, 2, n/2)
			continue
		}
		sizes = append(sizes, n)
	}
	for i := 0; i+1 < len(sizes); i++ {
		if len(sizes) > 5 || c.R.IntN(4) == 0 {
			sizes[i] *= sizes[i+1]
			sizes = slices.Delete(sizes, i+1, i+2)
		}
	}
	if len(sizes) > 6 {
		return []int{s.Numel()}
	}
	return sizes
}
