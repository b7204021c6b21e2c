package xnnpack

import (
	"context"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var _ delegate.Merger = Backend{}

// opened is a payload that was read and checked. Its graph can become a part of another one.
type opened struct {
	backend Backend
	payload *delegate.Payload
	graph   *graph // as read; nobody changes it
	takes   time.Duration
}

// Open implements delegate.Merger.
func (b Backend) Open(p *delegate.Payload) (delegate.Opened, error) {
	g, err := b.read(p)
	if err != nil {
		return nil, err
	}
	return &opened{backend: b, payload: p, graph: g}, nil
}

// Inputs implements delegate.Opened.
func (o *opened) Inputs() int { return o.graph.Inputs }

// Compile implements delegate.Opened.
func (o *opened) Compile(ctx context.Context) (delegate.Image, error) {
	return o.backend.Compile(ctx, o.payload)
}

// Estimate implements delegate.Opened.
func (o *opened) Estimate() time.Duration {
	if o.takes == 0 {
		o.takes = o.estimate()
	}
	return o.takes
}

// estimate is that of the engine that Compile would choose. Graphs with faults take as long
// as nothing: they are not merged.
func (o *opened) estimate() time.Duration {
	g := o.graph.snapshot()
	g.prune()
	s, err := g.declared()
	if err != nil {
		return 0
	}
	g.fuse(s)
	return o.backend.estimates(g, s).of(o.backend)
}

// mergeable says why the graph cannot be a part of another one. What its repair would report,
// or put elsewhere, stays a payload.
func (o *opened) mergeable() error {
	g := o.graph
	if len(g.mended) > 0 {
		return refuse("a payload with faults of its exporter")
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; g.mend && n.Type.convolution && g.Values[n.In[0]].Datatype == qdint8 {
			return refuse("a payload with convolutions that are quantized at run time")
		}
	}
	return nil
}

// merge adds the nodes of a payload. Its arguments are values that the lowering has or makes;
// all else gets values of its own, and constants keep their bytes.
func (c *lowerCall) merge() error {
	o, ok := c.call.Payload.(*opened)
	if !ok {
		return refuse("a payload of another backend")
	}
	if err := o.mergeable(); err != nil {
		return err
	}
	g := o.graph
	if len(c.call.Args) != len(g.Args) {
		return refuse("%d arguments, the payload has %d", len(c.call.Args), len(g.Args))
	}
	at := make([]int, len(g.Values))
	for v := range at {
		at[v] = none
	}
	for k, v := range g.Args[:g.Inputs] {
		t := c.call.Args[k]
		order, err := c.fitsArgument(t, &g.Values[v])
		if err != nil {
			return err
		}
		at[v] = c.lowering.value(t, order)
	}
	for v := range g.Values {
		if at[v] == none {
			at[v] = c.merged(&g.Values[v])
		}
	}
	for i := range g.Nodes {
		c.mergeNode(&g.Nodes[i], at)
	}
	for k, v := range g.Args[g.Inputs:] {
		t := c.call.Args[g.Inputs+k]
		order, err := c.fitsArgument(t, &g.Values[v])
		if err != nil {
			return err
		}
		c.holds(t).at[order] = at[v]
	}
	return nil
}

// fitsArgument wants a tensor to be what the payload says of its argument, and gives its
// memory order.
func (c *lowerCall) fitsArgument(t int, want *value) (order, error) {
	x := &c.vals[t]
	if err := checkTensor(x); err != nil {
		return 0, err
	}
	o, ok := declaredOrder(x)
	switch {
	case x.DType != tensor.Float32 && x.DType != tensor.Float16:
		return 0, refuse("a payload's argument of %v", x.DType)
	case x.Dynamism != tensor.Static:
		return 0, refuse("a payload's argument of sizes that may change")
	case !ok || want.Datatype != floatOf(x) || want.Shape != memoryShapeOf(x, o):
		return 0, refuse("an argument of %v%v, the payload has %v %v", x.DType, x.Sizes, want.Datatype, want.Shape)
	}
	return o, nil
}

// merged adds a value of a payload that is no input.
func (c *lowerCall) merged(from *value) int {
	x := *from
	x.ID, x.Arg, x.Input, x.Output = uint32(len(c.g.Values)), none, false, false
	c.g.Values = append(c.g.Values, x)
	return len(c.g.Values) - 1
}

// mergeNode adds a node of a payload, whose values are at others now.
func (c *lowerCall) mergeNode(from *node, at []int) {
	n := *from
	n.index = len(c.g.Nodes)
	n.In, n.Out = moved(from.In, at), moved(from.Out, at)
	if w := n.window(); w != nil {
		own := *w
		n.Params = &own
	}
	c.g.Nodes = append(c.g.Nodes, n)
}

// moved are values that are at others now.
func moved(list, at []int) []int {
	to := make([]int, len(list))
	for i, v := range list {
		if to[i] = none; v != none {
			to[i] = at[v]
		}
	}
	return to
}
