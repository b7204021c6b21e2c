package lower

import (
	"fmt"

	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// A region runs on a backend if it has some work, in several calls or a convolution: a single product, and functions of few elements,
// are as fast on operators. Each element that the backend transposes, as its images have another layout, needs more work, and more
// again in convolutions of few channels: the calls' own transposes do not count. docs/performance.md has the measurements.
const (
	leastMultiplications = 4000
	leastElements        = 16384
	perTransposed        = 8 // multiplications
	narrowShare          = 3 // so many of narrow convolutions count as one
)

// ExecuTorch's portable operators are loops over single elements, 10 to 100 times slower than operators with vectors. A region gains time
// from a fraction of the work on: as much as the call of a delegate costs. Transposes and single calls gain, too.
const portableShare = 32

// few returns the reason of a region that would be as fast on portable operators, "" if it would not.
func (c *candidate) few() string {
	const multiplications, elements = leastMultiplications / portableShare, leastElements / portableShare
	if w := c.work; w.Multiplications < multiplications && w.Elements+w.Transposed < elements {
		return fmt.Sprintf("%.0f multiplications and %.0f other elements are few, want %d or %d", w.Multiplications, w.Elements+w.Transposed,
			multiplications, elements)
	}
	return ""
}

// small returns the reason of a region that has too little work, "" if it has enough.
func (c *candidate) small() string {
	w := c.work
	if w.Multiplications < leastMultiplications && w.Elements < leastElements {
		return fmt.Sprintf("%.0f multiplications and %.0f other elements are few, want %d or %d", w.Multiplications, w.Elements,
			leastMultiplications, leastElements)
	}
	more := w.Transposed - transposed(c.graph.Graph)
	if w.Multiplications-w.Narrow+w.Narrow/narrowShare < perTransposed*more {
		want := fmt.Sprint(perTransposed)
		if w.Narrow > 0 {
			want += fmt.Sprintf(", in convolutions of few channels %d,", narrowShare*perTransposed)
		}
		return fmt.Sprintf("%.0f multiplications are few for %.0f elements to transpose, want %s for each", w.Multiplications, more, want)
	}
	if c.isSingle() {
		return "a single call is as fast as an operator"
	}
	return ""
}

// isSingle reports whether the region is a single call, but for views, and no convolution.
func (c *candidate) isSingle() bool {
	calls := 0
	for i := range c.graph.Calls {
		if call := &c.graph.Calls[i]; call.View {
			continue
		} else if calls++; call.Op == nil || call.Op.Class == opclass.Convolution {
			return false
		}
	}
	return calls == 1
}

// transposed counts the elements that calls of a graph transpose.
func transposed(g *regions.Graph) (n float64) {
	for i := range g.Calls {
		c := &g.Calls[i]
		if c.Op == nil || c.Op.Class != opclass.Permute && c.Op.Class != opclass.Transpose {
			continue
		}
		elements, _ := tensor.Product(g.Values[c.Args[0]].Sizes)
		n += float64(elements)
	}
	return n
}

// least returns the smallest share of varying sizes at which a region has enough work, which is proportional to the sizes.
func (c *candidate) least() float64 {
	if !c.graph.varies() {
		return 0
	}
	return min(1, leastMultiplications/c.work.Multiplications, leastElements/c.work.Elements)
}
