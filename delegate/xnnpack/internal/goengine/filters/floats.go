package filters

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Float contains the constants of a node, packed for products of floats. The instances of an
// image share it.
type Float struct {
	Panels []*gemm.Panels // by group
	Taps   []float32      // of a depthwise convolution: [kernel H · W, channels]
	Bias   []float32      // [output channels], zeros for none
	// Winograd is the same filter for blocks of 2×2 pixels, nil if these do not pay off.
	Winograd *winogradFilter
}

// packer packs a node's filter; panels packs a matrix. Those of depthwise convolutions may have none, see setTaps.
type packer func(g *graph.Graph, n *graph.Node, panels packPanels) *Float

// packPanels packs the matrix that starts at an element of the filter, as [gemm.Pack] does.
type packPanels func(from, k, n, run, row, col int) *gemm.Panels

// packers are those of node types with a filter.
var packers = map[uint8]packer{
	graph.TagConv2d: packConvolution, graph.TagConvTranspose2d: packConvolution, graph.TagDepthwiseConv2d: packDepthwise,
	graph.TagFullyConnected: packFullyConnected,
}

// packFullyConnected packs a filter [output channels, input channels], or its transpose.
func packFullyConnected(g *graph.Graph, n *graph.Node, panels packPanels) *Float {
	k, cols := n.InputChannels(g), n.OutputChannels(g)
	row, col := 1, k
	if n.Flags&graph.FlagTransposeWeights != 0 {
		row, col = cols, 1
	}
	return &Float{Panels: []*gemm.Panels{panels(0, k, cols, k, row, col)}}
}

