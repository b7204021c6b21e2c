package goengine

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
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

// packers are those of node types with a filter.
var packers = map[uint8]packer{
	graph.TagConv2d: packConvolution, graph.TagConvTranspose2d: packConvolution, graph.TagDepthwiseConv2d: packDepthwise,
	graph.TagFullyConnected: packFullyConnected,
}

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

// packsFloats reports whether a node multiplies floats, or bytes that are decoded, by a constant filter.
func packsFloats(g *graph.Graph, n *graph.Node) bool {
	return packers[n.Type.Tag] != nil && !supportsInt8(g, n) && areConst(g, n.In[1:])
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

func areConst(g *graph.Graph, list []int) bool {
	for _, v := range list {
		if v != graph.None && !g.Values[v].IsConst() {
			return false
		}
	}
	return true
}

// packFloats packs a filter of floats: panels by parts of w, the bias by the returned function, after them. Other elements are decoded
// first, in one part.
func packFloats(w *packing, n *graph.Node) (*floatFilter, func()) {
	v := n.In[1]
	free := w.cut(4 * panelElements(w.graph, n, w.shapes))
	var list []floatMatrix
	f := packers[n.Type.Tag](w.graph, n, func(from, k, cols, run, row, col int) *gemm.Panels {
		m := gemm.New(tensor.View[float32](free), k, cols, run)
		list = append(list, floatMatrix{m, free[:4*m.Size()], from, row, col})
		free = free[4*m.Size():]
		return m
	})
	w.addWinograd(n, f, free)
	switch {
	case w.stored && !n.IsDepthwise():
	case w.graph.Values[v].Datatype == graph.FP32:
		f.setTaps(n, w.filterNumbers(v))
		for _, m := range list {
			src := w.filterNumbers(v)[m.from:]
			w.parts(m.memory, m.Panels.Panels(), m.K*min(m.N, simd.PanelCols), func(from, to int) { m.RepackPart(src, m.row, m.col, from, to) })
		}
	default:
		w.part(w.shapes[v].Numel(), func() {
			numbers := w.filterNumbers(v)
			f.setTaps(n, numbers)
			for _, m := range list {
				cpu.Populate(m.memory)
				m.Repack(numbers[m.from:], m.row, m.col)
			}
		})
	}
	return f, func() { f.bias = w.biasOf(n) }
}

// floatMatrix is a matrix of a filter to pack: its first element in the filter, and the strides of rows and columns.
type floatMatrix struct {
	*gemm.Panels
	memory         []byte
	from, row, col int
}

// addWinograd divides the packing of a filter for blocks of 2×2 pixels, into memory, if there is to be one.
func (w *packing) addWinograd(n *graph.Node, f *floatFilter, memory []byte) {
	if !hasWinograd(w.graph, n, w.shapes) {
		return
	}
	k, cols := n.Window().GroupIn, n.Window().GroupOut
	f.winograd = newWinogradFilter(memory, k, cols)
	if w.stored {
		return
	}
	panels := graph.CeilDiv(cols, simd.PanelCols)
	each := max(1, partElements/(graph.WinogradTerms*k*simd.PanelCols))
	if w.graph.Values[n.In[1]].Datatype != graph.FP32 { // decoded once
		each = panels
	}
	for from := 0; from < panels; from += each {
		to := min(from+each, panels)
		w.part((to-from)*graph.WinogradTerms*k*simd.PanelCols, func() {
			packWinograd(memory, w.filterNumbers(n.In[1]), k, cols, from, to)
		})
	}
}

// newWinogradFilter returns a filter in memory, which [packWinograd] sets.
func newWinogradFilter(memory []byte, k, cols int) *winogradFilter {
	f, numbers, size := &winogradFilter{zeros: make([]float32, cols)}, tensor.View[float32](memory), gemm.Size(k, cols, k)
	for i := range f.matrices {
		f.matrices[i] = gemm.New(numbers[i*size:], k, cols, k)
	}
	return f
}

// packWinograd packs panels [from, to) of all matrices of a filter [cols, 3, 3, k] in memory.
func packWinograd(memory []byte, filter []float32, k, cols, from, to int) {
	const width = simd.PanelCols
	columns, size := make([]float32, graph.WinogradTerms*width*k), gemm.Size(k, cols, k) // [terms][columns][k]
	for q := from; q < to; q++ {
		n := min(width, cols-q*width)
		for j := range n {
			simd.WinogradFilter(k, filter[(q*width+j)*9*k:], columns[j*k:], width*k)
		}
		for i := range graph.WinogradTerms {
			panel := memory[4*(i*size+q*width*k):][:4*n*k]
			cpu.Populate(panel)
			gemm.New(tensor.View[float32](panel), k, n, k).Repack(columns[i*width*k:], 1, k)
		}
	}
}

// winogradFilter is a filter of 3×3 taps for blocks of 2×2 pixels: a matrix for each element of a transformed block.
type winogradFilter struct {
	matrices [graph.WinogradTerms]*gemm.Panels
	zeros    []float32 // a row
}

// hasWinograd reports whether a node's filter is packed for blocks of 2×2 pixels.
func hasWinograd(g *graph.Graph, n *graph.Node, s []graph.Shape) bool {
	if n.Type.Tag != graph.TagConv2d || !packsFloats(g, n) {
		return false
	}
	w := n.Windows(s[n.In[0]], s[n.Out[0]])
	return w.Winograd()
}

// winogradElements returns the number of elements of the matrices of such a filter.
func winogradElements(g *graph.Graph, n *graph.Node, s []graph.Shape) int {
	if !hasWinograd(g, n, s) {
		return 0
	}
	k := n.Window().GroupIn
	return graph.WinogradTerms * gemm.Size(k, n.Window().GroupOut, k)
}

// packedFloats returns the size of a node's panels, or taps, and bias. Constants of floats are used
// as they are, except in panels.
func packedFloats(g *graph.Graph, n *graph.Node, s []graph.Shape) int64 {
	bytes := graph.Times(4, panelElements(g, n, s))
	if n.IsDepthwise() {
		bytes = numberBytes(g, n.In[1], s)
	}
	if len(n.In) < 3 || n.In[2] == graph.None || g.Values[n.In[2]].Datatype != graph.FP32 {
		bytes = graph.Plus(bytes, graph.Times(4, s[n.Out[0]].Last()))
	}
	if hasWinograd(g, n, s) {
		bytes = graph.Plus(bytes, graph.Times(4, s[n.Out[0]].Last()))
	}
	return bytes
}
