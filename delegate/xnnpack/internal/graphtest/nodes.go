package graphtest

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Given adds a constant with a tensor's data.
func (m *Maker) Given(t *tensor.Tensor, dims ...int) int {
	v := m.Value(graph.FP32, dims...)
	m.Graph.Values[v].Data = t.Data
	return v
}

// TransposedLike adds a transpose of v with v's datatype and quantization.
func (m *Maker) TransposedLike(v int, perm []int) int {
	x := &m.Graph.Values[v]
	y := m.Value(x.Datatype, x.Shape.Permuted(perm).Dims()...)
	m.Graph.Values[y].Quant = m.Graph.Values[v].Quant
	m.Node("StaticTranspose", []int{v}, []int{y}, func(n *graph.Node) { *graph.Params[graph.TransposeParams](n) = graph.TransposeParams{Perm: perm} })
	return y
}

// Sigmoid adds a Sigmoid node that reads x and returns its output.
func (m *Maker) Sigmoid(x int) int {
	v := m.Value(graph.FP32, m.Graph.Values[x].Shape.Dims()...)
	m.Node("Sigmoid", []int{x}, []int{v})
	return v
}
