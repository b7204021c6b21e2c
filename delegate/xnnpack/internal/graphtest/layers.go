package graphtest

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// TwoLayers returns a graph of three fully connected nodes with filters of 32, 64 and 4 KiB. With
// shared, a further node uses the second filter.
func TwoLayers(shared bool) *graph.Graph {
	m := NewMaker(6)
	x := m.Input(graph.FP32, 3, 64)
	a, b, c := m.Constant(graph.FP32, 0, 128, 64), m.Constant(graph.FP32, 0, 128, 128), m.Constant(graph.FP32, 0, 8, 128)
	u, v, y := m.Value(graph.FP32, 3, 128), m.Value(graph.FP32, 3, 128), m.Value(graph.FP32, 3, 8)
	m.Node("FullyConnected", []int{x, a, graph.None}, []int{u})
	m.Node("FullyConnected", []int{u, b, graph.None}, []int{v})
	m.Node("FullyConnected", []int{v, c, graph.None}, []int{y})
	outputs := []int{y}
	if shared {
		w := m.Value(graph.FP32, 3, 128)
		m.Node("FullyConnected", []int{v, b, graph.None}, []int{w})
		outputs = append(outputs, w)
	}
	return m.Done(outputs...)
}

// ConvolutionGraph returns one convolution: input [1,5,5,3], filter [4,3,3,3], bias [4].
func ConvolutionGraph() *graph.Graph {
	m := NewMaker(3)
	x, f, b := m.Input(graph.FP32, 1, 5, 5, 3), m.Constant(graph.FP32, 0, 4, 3, 3, 3), m.Constant(graph.FP32, 0, 4)
	y := m.Value(graph.FP32, 1, 3, 3, 4)
	m.Node("Conv2d", []int{x, f, b}, []int{y}, WithWindow(graph.Window{KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1,
		DilationH: 1, DilationW: 1, Groups: 1, GroupIn: 3, GroupOut: 4}))
	return m.Done(y)
}
