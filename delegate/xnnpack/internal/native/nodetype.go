package native

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// nodeType says how the library runs one kind of node.
type nodeType struct {
	// Define adds the node to the library's subgraph; nil if the library has no such node.
	define func(b *builder, n *graph.Node) call
	// Rule checks what the library requires to be safe; nil if it supports all that the node's check accepts.
	rule rule
	// bySize is set if Rule depends on sizes: a call may be rejected where others are not.
	bySize bool
	// tables returns the bytes that the library allocates for the node, in addition to its values
	// and descriptors, and keeps; nil for none.
	tables func(g *graph.Graph, n *graph.Node, s []graph.Shape) int64
	// scratch returns the bytes of the workspace that the node needs while it runs; nil for none.
	scratch func(g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) int64
	// layout returns, as a number, the part of the shapes that must not change during the lifetime
	// of a library runtime; nil if all shapes may change.
	layout func(n *graph.Node, s []graph.Shape) int
	// perInput marks nodes for which the library has an operator for each input; clampsApart those
	// whose bounds are another node of the library; viaFloats those that compute on float32 if they are of bytes.
	perInput, clampsApart, viaFloats bool
}

// Types is the library's table, by tag. The rows refer to it, so init fills it.
var types [256]nodeType

// typeOf returns the row of the node's type.
func typeOf(n *graph.Node) *nodeType { return &types[n.Type.Tag] }

// The library's nodes of bytes multiply by ratios of scales, slopes and weights of pixels that are rounded to 8 or 11 bits:
// one element in 20 is a step beside that of PyTorch and of the Go engine. With halves, scales are rounded to halves. Such
// nodes are computed on float32, between two conversions, which are exact.

// isViaFloats reports whether a node is computed on float32.
func isViaFloats(g *graph.Graph, n *graph.Node) bool {
	x, y := g.Values[n.In[0]].Datatype, g.Values[n.Out[0]].Datatype
	bytes := x.Info().Quant == graph.PerTensor || y.Info().Quant == graph.PerTensor
	return typeOf(n).viaFloats && bytes && x != graph.FP32 && y != graph.FP32
}
