package graph

import "slices"

// FusedForGo returns the graph, and the shapes of its values, as the Go engine runs it, with fewer passes over memory. The library has no such nodes, and its byte
// functions compute other results: its graph, g, stays unchanged. shapes are those at the declared sizes; evaluate runs a graph, for
// tables.
//
//   - A transposed convolution of bytes without overlaps becomes a product.
//   - Elementwise nodes between bytes become a table.
//   - A transpose that undoes another one is dropped with it.
//   - A product of a value and its sigmoid becomes one node.
//   - A function of each element of a product or convolution is applied to parts of it as soon as they
//     are computed.
//   - A resize and a transpose of its result become one node.
//   - Concatenations, transposes and reshapes one after the other become one node.
func (g *Graph) FusedForGo(shapes []Shape, evaluate Evaluate) (*Graph, []Shape) {
	g = g.Snapshot()
	shapes = g.splitPhases(shapes)
	fuseTables(g, shapes, evaluate)
	f := newFuser(g, shapes)
	f.merge((*fuser).untransposed, (*fuser).silu, (*fuser).function, (*fuser).planes, (*fuser).rearrange)
	g.removeMerged()
	return g, shapes
}

// siluNode is a node type of the Go engine only: elements multiplied by their sigmoids.
var siluNode = NodeType{Tag: TagSiLU, Name: "SiLU", Check: unchecked, Shape: sameShape, InPlace: true,
	Cost: transcendental}

// silu replaces a product of a value and its sigmoid.
func (f *fuser) silu(n *Node) {
	if n.Type.Tag != TagMultiply || n.Min != -Inf || n.Max != Inf {
		return
	}
	for i, v := range n.In {
		x, s := n.In[1-i], f.values[v].producer
		if s == nil || s.Type.Tag != TagSigmoid || s.In[0] != x || !f.between(v) || f.g.Values[x].Datatype != FP32 ||
			f.g.Values[n.Out[0]].Datatype != FP32 {
			continue
		}
		n.Type, n.In, n.Params = &siluNode, []int{x}, nil
		s.Out = nil
		f.values[x].readers--
		f.values[x].reader = n
		return
	}
}

// function merges a function of each element into the product or convolution before it.
func (f *fuser) function(n *Node) {
	if !n.Type.isFunction() || !f.between(n.In[0]) {
		return
	}
	p := f.values[n.In[0]].producer
	if p == nil || p.Then != nil || !p.Type.appliesThen() || !f.all(FP32, p.In[0], p.Out[0], n.Out[0]) {
		return
	}
	then := *n
	p.Then, p.Out = &then, n.Out
	f.values[n.Out[0]].producer = p
	n.Out = nil
}

// isFunction reports whether the nodes compute a function of each float.
func (t *NodeType) isFunction() bool {
	return t.Tag != TagClamp && t.Tag != TagConvert && (t.Tag == TagSiLU || t.IsIn(UnaryNodes))
}

// appliesThen reports whether the Go engine's loops over floats apply [Node.Then].
func (t *NodeType) appliesThen() bool {
	return t.Tag == TagConv2d || t.Tag == TagDepthwiseConv2d || t.Tag == TagFullyConnected
}

// all reports whether values have a datatype.
func (f *fuser) all(d Datatype, values ...int) bool {
	return !slices.ContainsFunc(values, func(v int) bool { return f.g.Values[v].Datatype != d })
}

// resizePlanesNode is a node type of the Go engine only: a resize whose output is transposed to
// [N, C, H, W], without a copy in between.
var resizePlanesNode = NodeType{Tag: TagResizePlanes, Name: "ResizeBilinearToPlanes", Check: unchecked,
	Params: newParams[ResizeParams],
	Shape: func(g *Graph, n *Node, s []Shape) error {
		if err := wantRank(g, n, n.In[0], s, 4); err != nil {
			return err
		}
		s[n.Out[0]] = Params[ResizeParams](n).Shape(s[n.In[0]]).Permuted(toChannelsFirst)
		return nil
	},
	Cost: func(g *Graph, n *Node, s []Shape) int64 { return Times(4, s[n.Out[0]].Numel()) }}

// planes merges a transpose into the resize before it.
func (f *fuser) planes(n *Node) {
	if !n.IsTranspose(toChannelsFirst) || !f.between(n.In[0]) {
		return
	}
	p := f.values[n.In[0]].producer
	if p == nil || p.Type.Tag != TagResizeBilinear2D || !f.all(FP32, p.In[0], n.Out[0]) {
		return
	}
	p.Type, p.Out = &resizePlanesNode, n.Out
	f.values[n.Out[0]].producer = p
	n.Out = nil
}
