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
