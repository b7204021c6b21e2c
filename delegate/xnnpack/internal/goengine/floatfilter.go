package goengine

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// floatFilter contains the constants of a node, packed for products of floats. The instances of an
// image share it.
type floatFilter struct {
	panels []*gemm.Panels // by group
	taps   []float32      // of a depthwise convolution: [kernel H · W, channels]
	bias   []float32      // [output channels], zeros for none
	// Winograd is the same filter for blocks of 2×2 pixels, nil if these do not pay off.
	winograd *winogradFilter
}

// packer packs a node's filter; panels packs a matrix. Those of depthwise convolutions may have none, see setTaps.
type packer func(g *graph.Graph, n *graph.Node, panels packPanels) *floatFilter

// packPanels packs the matrix that starts at an element of the filter, as [gemm.Pack] does.
type packPanels func(from, k, n, run, row, col int) *gemm.Panels

// packFullyConnected packs a filter [output channels, input channels], or its transpose.
func packFullyConnected(g *graph.Graph, n *graph.Node, panels packPanels) *floatFilter {
	k, cols := n.InputChannels(g), n.OutputChannels(g)
	row, col := 1, k
	if n.Flags&graph.FlagTransposeWeights != 0 {
		row, col = cols, 1
	}
	return &floatFilter{panels: []*gemm.Panels{panels(0, k, cols, k, row, col)}}
}

// packConvolution packs a filter [output channels, kernel H, kernel W, input channels of a group],
// group by group.
func packConvolution(_ *graph.Graph, n *graph.Node, panels packPanels) *floatFilter {
	w, f := n.Window(), &floatFilter{}
	k := w.KernelH * w.KernelW * w.GroupIn
	for i := range w.Groups {
		f.panels = append(f.panels, panels(i*w.GroupOut*k, k, w.GroupOut, filterRun(n), 1, k))
	}
	return f
}

// filterRun returns the number of rows of a convolution's filter that products never divide, except at
// multiples of [gemm.Part]: contiguous taps of a line, the taps that are gathered, or one tap. A column
// of pixels that is treated as a line has products of several runs.
func filterRun(n *graph.Node) int {
	switch w := n.Window(); {
	case n.Type.Tag == graph.TagConvTranspose2d:
		return w.GroupIn
	case n.Type.Tag == graph.TagDepthwiseConv2d && w.Groups > 1: // always gathered
		return w.KernelH * w.KernelW
	default:
		return w.ContiguousTaps() * w.GroupIn
	}
}

// packDepthwise returns a filter [1, kernel H, kernel W, output channels] without matrices. With several
// output channels per input channel it has one for each group.
func packDepthwise(_ *graph.Graph, n *graph.Node, panels packPanels) *floatFilter {
	w := n.Window()
	f, k := &floatFilter{}, w.KernelH*w.KernelW
	if w.GroupOut == 1 {
		return f
	}
	for i := range w.Groups {
		f.panels = append(f.panels, panels(i*w.GroupOut, k, w.GroupOut, filterRun(n), w.Groups*w.GroupOut, 1))
	}
	return f
}

// setTaps sets the numbers of a depthwise convolution's filter, which are used unchanged.
func (f *floatFilter) setTaps(n *graph.Node, numbers []float32) {
	if n.IsDepthwise() {
		f.taps = numbers
	}
}

// filterOf returns the node's packed filter: the image's, or one packed from the operands of this
// call.
func (e *frame) filterOf(n *graph.Node) *floatFilter {
	if f := e.packed.floats[n.At]; f != nil {
		return f
	}
	v := n.In[1]
	numbers := e.load(2, v)
	f := typeOf(n).pack(e.graph, n, func(from, k, cols, run, row, col int) *gemm.Panels {
		return gemm.Pack(numbers[from:], k, cols, run, row, col)
	})
	f.setTaps(n, numbers)
	f.bias = e.biasOf(n)
	return f
}

// packsFloats reports whether a node multiplies floats, or bytes that are decoded, by a constant filter.
func packsFloats(g *graph.Graph, n *graph.Node) bool {
	return typeOf(n).pack != nil && !supportsInt8(g, n) && areConst(g, n.In[1:])
}

// panelElements returns the number of elements in the panels of a node's filter, in all its forms.
func panelElements(g *graph.Graph, n *graph.Node, shapes []graph.Shape) int {
	return directElements(g, n, shapes) + winogradElements(g, n, shapes)
}

// directElements returns the number of elements in the panels of a node's filter as it is defined.
func directElements(g *graph.Graph, n *graph.Node, shapes []graph.Shape) int {
	w := n.Window()
	switch {
	case w == nil:
		k := n.InputChannels(g)
		return gemm.Size(k, n.OutputChannels(g), k)
	case n.IsDepthwise():
		return 0
	}
	return w.Groups * gemm.Size(shapes[n.In[1]].Numel()/max(w.Groups*w.GroupOut, 1), w.GroupOut, filterRun(n))
}

// hasQuantizedInput reports whether a node's first input is not floating-point.
func hasQuantizedInput(g *graph.Graph, n *graph.Node) bool {
	return !g.Values[n.In[0]].Datatype.IsFloat()
}

func areConst(g *graph.Graph, list []int) bool {
	for _, v := range list {
		if v != graph.None && !g.Values[v].IsConst() {
			return false
		}
	}
	return true
}

// biasOf returns the node's bias as floats, zeros for none.
func (e *frame) biasOf(n *graph.Node) []float32 {
	channels := e.shapes[n.Out[0]].Last()
	if len(n.In) < 3 || n.In[2] == graph.None {
		return make([]float32, channels)
	}
	if v := n.In[2]; e.graph.Values[v].Datatype == graph.FP32 {
		return tensor.View[float32](e.data[v])[:channels]
	}
	numbers := make([]float32, channels)
	if e.decode(numbers, n.In[2]); hasQuantizedInput(e.graph, n) {
		for i, scale := range filterScales(e.graph, n, channels) {
			numbers[i] *= e.graph.Values[n.In[0]].Quant.Scale * scale
		}
	}
	return numbers
}

// filterScales returns the scales of the columns, which are 1 if groups of rows have their own.
func filterScales(g *graph.Graph, n *graph.Node, columns int) []float32 {
	x, scales := &g.Values[n.In[1]], make([]float32, columns)
	for i := range scales {
		switch x.Datatype.Info().Quant {
		case graph.PerTensor:
			scales[i] = x.Quant.Scale
		case graph.PerChannel:
			scales[i] = x.Quant.Scales[i]
		default:
			scales[i] = 1
		}
	}
	return scales
}
