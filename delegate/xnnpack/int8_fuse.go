package xnnpack

import (
	"context"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// maxTableNodes is the largest number of nodes that one table replaces.
const maxTableNodes = 8

// tableNode is a node type of the Go engine only: each output byte is a function of one input byte.
var tableNode = nodeType{tag: tagTable, name: "Table", check: unchecked, shape: sameShape, inPlace: true}

// fuseTables replaces elementwise nodes between bytes and bytes with tables, such as x times its
// sigmoid between conversions. The library's byte functions compute different results, so its
// graphs stay unchanged.
func fuseTables(g *graph, shapes []shape) { fuseTablesBy(g, shapes, (*tableRegion).compute) }

// fusedForGo returns the graph that the Go engine runs, with tables without contents, for estimates. It
// shares the values and the contents of the nodes, or is the graph itself.
func fusedForGo(g *graph, shapes []shape) *graph {
	if !slices.ContainsFunc(g.Nodes, func(n node) bool { return mayFuseForGo(g, n) }) && !mayRearrange(g) {
		return g
	}
	c := *g
	c.Nodes = slices.Clone(g.Nodes)
	fuseTablesBy(&c, shapes, func(*tableRegion, int) (*[256]uint8, error) { return nil, nil })
	fuseFunctions(&c, shapes)
	return &c
}

// mayFuseForGo reports whether a node may become a part of another one, or of a table, in the Go engine.
func mayFuseForGo(g *graph, n node) bool {
	return goTypeOf(&n).elements != nil || n.Type.tag == tagResizeBilinear2D || endsTable(g, n)
}

func fuseTablesBy(g *graph, shapes []shape, compute func(r *tableRegion, out int) (*[256]uint8, error)) {
	if !slices.ContainsFunc(g.Nodes, func(n node) bool { return endsTable(g, n) }) {
		return
	}
	f := newFuser(g, shapes)
	for i := range g.Nodes {
		if endsTable(g, g.Nodes[i]) {
			f.table(&g.Nodes[i], compute)
		}
	}
	dropUnread(g)
	for i := range g.Nodes {
		g.Nodes[i].at = i
	}
}

// endsTable reports whether a node converts numbers to bytes: only such nodes become tables.
func endsTable(g *graph, n node) bool {
	return n.Type.tag == tagConvert && g.Values[n.Out[0]].quantized()
}

// table fuses a conversion to bytes, and the nodes that compute its input from other bytes, into
// one node.
func (f *fuser) table(n *node, compute func(r *tableRegion, out int) (*[256]uint8, error)) {
	r := tableRegion{f: f, from: none, shape: f.shapes[n.Out[0]]}
	if !r.collect(n.In[0]) || r.from == none {
		return
	}
	r.nodes = append(r.nodes, n)
	if t, err := compute(&r, n.Out[0]); err == nil {
		*n = node{Type: &tableNode, In: []int{r.from}, Out: n.Out, Min: -inf, Max: inf, Params: t,
			DebugHandle: n.DebugHandle, index: n.index, at: n.at}
		f.values[r.from].readers++
	}
}

// tableRegion is a set of elementwise nodes that compute floats from the bytes of one value.
type tableRegion struct {
	f     *fuser
	from  int
	shape shape
	nodes []*node
}

// collect adds the nodes that compute a value. It reports whether the value depends only on the
// bytes and on single constants, element by element.
func (r *tableRegion) collect(v int) bool {
	g := r.f.g
	x, n := &g.Values[v], r.f.values[v].producer
	if x.Datatype != fp32 || n == nil || r.f.shapes[v] != r.shape || len(r.nodes) == maxTableNodes {
		return x.Datatype == fp32 && x.isConst() && x.Shape.numel() == 1
	}
	if slices.Contains(r.nodes, n) {
		return true
	}
	from := n.In[0]
	switch {
	case n.Type.tag == tagConvert && g.Values[from].quantized() && (r.from == none || r.from == from):
		r.from = from
	case n.Type.isIn(unaryNodes) && n.Type.tag != tagConvert || n.Type.isIn(binaryNodes):
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

// isIn reports whether the type is in a list.
func (t *nodeType) isIn(list []nodeType) bool {
	return slices.ContainsFunc(list, func(u nodeType) bool { return u.tag == t.tag && u.name == t.name })
}

// compute runs the region's nodes on all 256 bytes and returns the results for value out.
func (r *tableRegion) compute(out int) (*[256]uint8, error) {
	g, index := r.graph()
	m := &goImage{compilation: &compilation{graph: g}}
	var args []*tensor.Value
	for i := range g.Values {
		m.shapes = append(m.shapes, g.Values[i].Shape)
	}
	for i, v := range []int{r.from, out} {
		x := &g.Values[index[v]]
		x.Arg, x.Input, x.Output = i, i == 0, i == 1
		g.Args = append(g.Args, index[v])
		t := tensor.New(x.Datatype.info().tensor, 256)
		for k := range t.Data {
			t.Data[k] = uint8(k)
		}
		value := tensor.TensorValue(t)
		args = append(args, &value)
	}
	g.Inputs = 1
	err := newReference(m, delegate.Instance{}).Execute(context.Background(), args)
	return (*[256]uint8)(args[1].Tensor.Data), err
}

// graph returns the region's nodes on 256 elements, and the index of each value in that graph.
func (r *tableRegion) graph() (g *graph, index map[int]int) {
	g, index = &graph{}, make(map[int]int)
	place := func(list []int) (out []int) {
		for _, v := range list {
			if _, ok := index[v]; !ok {
				x := r.f.g.Values[v]
				x.Arg, x.Input, x.Output = none, false, false
				if x.Shape = shapeOf(256); x.isConst() {
					x.Shape = shapeOf(1)
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
		copied.In, copied.Out, copied.at = place(n.In), place(n.Out), i
		g.Nodes = append(g.Nodes, copied)
	}
	return g, index
}

// dropUnread removes elementwise nodes whose outputs are no longer read.
func dropUnread(g *graph) {
	readers := g.readers()
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		if !n.Type.isIn(unaryNodes) && !n.Type.isIn(binaryNodes) || readers[n.Out[0]] > 0 || g.Values[n.Out[0]].Arg != none {
			continue
		}
		for _, v := range n.In {
			readers[v]--
		}
		n.Out = nil
	}
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n node) bool { return len(n.Out) == 0 })
}

// lookUp computes a node from bytes to bytes.
func (e *reference) lookUp(n *node, table *[256]uint8) {
	count := e.shapes[n.Out[0]].numel()
	e.byteLoop = int8Elements{op: lookUp, table: table, in: e.bytes[n.In[0]][:count], out: e.bytes[n.Out[0]][:count]}
	e.Parallel(count, elementsPerRange, &e.byteLoop)
}
