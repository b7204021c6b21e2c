package xnnpack

// convolution computes a convolution, with one product row per output pixel, gathered from its
// window.
func (e *reference) convolution(n *node) {
	if e.int8(n) {
		return
	}
	if !e.plain && !hasQuantizedInput(e.graph, n) {
		e.floatConvolution(n)
		return
	}
	e.multiplyWindows(n, e.prepared(n), &e.patch)
}

// transposed gathers, for each output pixel, the input pixels that contribute to it.
func (e *reference) transposed(n *node) {
	if e.int8(n) {
		return
	}
	if !e.plain && !hasQuantizedInput(e.graph, n) {
		e.floatTransposed(n)
		return
	}
	e.multiplyWindows(n, e.prepared(n), (*transposedPatch)(&e.patch))
}

// depthwise computes a convolution whose groups have one input channel. Its filter, [1, kernel H,
// kernel W, groups*groupOut], has one row per element of the window.
func (e *reference) depthwise(n *node) {
	if e.int8(n) {
		return
	}
	if !e.plain && !hasQuantizedInput(e.graph, n) {
		e.floatDepthwise(n)
		return
	}
	e.setWindows(n, e.prepared(n))
	e.product.image = &e.patch
	e.product.multiply()
}

// multiplyWindows computes the product of a convolution for all output pixels.
func (e *reference) multiplyWindows(n *node, f *filter, source rowSource) {
	e.setWindows(n, f)
	e.product.source = source
	if w := n.window(); n.Type.tag == tagConv2d && w.kernelH*w.kernelW*w.strideH*w.strideW == 1 &&
		w.groups == 1 && w.top+w.bottom+w.left+w.right == 0 { // the pixels are the rows
		e.rows = denseRows{e.patch.x, w.groupIn}
		e.product.source = &e.rows
	}
	e.product.multiply()
}

// setWindows sets the patch and the product of a convolution.
func (e *reference) setWindows(n *node, f *filter) {
	in, out := e.shapes[n.In[0]], e.shapes[n.Out[0]]
	top, left := n.padding(in.dim[1], in.dim[2])
	e.patch = patch{x: e.whole(0, n.In[0]), w: n.window(), in: in, out: out, top: top, left: left}
	e.product = product{e: e, node: n, filter: f, rows: out.leading(3), out: n.Out[0],
		result: requantizerOf(e.graph, n), work: e.product.work}
}

// patch is the input of a convolution, [N, H, W, groups*groupIn], read window by window. Elements
// outside of it are 0.
type patch struct {
	x         []float32
	w         *window
	in, out   shape
	top, left int
}

// pixel returns image, line and column of an output row.
func (p *patch) pixel(at int) (image, y, x int) {
	x = at % p.out.dim[2]
	y = at / p.out.dim[2] % p.out.dim[1]
	return at / p.out.dim[2] / p.out.dim[1], y, x
}

func (p *patch) row(dst []float32, group, at int) {
	image, oy, ox := p.pixel(at)
	w := p.w
	for ky := range w.kernelH {
		y := oy*w.strideH - p.top + ky*w.dilationH
		for kx := range w.kernelW {
			x := ox*w.strideW - p.left + kx*w.dilationW
			p.gather(dst[(ky*w.kernelW+kx)*w.groupIn:][:w.groupIn], group, image, y, x)
		}
	}
}

// at returns the channels of an input pixel, nil outside of the input.
func (p *patch) at(image, y, x int) []float32 {
	h, v, c := p.in.dim[1], p.in.dim[2], p.in.dim[3]
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
	for ky := range w.kernelH {
		y := upsampled(oy+p.top-ky*w.dilationH, w.strideH)
		for kx := range w.kernelW {
			x := upsampled(ox+p.left-kx*w.dilationW, w.strideW)
			p.gather(dst[(ky*w.kernelW+kx)*w.groupIn:][:w.groupIn], group, image, y, x)
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
