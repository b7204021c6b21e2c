package xnnpack

import (
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// floatFilter contains the constants of a node, packed for products of floats. The instances of an
// image share it.
type floatFilter struct {
	panels []*gemm.Panels // by group
	taps   []float32      // of a depthwise convolution: [kernel H · W, channels]
	bias   []float32      // [output channels], zeros for none
}

// packer packs a node's filter, which is decoded as numbers; panels packs a matrix.
type packer func(g *graph, n *node, numbers []float32, panels packPanels) *floatFilter

// packPanels packs a matrix, as [gemm.Pack] does.
type packPanels func(src []float32, k, n, run, row, col int) *gemm.Panels

// packFullyConnected packs a filter [output channels, input channels], or its transpose.
func packFullyConnected(g *graph, n *node, numbers []float32, panels packPanels) *floatFilter {
	k, cols := n.inputChannels(g), n.outputChannels(g)
	row, col := 1, k
	if n.Flags&flagTransposeWeights != 0 {
		row, col = cols, 1
	}
	return &floatFilter{panels: []*gemm.Panels{panels(numbers, k, cols, k, row, col)}}
}

// packConvolution packs a filter [output channels, kernel H, kernel W, input channels of a group],
// group by group.
func packConvolution(_ *graph, n *node, numbers []float32, panels packPanels) *floatFilter {
	w, f := n.window(), &floatFilter{}
	k := w.kernelH * w.kernelW * w.groupIn
	for i := range w.groups {
		f.panels = append(f.panels, panels(numbers[i*w.groupOut*k:], k, w.groupOut, filterRun(n), 1, k))
	}
	return f
}

// filterRun returns the number of rows of a convolution's filter that products never divide, except at
// multiples of [gemm.Part]: contiguous taps of a line, the taps that are gathered, or one tap. A column
// of pixels that is treated as a line has products of several runs.
func filterRun(n *node) int {
	switch w := n.window(); {
	case n.Type.tag == tagConvTranspose2d:
		return w.groupIn
	case n.Type.tag == tagDepthwiseConv2d && w.groups > 1: // always gathered
		return w.kernelH * w.kernelW
	default:
		return w.contiguousTaps() * w.groupIn
	}
}

// packDepthwise returns a filter [1, kernel H, kernel W, output channels] unchanged. With several
// output channels per input channel it is packed, group by group.
func packDepthwise(_ *graph, n *node, numbers []float32, panels packPanels) *floatFilter {
	w := n.window()
	if w.groupOut == 1 {
		return &floatFilter{taps: numbers}
	}
	f, k := &floatFilter{}, w.kernelH*w.kernelW
	for i := range w.groups {
		f.panels = append(f.panels, panels(numbers[i*w.groupOut:], k, w.groupOut, filterRun(n), w.groups*w.groupOut, 1))
	}
	return f
}

// filterOf returns the node's packed filter: the image's, or one packed from the operands of this
// call.
func (e *reference) filterOf(n *node) *floatFilter {
	if f := e.packed.floats[n.at]; f != nil {
		return f
	}
	v := n.In[1]
	f := goTypeOf(n).pack(e.graph, n, e.load(2, v), gemm.Pack)
	f.bias = e.biasOf(n)
	return f
}

// packsFloats reports whether a node multiplies floats by a constant filter.
func packsFloats(g *graph, n *node) bool {
	return goTypeOf(n).pack != nil && !hasQuantizedInput(g, n) && areConst(g, n.In[1:])
}

// panelElements returns the number of elements in the panels of a node's filter.
func panelElements(g *graph, n *node, shapes []shape) int {
	w := n.window()
	switch {
	case w == nil:
		k := n.inputChannels(g)
		return gemm.Size(k, n.outputChannels(g), k)
	case n.isDepthwise():
		return 0
	}
	return w.groups * gemm.Size(shapes[n.In[1]].numel()/max(w.groups*w.groupOut, 1), w.groupOut, filterRun(n))
}

// hasQuantizedInput reports whether a node's first input is not floating-point.
func hasQuantizedInput(g *graph, n *node) bool { return !g.Values[n.In[0]].Datatype.isFloat() }

func areConst(g *graph, list []int) bool {
	for _, v := range list {
		if v != none && !g.Values[v].isConst() {
			return false
		}
	}
	return true
}

// filterNumbers returns the numbers of a filter, in memory that must not be modified.
func (e *reference) filterNumbers(v int) []float32 {
	x := &e.graph.Values[v]
	n := e.shapes[v].numel()
	if x.Datatype == fp32 {
		return tensor.View[float32](e.bytes[v])[:n]
	}
	numbers := make([]float32, n)
	if x.Datatype == qcint4 {
		element, cols := e.elements(v), x.Shape.last()
		for i := range numbers {
			numbers[i] = element(i) * x.Quant.Scales[i/cols]
		}
	} else {
		e.decode(numbers, v)
	}
	return numbers
}

// biasOf returns the node's bias as floats, zeros for none.
func (e *reference) biasOf(n *node) []float32 {
	channels := e.shapes[n.Out[0]].last()
	if len(n.In) < 3 || n.In[2] == none {
		return make([]float32, channels)
	}
	if v := n.In[2]; e.graph.Values[v].Datatype == fp32 {
		return tensor.View[float32](e.bytes[v])[:channels]
	}
	numbers := make([]float32, channels)
	e.decode(numbers, n.In[2])
	return numbers
}
