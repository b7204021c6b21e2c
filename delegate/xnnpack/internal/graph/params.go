package graph

// Parameters of nodes, by family. The Params of a node point to the type that its table row
// creates, and belong to the node.

// Params returns the parameters of a node, which must be of type P.
func Params[P any](n *Node) *P { return n.Params.(*P) }

// newParams returns new parameters of type P.
func newParams[P any]() any { return new(P) }

// SetParams sets the parameters of a node of this type to zero values.
func (t *NodeType) SetParams(n *Node) {
	if t.Params != nil {
		n.Params = t.Params()
	}
}

// Window is the geometry of a convolution or a pool. In a pool, the kernel is the pooling size. In
// a transposed convolution, the stride is the upsampling factor.
type Window struct {
	Top, Right, Bottom, Left  int
	KernelH, KernelW          int
	StrideH, StrideW          int
	DilationH, DilationW      int
	AdjustH, AdjustW          int
	Groups, GroupIn, GroupOut int
}

// Window returns the geometry of the node, or nil if it has none.
func (n *Node) Window() *Window {
	w, _ := n.Params.(*Window)
	return w
}

// Geometry returns the window of the node, or a zero window if it has none.
func (n *Node) Geometry() (w Window) {
	if own := n.Window(); own != nil {
		w = *own
	}
	return w
}

// TransposeParams is a permutation: dimension i of the output is dimension perm[i] of the input.
type TransposeParams struct{ Perm []int }

// ReshapeParams are the sizes of the output. One of them may be 0, which means that it is inferred.
type ReshapeParams struct{ Sizes []int }

// SliceParams are offsets and sizes. A size of 0 at offset 0 means the whole dimension.
type SliceParams struct{ Offsets, Sizes []int }

// PadParams are the numbers of elements added before and after each dimension.
type PadParams struct {
	Before, After []int
	Value         float32
}

// ResizeParams are the height and width of the output.
type ResizeParams struct{ Height, Width int }

// ConcatenateParams is the axis. A negative axis counts from the innermost dimension.
type ConcatenateParams struct{ Axis int }

// ScalarParams is the slope of LeakyReLU or the alpha of ELU.
type ScalarParams struct{ Value float32 }

// Shape returns the shape of the resized input, [N, H, W, C].
func (p *ResizeParams) Shape(in Shape) Shape { return ShapeOf(in.Dim[0], p.Height, p.Width, in.Dim[3]) }
