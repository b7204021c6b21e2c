package xnnpack

// Parameters of nodes, by family. The Params of a node point to the type that its table row
// creates, and belong to the node.

// params returns the parameters of a node, which must be of type P.
func params[P any](n *node) *P { return n.Params.(*P) }

func newParams[P any]() any { return new(P) }

// setParams sets the parameters of a node of this type to zero values.
func (t *nodeType) setParams(n *node) {
	if t.params != nil {
		n.Params = t.params()
	}
}

// window is the geometry of a convolution or a pool. In a pool, the kernel is the pooling size. In
// a transposed convolution, the stride is the upsampling factor.
type window struct {
	top, right, bottom, left  int
	kernelH, kernelW          int
	strideH, strideW          int
	dilationH, dilationW      int
	adjustH, adjustW          int
	groups, groupIn, groupOut int
}

// window returns the geometry of the node, or nil if it has none.
func (n *node) window() *window {
	w, _ := n.Params.(*window)
	return w
}

// geometry returns the window of the node, or a zero window if it has none.
func (n *node) geometry() (w window) {
	if own := n.window(); own != nil {
		w = *own
	}
	return w
}

// transposeParams is a permutation: dimension i of the output is dimension perm[i] of the input.
type transposeParams struct{ perm []int }

// reshapeParams are the sizes of the output. One of them may be 0, which means that it is inferred.
type reshapeParams struct{ sizes []int }

// sliceParams are offsets and sizes. A size of 0 at offset 0 means the whole dimension.
type sliceParams struct{ offsets, sizes []int }

// padParams are the numbers of elements added before and after each dimension.
type padParams struct {
	before, after []int
	value         float32
}

// resizeParams are the height and width of the output.
type resizeParams struct{ height, width int }

// concatenateParams is the axis. A negative axis counts from the innermost dimension.
type concatenateParams struct{ axis int }

// scalarParams is the slope of LeakyReLU or the alpha of ELU.
type scalarParams struct{ value float32 }

// shape returns the shape of the resized input, [N, H, W, C].
func (p *resizeParams) shape(in shape) shape { return shapeOf(in.dim[0], p.height, p.width, in.dim[3]) }
