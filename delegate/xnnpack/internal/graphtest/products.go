package graphtest

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// ProductSample makes a graph of a fully connected node.
func (m *Maker) ProductSample(types graph.Weighted, rows, k, cols int) *graph.Graph {
	m.Lo, m.Hi = -1, 1
	x := m.Activations(types, 1, rows, k)
	filter, bias := m.Constant(types.Filter, 0, cols, k), m.Constant(types.Bias, 0, cols)
	y := m.Value(types.Out, rows, cols)
	m.Node("FullyConnected", []int{x, filter, bias}, []int{y})
	return m.Done(y)
}

// PixelSample returns a convolution of two images of one line.
func (m *Maker) PixelSample(kind string, types graph.Weighted, width, channels, out, side int) *graph.Graph {
	m.Lo, m.Hi = -1, 1
	x := m.Activations(types, 3, 2, 1, width, channels)
	filter, bias := m.Constant(types.Filter, 0, out, side, side, channels), m.Constant(types.Bias, 0, out)
	y := m.Value(types.Out, 2, 1, 1, out)
	w := graph.Window{KernelH: side, KernelW: side, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Groups: 1, GroupIn: channels, GroupOut: out}
	w.Top, w.Left, w.Bottom, w.Right = side/2, side/2, side/2, side/2
	m.Node(kind, []int{x, filter, bias}, []int{y}, WithWindow(w))
	return m.Fix(y)
}

// Activations returns an input of a weighted node, quantized at run time along the last dimensions if
// the node takes such values.
func (m *Maker) Activations(types graph.Weighted, dynamic int, dims ...int) int {
	if types.In == graph.QDInt8 {
		return m.Quantized(m.Input(types.Out, dims...), dynamic)
	}
	return m.Input(types.In, dims...)
}
