package goengine

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
)

// SiLUNode is a node type of the Go engine only: elements multiplied by their sigmoids.
var SiLUNode = graph.NodeType{Tag: graph.TagSiLU, Name: "SiLU", Check: graph.Unchecked, Shape: graph.SameShape, InPlace: true,
	Cost: graph.Transcendental}

// silu replaces a product of a value and its sigmoid.
func (f *fuser) silu(n *graph.Node) {
	if n.Type.Tag != graph.TagMultiply || n.Min != -graph.Inf || n.Max != graph.Inf {
		return
	}
	for i, v := range n.In {
		x, s := n.In[1-i], f.values[v].producer
		if s == nil || s.Type.Tag != graph.TagSigmoid || s.In[0] != x || !f.between(v) || f.g.Values[x].Datatype != graph.FP32 ||
			f.g.Values[n.Out[0]].Datatype != graph.FP32 {
			continue
		}
		n.Type, n.In, n.Params = &SiLUNode, []int{x}, nil
		s.Out = nil
		f.values[x].readers--
		f.values[x].reader = n
		return
	}
}

// function merges a function of each element into the product or convolution before it.
func (f *fuser) function(n *graph.Node) {
	if typeOf(n).elements == nil || !f.between(n.In[0]) {
		return
	}
	p := f.values[n.In[0]].producer
	if p == nil || p.Then != nil || !typeOf(p).finishes || !f.all(graph.FP32, p.In[0], p.Out[0], n.Out[0]) {
		return
	}
	then := *n
	p.Then, p.Out = &then, n.Out
	f.values[n.Out[0]].producer = p
	n.Out = nil
}

// all reports whether values have a datatype.
func (f *fuser) all(d graph.Datatype, values ...int) bool {
	return !slices.ContainsFunc(values, func(v int) bool { return f.g.Values[v].Datatype != d })
}

// finishNode applies the function that is merged into a node, if any, to columns [from, from+cols) of
// rows of ld elements.
func finishNode(n *graph.Node, y []float32, rows, ld, from, cols int) {
	if n.Then == nil || cols <= 0 {
		return
	}
	if cols == ld {
		typeOf(n.Then).elements(n.Then, y[:rows*ld], y)
		return
	}
	for i := range rows {
		row := y[i*ld+from:][:cols]
		typeOf(n.Then).elements(n.Then, row, row)
	}
}

// finishPanels does that for the columns of panels [from, to) of a matrix.
func finishPanels(n *graph.Node, m *gemm.Panels, y []float32, rows, ld, from, to int) {
	from *= simd.PanelCols
	finishNode(n, y, rows, ld, from, min(to*simd.PanelCols, m.N)-from)
}
