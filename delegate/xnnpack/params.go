package xnnpack

// Parameters of nodes, by family. Params of a node is a pointer to the type that its
// row makes, and belongs to the node.

// params are a node's parameters, which are of the type P.
func params[P any](n *node) *P { return n.Params.(*P) }

func newParams[P any]() any { return new(P) }

// setParams gives a node of the type parameters that are all zero.
func (t *nodeType) setParams(n *node) {
	if t.params != nil {
		n.Params = t.params()
	}
}

// window is the geometry of a convolution or pool. For a pool kernel is its size,
// for a transposed convolution stride is the upsampling.
type window struct {
	top, right, bottom, left  int
	kernelH, kernelW          int
	strideH, strideW          int
	dilationH, dilationW      int
	adjustH, adjustW          int
	groups, groupIn, groupOut int
}

// window is the node's geometry, nil where it has none.
func (n *node) window() *window {
	w, _ := n.Params.(*window)
	return w
}

// geometry is the node's window, zero where it has none.
func (n *node) geometry() (w window) {
	if own := n.window(); own != nil {
		w = *own
	}
	return w
}

// transposeParams: dimension i of the output is dimension perm[i] of the input.
type transposeParams struct{ perm []int }

// reshapeParams are the output's sizes; one of them may be 0, which stands for the rest.
type reshapeParams struct{ sizes []int }

// sliceParams: sizes of 0 at offset 0 stand for the whole dimension.
type sliceParams struct{ offsets, sizes []int }

// padParams are elements added in front of and behind each dimension.
type padParams struct {
	before, after []int
	value         float32
}

// resizeParams are the output's height and width.
type resizeParams struct{ height, width int }

// concatenateParams: an axis below 0 counts from the innermost dimension.
type concatenateParams struct{ axis int }

// scalarParams: the slope of LeakyReLU, the alpha of ELU.
type scalarParams struct{ value float32 }
