package xnnpack

import (
	"github.com/etrun-go/etrun/cbindings/xnn"
)

// graphBuilder builds a graph, value by value and node by node. finish checks it by the same rules as
// a payload's graph.
type graphBuilder struct {
	g *graph
}

func newGraphBuilder() graphBuilder { return graphBuilder{&graph{Version: identifiers[0]}} }

// value adds an intermediate value, which externals may make an argument, and returns its index.
func (b *graphBuilder) value(d datatype, s shape, q quant) int {
	b.g.Values = append(b.g.Values, value{ID: uint32(len(b.g.Values)), Datatype: d, Shape: s, Arg: none, Quant: q})
	return len(b.g.Values) - 1
}

// constant adds a constant and returns its index. It does not copy data.
func (b *graphBuilder) constant(d datatype, s shape, q quant, data []byte) int {
	v := b.value(d, s, q)
	b.g.Values[v].Data = data
	return v
}

// node adds a node without bounds. Its parameters are zero, and must be set before the next node is
// added, which may invalidate the pointer.
func (b *graphBuilder) node(t *nodeType, in []int, out ...int) *node {
	n := node{Type: t, In: in, Out: out, Min: -inf, Max: inf, index: len(b.g.Nodes)}
	t.setParams(&n)
	b.g.Nodes = append(b.g.Nodes, n)
	return &b.g.Nodes[len(b.g.Nodes)-1]
}

// externals sets the arguments of the call: inputs, then outputs.
func (b *graphBuilder) externals(inputs, outputs []int) {
	g := b.g
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

// finish checks and returns the graph. After an error the graph must not be used.
func (b *graphBuilder) finish() (*graph, error) {
	g := b.g
	if len(g.Args) > maxArgs {
		return nil, payloadError("", "%d arguments, at most %d", len(g.Args), maxArgs)
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
			return nil, inPayload(err)
		}
		if err := n.checkBounds(); err != nil {
			return nil, inPayload(err)
		}
		if err := n.Type.check(g, n); err != nil {
			return nil, inPayload(err)
		}
	}
	return g, g.checkOrder()
}

// checkOperands requires that operands are values of the graph. Only the optional one may be absent.
func (g *graph) checkOperands(n *node) error {
	for i, v := range n.In {
		if v == none && n.Type.optional == i && i > 0 {
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
func (g *graph) checkArg(v int) error {
	x := &g.Values[v]
	if x.Arg == none {
		return nil
	}
	place := "value " + itoa(x.ID)
	switch {
	case x.Arg < 0 || x.Arg >= len(g.Args) || g.Args[x.Arg] != v || x.Input != (x.Arg < g.Inputs):
		return payloadError(place, "external id %d of %d, of which %d are inputs", x.Arg, len(g.Args), g.Inputs)
	case x.isConst():
		return payloadError(place, "constant that is an argument of the call too")
	}
	return nil
}

// check checks a value by the same rules as the reader of payloads.
func (v *value) check() error {
	place := "value " + itoa(v.ID)
	switch {
	case !v.Datatype.Valid():
		return unsupported(place, "datatype %d", v.Datatype)
	case v.Shape.rank < 1 || v.Shape.rank > xnn.MaxDims:
		return unsupported(place, "%d dimensions, want 1 to %d", v.Shape.rank, xnn.MaxDims)
	}
	if err := v.Shape.check(); err != nil {
		return payloadError(place, "%w", err)
	}
	if want := v.Datatype.bytes(v.Shape); v.isConst() && len(v.Data) != want {
		return payloadError(place, "constant of %d bytes, want %d", len(v.Data), want)
	}
	switch v.Datatype.info().quant {
	case perTensor:
		return v.checkPerTensor(place)
	case perChannel:
		return v.checkPerChannel(place)
	case perToken:
		return v.checkPerToken(place)
	case perGroup:
		return v.checkPerGroup(place)
	}
	return nil
}
