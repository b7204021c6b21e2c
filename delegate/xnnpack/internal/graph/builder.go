package graph

import "github.com/etrun-go/etrun/cbindings/xnn"

// Builder builds a graph, value by value and node by node. finish checks it by the same rules as
// a payload's graph.
type Builder struct {
	Graph *Graph
}

// NewBuilder returns a builder of an empty graph.
func NewBuilder() Builder { return Builder{&Graph{Version: Identifiers[0]}} }

// Value adds an intermediate value, which externals may make an argument, and returns its index. It has many callers, and is large.
//
//go:noinline
func (b *Builder) Value(d Datatype, s Shape, q Quant) int {
	b.Graph.Values = append(b.Graph.Values, Value{ID: uint32(len(b.Graph.Values)), Datatype: d, Shape: s, Arg: None, Quant: q})
	return len(b.Graph.Values) - 1
}

// Constant adds a constant and returns its index. It does not copy data.
func (b *Builder) Constant(d Datatype, s Shape, q Quant, data []byte) int {
	v := b.Value(d, s, q)
	b.Graph.Values[v].Data = data
	return v
}

// Node adds a node without bounds. Its parameters are zero, and must be set before the next node is
// added, which may invalidate the pointer.
func (b *Builder) Node(t *NodeType, in []int, out ...int) *Node {
	n := Node{Type: t, In: in, Out: out, Min: -Inf, Max: Inf, Index: len(b.Graph.Nodes)}
	t.SetParams(&n)
	b.Graph.Nodes = append(b.Graph.Nodes, n)
	return &b.Graph.Nodes[len(b.Graph.Nodes)-1]
}

// Externals sets the arguments of the call: inputs, then outputs.
func (b *Builder) Externals(inputs, outputs []int) {
	g := b.Graph
	for _, list := range [2][]int{inputs, outputs} {
		for _, v := range list {
			g.Values[v].Arg = len(g.Args)
			g.Args = append(g.Args, v)
		}
	}
	for _, v := range inputs {
		g.Values[v].Input = true
	}
	for _, v := range outputs {
		g.Values[v].Output = true
	}
	g.Inputs = len(inputs)
}

// Finish checks and returns the graph. After an error the graph must not be used.
func (b *Builder) Finish() (*Graph, error) {
	g := b.Graph
	if len(g.Args) > MaxArgs {
		return nil, PayloadError("", "%d arguments, at most %d", len(g.Args), MaxArgs)
	}
	for v := range g.Values {
		if err := g.Values[v].check(); err != nil {
			return nil, err
		}
		if err := g.checkArg(v); err != nil {
			return nil, err
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if err := g.checkOperands(n); err != nil {
			return nil, InPayload(err)
		}
		if err := n.checkBounds(); err != nil {
			return nil, InPayload(err)
		}
		if err := n.Type.Check(g, n); err != nil {
			return nil, InPayload(err)
		}
	}
	return g, g.checkOrder()
}

// checkOperands requires that operands are values of the graph. Only the optional one may be absent.
func (g *Graph) checkOperands(n *Node) error {
	for i, v := range n.In {
		if v == None && n.Type.optional == i && i > 0 {
			continue
		}
		if v < 0 || v >= len(g.Values) {
			return n.fault("input %d: no value has number %d", i, v)
		}
	}
	for i, v := range n.Out {
		if v < 0 || v >= len(g.Values) {
			return n.fault("output %d: no value has number %d", i, v)
		}
	}
	return nil
}

// checkArg requires that a value's Arg and Input are consistent with the graph's arguments, and that
// arguments are not constants.
func (g *Graph) checkArg(v int) error {
	x := &g.Values[v]
	if x.Arg == None {
		return nil
	}
	place := "value " + itoa(x.ID)
	switch {
	case x.Arg < 0 || x.Arg >= len(g.Args) || g.Args[x.Arg] != v || x.Input != (x.Arg < g.Inputs):
		return PayloadError(place, "external id %d of %d, of which %d are inputs", x.Arg, len(g.Args), g.Inputs)
	case x.IsConst():
		return PayloadError(place, "constant that is an argument of the call too")
	}
	return nil
}

// check checks a value by the same rules as the reader of payloads.
func (v *Value) check() error {
	place := "value " + itoa(v.ID)
	switch {
	case !v.Datatype.Valid():
		return Unsupported(place, "datatype %d", v.Datatype)
	case v.Shape.Rank < 1 || v.Shape.Rank > xnn.MaxDims:
		return Unsupported(place, "%d dimensions, want 1 to %d", v.Shape.Rank, xnn.MaxDims)
	}
	if err := v.Shape.Check(); err != nil {
		return PayloadError(place, "%w", err)
	}
	if want := v.Datatype.Bytes(v.Shape); v.IsConst() && len(v.Data) != want {
		return PayloadError(place, "constant of %d bytes, want %d", len(v.Data), want)
	}
	switch v.Datatype.Info().Quant {
	case PerTensor:
		return v.CheckPerTensor(place)
	case PerChannel:
		return v.checkPerChannel(place)
	case PerToken:
		return v.checkPerToken(place)
	case PerGroup:
		return v.checkPerGroup(place)
	}
	return nil
}
