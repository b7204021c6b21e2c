package goengine

import (
	"context"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// maxTableNodes is the largest number of nodes that one table replaces.
const maxTableNodes = 8

// TableNode is a node type of the Go engine only: each output byte is a function of one input byte.
var TableNode = graph.NodeType{Tag: graph.TagTable, Name: "Table", Check: graph.Unchecked, Shape: graph.SameShape, InPlace: true}

// fuseTables replaces elementwise nodes between bytes and bytes with tables, such as x times its
// sigmoid between conversions. The library's byte functions compute different results, so its
// graphs stay unchanged.
func fuseTables(g *graph.Graph, shapes []graph.Shape) {
	if !slices.ContainsFunc(g.Nodes, func(n graph.Node) bool { return endsTable(g, n) }) {
		return
	}
	f := newFuser(g, shapes)
	for i := range g.Nodes {
		if endsTable(g, g.Nodes[i]) {
			f.table(&g.Nodes[i])
		}
	}
	dropUnused(g)
	for i := range g.Nodes {
		g.Nodes[i].At = i
	}
}

// endsTable reports whether a node converts numbers to bytes: only such nodes become tables.
func endsTable(g *graph.Graph, n graph.Node) bool {
	return n.Type.Tag == graph.TagConvert && g.Values[n.Out[0]].Quantized()
}

// table fuses a conversion to bytes, and the nodes that compute its input from other bytes, into
// one node.
func (f *fuser) table(n *graph.Node) {
	r := tableRegion{f: f, from: graph.None, shape: f.shapes[n.Out[0]]}
	if !r.collect(n.In[0]) || r.from == graph.None {
		return
	}
	r.nodes = append(r.nodes, n)
	if t, err := r.compute(n.Out[0]); err == nil {
		*n = graph.Node{Type: &TableNode, In: []int{r.from}, Out: n.Out, Min: -graph.Inf, Max: graph.Inf, Params: t,
			DebugHandle: n.DebugHandle, Index: n.Index, At: n.At}
		f.values[r.from].readers++
	}
}

// tableRegion is a set of elementwise nodes that compute floats from the bytes of one value.
type tableRegion struct {
	f     *fuser
	from  int
	shape graph.Shape
	nodes []*graph.Node
}

// collect adds the nodes that compute a value. It reports whether the value depends only on the
// bytes and on single constants, element by element.
func (r *tableRegion) collect(v int) bool {
	g := r.f.g
	x, n := &g.Values[v], r.f.values[v].producer
	if x.Datatype != graph.FP32 || n == nil || r.f.shapes[v] != r.shape || len(r.nodes) == maxTableNodes {
		return x.Datatype == graph.FP32 && x.IsConst() && x.Shape.Numel() == 1
	}
	if slices.Contains(r.nodes, n) {
		return true
	}
	from := n.In[0]
	switch {
	case n.Type.Tag == graph.TagConvert && g.Values[from].Quantized() && (r.from == graph.None || r.from == from):
		r.from = from
	case n.Type.IsIn(graph.UnaryNodes) && n.Type.Tag != graph.TagConvert || n.Type.IsIn(graph.BinaryNodes):
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

// compute runs the region's nodes on all 256 bytes and returns the results for value out.
func (r *tableRegion) compute(out int) (*[256]uint8, error) {
	g, index := r.graph()
	m := &Image{Compilation: &graph.Compilation{Graph: g}}
	var args []*tensor.Value
	for i := range g.Values {
		m.Shapes = append(m.Shapes, g.Values[i].Shape)
	}
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
	err := NewUnit(m, delegate.Instance{}).Execute(context.Background(), args)
	return (*[256]uint8)(args[1].Tensor.Data), err
}

// graph returns the region's nodes on 256 elements, and the index of each value in that graph.
func (r *tableRegion) graph() (g *graph.Graph, index map[int]int) {
	g, index = &graph.Graph{}, make(map[int]int)
	place := func(list []int) (out []int) {
		for _, v := range list {
			if _, ok := index[v]; !ok {
				x := r.f.g.Values[v]
				x.Arg, x.Input, x.Output = graph.None, false, false
				if x.Shape = graph.ShapeOf(256); x.IsConst() {
					x.Shape = graph.ShapeOf(1)
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
func dropUnused(g *graph.Graph) {
	readers := g.Readers()
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		if !n.Type.IsIn(graph.UnaryNodes) && !n.Type.IsIn(graph.BinaryNodes) || readers[n.Out[0]] > 0 || g.Values[n.Out[0]].Arg != graph.None {
			continue
		}
		for _, v := range n.In {
			readers[v]--
		}
		n.Out = nil
	}
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n graph.Node) bool { return len(n.Out) == 0 })
}
