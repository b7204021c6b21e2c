package goengine

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// convolution computes a convolution, with one product row per output pixel, gathered from its
// window.
func (e *Unit) convolution(n *graph.Node) {
	if e.int8(n) {
		return
	}
	if !e.Plain {
		e.floatConvolution(n)
		return
	}
	e.multiplyWindows(n, e.prepared(n))
}

// transposed gathers, for each output pixel, the input pixels that contribute to it.
func (e *Unit) transposed(n *graph.Node) {
	if e.int8(n) {
		return
	}
	if !e.Plain {
		e.floatTransposed(n)
		return
	}
	e.multiplyWindows(n, e.prepared(n))
}

// depthwise computes a convolution whose groups have one input channel. Its filter, [1, kernel H,
// kernel W, groups*GroupOut], has one row per element of the window.
func (e *Unit) depthwise(n *graph.Node) {
	if e.int8(n) {
		return
	}
	if !e.Plain {
		e.floatDepthwise(n)
		return
	}
	e.setWindows(n, e.prepared(n))
	e.product.image = &e.patch
	e.product.multiply()
}

// multiplyWindows computes the product of a convolution for all output pixels.
func (e *Unit) multiplyWindows(n *graph.Node, f *filter) {
	e.setWindows(n, f)
	e.product.source = &e.patch
	if w := n.Window(); n.Type.Tag == graph.TagConv2d && w.KernelH*w.KernelW*w.StrideH*w.StrideW == 1 &&
		w.Groups == 1 && w.Top+w.Bottom+w.Left+w.Right == 0 { // the pixels are the rows
		e.rows = denseRows{e.patch.X, w.GroupIn}
		e.product.source = &e.rows
	}
	e.product.multiply()
}

// setWindows sets the patch and the product of a convolution.
func (e *Unit) setWindows(n *graph.Node, f *filter) {
	in, out := e.Shapes[n.In[0]], e.Shapes[n.Out[0]]
	e.patch = patch{rowsOf(n, in, out, e.factors(0, n.In[0]))}
	e.product = product{e: e, node: n, filter: f, rows: out.Leading(3), out: n.Out[0],
		result: requantizerOf(e.Graph, n), work: e.product.work}
}
