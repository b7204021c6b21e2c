package graph

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// maxTableNodes is the largest number of nodes that one table replaces.
const maxTableNodes = 8

// tableNode is a node type of the Go engine only: each output byte is a function of one input byte.
var tableNode = NodeType{Tag: TagTable, Name: "Table", Check: unchecked, Shape: sameShape, InPlace: true}

// fuseTables replaces elementwise nodes between bytes and bytes with tables, such as x times its
// sigmoid between conversions. The library's byte functions compute different results, so its
// graphs stay unchanged.
func fuseTables(g *Graph, shapes []Shape, evaluate Evaluate) {
	if !slices.ContainsFunc(g.Nodes, func(n Node) bool { return endsTable(g, n) }) {
		return
	}
	f := newFuser(g, shapes)
	for i := range g.Nodes {
		if endsTable(g, g.Nodes[i]) {
			f.table(&g.Nodes[i], evaluate)
		}
	}
	dropUnused(g)
	g.removeMerged()
}

// endsTable reports whether a node converts numbers to bytes: only such nodes become tables.
func endsTable(g *Graph, n Node) bool {
	return n.Type.Tag == TagConvert && g.Values[n.Out[0]].Quantized()
}

// table fuses a conversion to bytes, and the nodes that compute its input from other bytes, into
// one node.
func (f *fuser) table(n *Node, evaluate Evaluate) {
	r := tableRegion{f: f, from: None, shape: f.shapes[n.Out[0]]}
	if !r.collect(n.In[0]) || r.from == None {
		return
	}
	r.nodes = append(r.nodes, n)
	if t, err := r.compute(n.Out[0], evaluate); err == nil {
		*n = Node{Type: &tableNode, In: []int{r.from}, Out: n.Out, Min: -Inf, Max: Inf, Params: t,
			DebugHandle: n.DebugHandle, Index: n.Index, At: n.At}
		f.values[r.from].readers++
	}
}

// tableRegion is a set of elementwise nodes that compute floats from the bytes of one value.
type tableRegion struct {
	f     *fuser
	from  int
	shape Shape
	nodes []*Node
}

// collect adds the nodes that compute a value. It reports whether the value depends only on the
// bytes and on single constants, element by element.
func (r *tableRegion) collect(v int) bool {
	g := r.f.g
	x, n := &g.Values[v], r.f.values[v].producer
	if x.Datatype != FP32 || n == nil || r.f.shapes[v] != r.shape || len(r.nodes) == maxTableNodes {
		return x.Datatype == FP32 && x.IsConst() && x.Shape.Numel() == 1
	}
	if slices.Contains(r.nodes, n) {
		return true
	}
	from := n.In[0]
	switch {
	case n.Type.Tag == TagConvert && g.Values[from].Quantized() && (r.from == None || r.from == from):
		r.from = from
	case n.Type.IsIn(UnaryNodes) && n.Type.Tag != TagConvert || n.Type.IsIn(BinaryNodes):
		for _, in := range n.In {
			if !r.collect(in) {
				return false
			}
		}
	default:
		return false
	}
	r.nodes = append(r.nodes, n)
	return true
}

// Evaluate runs a graph whose values have their declared shapes.
type Evaluate func(g *Graph, args []*tensor.Value) error

// compute runs the region's nodes on all 256 bytes and returns the results for value out.
func (r *tableRegion) compute(out int, evaluate Evaluate) (*[256]uint8, error) {
	g, index := r.graph()
	var args []*tensor.Value
	for i, v := range []int{r.from, out} {
		x := &g.Values[index[v]]
		x.Arg, x.Input, x.Output = i, i == 0, i == 1
		g.Args = append(g.Args, index[v])
		t := tensor.New(x.Datatype.Info().Tensor, 256)
		for k := range t.Data {
			t.Data[k] = uint8(k)
		}
		value := tensor.TensorValue(t)
		args = append(args, &value)
	}
	g.Inputs = 1
	err := evaluate(g, args)
	return (*[256]uint8)(args[1].Tensor.Data), err
}

// graph returns the region's nodes on 256 elements, and the index of each value in that graph.
func (r *tableRegion) graph() (g *Graph, index map[int]int) {
	g, index = &Graph{}, make(map[int]int)
	place := func(list []int) (out []int) {
		for _, v := range list {
			if _, ok := index[v]; !ok {
				x := r.f.g.Values[v]
				x.Arg, x.Input, x.Output = None, false, false
				if x.Shape = ShapeOf(256); x.IsConst() {
					x.Shape = ShapeOf(1)
				}
				index[v] = len(g.Values)
				g.Values = append(g.Values, x)
			}
			out = append(out, index[v])
		}
		return out
	}
	for i, n := range r.nodes {
		copied := *n
		copied.In, copied.Out, copied.At = place(n.In), place(n.Out), i
		g.Nodes = append(g.Nodes, copied)
	}
	return g, index
}

// dropUnused removes elementwise nodes whose outputs are no longer read.
func dropUnused(g *Graph) {
	readers := g.Readers()
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		if !n.Type.IsIn(UnaryNodes) && !n.Type.IsIn(BinaryNodes) || readers[n.Out[0]] > 0 || g.Values[n.Out[0]].Arg != None {
			continue
		}
		for _, v := range n.In {
			readers[v]--
		}
		n.Out = nil
	}
}
