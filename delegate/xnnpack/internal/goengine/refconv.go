package goengine

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// convolution computes a convolution, with one product row per output pixel, gathered from its
// window.
func (e *Unit) convolution(n *graph.Node) {
	if e.int8(n) {
		return
	}
	if !e.Plain && !HasQuantizedInput(e.Graph, n) {
		e.floatConvolution(n)
		return
	}
	e.multiplyWindows(n, e.prepared(n), &e.patch)
}

// transposed gathers, for each output pixel, the input pixels that contribute to it.
func (e *Unit) transposed(n *graph.Node) {
	if e.int8(n) {
		return
	}
	if !e.Plain && !HasQuantizedInput(e.Graph, n) {
		e.floatTransposed(n)
		return
	}
	e.multiplyWindows(n, e.prepared(n), (*transposedPatch)(&e.patch))
}

// depthwise computes a convolution whose groups have one input channel. Its filter, [1, kernel H,
// kernel W, groups*GroupOut], has one row per element of the window.
func (e *Unit) depthwise(n *graph.Node) {
	if e.int8(n) {
		return
	}
	if !e.Plain && !HasQuantizedInput(e.Graph, n) {
		e.floatDepthwise(n)
		return
	}
	e.setWindows(n, e.prepared(n))
	e.product.image = &e.patch
	e.product.multiply()
}

// multiplyWindows computes the product of a convolution for all output pixels.
func (e *Unit) multiplyWindows(n *graph.Node, f *filter, source rowSource) {
	e.setWindows(n, f)
	e.product.source = source
	if w := n.Window(); n.Type.Tag == graph.TagConv2d && w.KernelH*w.KernelW*w.StrideH*w.StrideW == 1 &&
		w.Groups == 1 && w.Top+w.Bottom+w.Left+w.Right == 0 { // the pixels are the rows
		e.rows = denseRows{e.patch.x, w.GroupIn}
		e.product.source = &e.rows
	}
	e.product.multiply()
}

// setWindows sets the patch and the product of a convolution.
func (e *Unit) setWindows(n *graph.Node, f *filter) {
	in, out := e.Shapes[n.In[0]], e.Shapes[n.Out[0]]
	top, left := n.Padding(in.Dim[1], in.Dim[2])
	e.patch = patch{x: e.factors(0, n.In[0]), w: n.Window(), in: in, out: out, top: top, left: left}
	e.product = product{e: e, node: n, filter: f, rows: out.Leading(3), out: n.Out[0],
		result: requantizerOf(e.Graph, n), work: e.product.work}
}

// patch is the input of a convolution, [N, H, W, groups*GroupIn], read window by window. Elements
// outside of it are 0.
type patch struct {
	x         []float32
	w         *graph.Window
	in, out   graph.Shape
	top, left int
}

// pixel returns image, line and column of an output row.
func (p *patch) pixel(at int) (image, y, x int) {
	x = at % p.out.Dim[2]
	y = at / p.out.Dim[2] % p.out.Dim[1]
	return at / p.out.Dim[2] / p.out.Dim[1], y, x
}

func (p *patch) row(dst []float32, group, at int) {
	image, oy, ox := p.pixel(at)
	w := p.w
	for ky := range w.KernelH {
		y := oy*w.StrideH - p.top + ky*w.DilationH
		for kx := range w.KernelW {
			x := ox*w.StrideW - p.left + kx*w.DilationW
			p.gather(dst[(ky*w.KernelW+kx)*w.GroupIn:][:w.GroupIn], group, image, y, x)
		}
	}
}

// at returns the channels of an input pixel, nil outside of the input.
func (p *patch) at(image, y, x int) []float32 {
	h, v, c := p.in.Dim[1], p.in.Dim[2], p.in.Dim[3]
	if uint(y) >= uint(h) || uint(x) >= uint(v) {
		return nil
	}
	return p.x[((image*h+y)*v+x)*c:][:c]
}

// gather copies the channels of a group of one input pixel to dst.
func (p *patch) gather(dst []float32, group, image, y, x int) {
	if pixel := p.at(image, y, x); pixel != nil {
		copy(dst, pixel[group*len(dst):])
	} else {
		clear(dst)
	}
}

// transposedPatch is a patch of a transposed convolution: input pixels are strides apart in the
// output.
type transposedPatch patch

func (t *transposedPatch) row(dst []float32, group, at int) {
	p := (*patch)(t)
	image, oy, ox := p.pixel(at)
	w := p.w
	for ky := range w.KernelH {
		y := upsampled(oy+p.top-ky*w.DilationH, w.StrideH)
		for kx := range w.KernelW {
			x := upsampled(ox+p.left-kx*w.DilationW, w.StrideW)
			p.gather(dst[(ky*w.KernelW+kx)*w.GroupIn:][:w.GroupIn], group, image, y, x)
		}
	}
}

// upsampled returns the input position of an output position, or -1 if that is between strides.
func upsampled(at, stride int) int {
	if at < 0 || at%stride != 0 {
		return -1
	}
	return at / stride
}