// packConvolution packs a filter [output channels, kernel H, kernel W, input channels of a group],
// group by group.
func packConvolution(_ *graph.Graph, n *graph.Node, panels packPanels) *Float {
	w, f := n.Window(), &Float{}
	k := w.KernelH * w.KernelW * w.GroupIn
	for i := range w.Groups {
		f.Panels = append(f.Panels, panels(i*w.GroupOut*k, k, w.GroupOut, filterRun(n), 1, k))
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

// packDepthwise returns a filter [1, kernel H, kernel W, output channels] without matrices. With many
// output channels per input channel it has one for each group.
func packDepthwise(_ *graph.Graph, n *graph.Node, panels packPanels) *Float {
	w := n.Window()
	f, k := &Float{}, w.KernelH*w.KernelW
	if n.IsDepthwise() {
		return f
	}
	for i := range w.Groups {
		f.Panels = append(f.Panels, panels(i*w.GroupOut, k, w.GroupOut, filterRun(n), w.Groups*w.GroupOut, 1))
	}
	return f
}

// IsWeighted reports whether nodes of this type have a filter that is packed.
func IsWeighted(n *graph.Node) bool { return packers[n.Type.Tag] != nil }

// NewFloat packs the filter of a node whose numbers a call has.
func NewFloat(e *numbers.Values, n *graph.Node, numbers []float32) *Float {
	f := packers[n.Type.Tag](e.Graph, n, func(from, k, cols, run, row, col int) *gemm.Panels {
		return gemm.Pack(numbers[from:], k, cols, run, row, col)
	})
	f.setTaps(n, numbers)
	f.Bias = e.BiasOf(n)
	return f
}

// setTaps sets the numbers of a depthwise convolution's filter, which are used unchanged.
func (f *Float) setTaps(n *graph.Node, numbers []float32) {
	if n.IsDepthwise() {
		f.Taps = numbers
	}
}

// PacksFloats reports whether a node multiplies floats, or bytes that are decoded, by a constant filter.
func PacksFloats(g *graph.Graph, n *graph.Node) bool {
	return IsWeighted(n) && !PacksInt8(g, n) && areConst(g, n.In[1:])
}

// PanelElements returns the number of elements in the panels of a node's filter, in all its forms.
func PanelElements(g *graph.Graph, n *graph.Node, shapes []graph.Shape) int {
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
func packFloats(w *partition, n *graph.Node) (*Float, func()) {
	v := n.In[1]
	free := w.cut(4 * PanelElements(w.Graph, n, w.Shapes))
	var list []floatMatrix
	f := packers[n.Type.Tag](w.Graph, n, func(from, k, cols, run, row, col int) *gemm.Panels {
		m := gemm.New(tensor.View[float32](free), k, cols, run)
		list = append(list, floatMatrix{m, free[:4*m.Size()], from, row, col})
		free = free[4*m.Size():]
		return m
	})
	w.addWinograd(n, f, free)
	switch {
	case w.stored && !n.IsDepthwise():
	case w.Graph.Values[v].Datatype == graph.FP32:
		f.setTaps(n, w.FilterNumbers(v))
		for _, m := range list {
			src := w.FilterNumbers(v)[m.from:]
			w.parts(m.memory, m.Panels.Panels(), m.K*min(m.N, simd.PanelCols), func(from, to int) { m.RepackPart(src, m.row, m.col, from, to) })
		}
	default:
		w.part(w.Shapes[v].Numel(), func() {
			numbers := w.FilterNumbers(v)
			f.setTaps(n, numbers)
			for _, m := range list {
				cpu.Populate(m.memory)
				m.Repack(numbers[m.from:], m.row, m.col)
			}
		})
	}
	return f, func() { f.Bias = w.BiasOf(n) }
}

// floatMatrix is a matrix of a filter to pack: its first element in the filter, and the strides of rows and columns.
type floatMatrix struct {
	*gemm.Panels
	memory         []byte
	from, row, col int
}

// addWinograd divides the packing of a filter for blocks of 2×2 pixels, into memory, if there is to be one.
func (w *partition) addWinograd(n *graph.Node, f *Float, memory []byte) {
	if !HasWinograd(w.Graph, n, w.Shapes) {
		return
	}
	k, cols := n.Window().GroupIn, n.Window().GroupOut
	f.Winograd = newWinogradFilter(memory, k, cols)
	if w.stored {
		return
	}
	panels := graph.CeilDiv(cols, simd.PanelCols)
	each := max(1, partElements/(graph.WinogradTerms*k*simd.PanelCols))
	if w.Graph.Values[n.In[1]].Datatype != graph.FP32 { // decoded once
		each = panels
	}
	for from := 0; from < panels; from += each {
		to := min(from+each, panels)
		w.part((to-from)*graph.WinogradTerms*k*simd.PanelCols, func() {
			packWinograd(memory, w.FilterNumbers(n.In[1]), k, cols, from, to)
		})
	}
}

// newWinogradFilter returns a filter in memory, which [packWinograd] sets.
func newWinogradFilter(memory []byte, k, cols int) *winogradFilter {
	f, numbers, size := &winogradFilter{Zeros: make([]float32, cols)}, tensor.View[float32](memory), gemm.Size(k, cols, k)
	for i := range f.Matrices {
		f.Matrices[i] = gemm.New(numbers[i*size:], k, cols, k)
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
	Matrices [graph.WinogradTerms]*gemm.Panels
	Zeros    []float32 // a row
}

// HasWinograd reports whether a node's filter is packed for blocks of 2×2 pixels.
func HasWinograd(g *graph.Graph, n *graph.Node, s []graph.Shape) bool {
	if n.Type.Tag != graph.TagConv2d || !PacksFloats(g, n) {
		return false
	}
	w := n.Windows(s[n.In[0]], s[n.Out[0]])
	return w.Winograd()
}

// winogradElements returns the number of elements of the matrices of such a filter.
func winogradElements(g *graph.Graph, n *graph.Node, s []graph.Shape) int {
	if !HasWinograd(g, n, s) {
		return 0
	}
	k := n.Window().GroupIn
	return graph.WinogradTerms * gemm.Size(k, n.Window().GroupOut, k)
}

// packedFloats returns the size of a node's panels, or taps, and bias. Constants of floats are used
// as they are, except in panels.
func packedFloats(g *graph.Graph, n *graph.Node, s []graph.Shape) int64 {
	bytes := graph.Times(4, PanelElements(g, n, s))
	if n.IsDepthwise() {
		bytes = numbers.NumberBytes(g, n.In[1], s)
	}
	if len(n.In) < 3 || n.In[2] == graph.None || g.Values[n.In[2]].Datatype != graph.FP32 {
		bytes = graph.Plus(bytes, graph.Times(4, s[n.Out[0]].Last()))
	}
	if HasWinograd(g, n, s) {
		bytes = graph.Plus(bytes, graph.Times(4, s[n.Out[0]].Last()))
	}
	return bytes
}

// PackedBytes returns the size of the constants that the Go engine packs.
func PackedBytes(g *graph.Graph, s []graph.Shape) (n int64) {
	for i := range g.Nodes {
		node := &g.Nodes[i]
		switch {
		case !node.Type.Packs:
		case PacksInt8(g, node):
			n = graph.Plus(n, packedInt8(g, node))
		case PacksFloats(g, node):
			n = graph.Plus(n, packedFloats(g, node, s))
		}
	}
	return n
}
