package lowering

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// opened is a payload whose graph can be merged into another one. It must not be modified.
type opened interface{ Graph() *graph.Graph }

// mergeable returns an error if a payload's graph cannot be merged into another one. A payload stays
// separate if its repair would report faults, or move transposes.
func mergeable(g *graph.Graph) error {
	if len(g.Repaired) > 0 {
		return refuse("a fault of its exporter is repaired at load; etrun repair corrects the file")
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; g.MayRepair && n.Type.Convolution && g.Values[n.In[0]].Datatype == graph.QDInt8 {
			return refuse("the payload has dynamically quantized convolutions")
		}
	}
	return nil
}

// merge adds the nodes of a payload. Its arguments become existing values of the lowering, or
// values that it adds; all others become new values. Constants keep their bytes.
func (c *lowerCall) merge() error {
	o, ok := c.call.Payload.(opened)
	if !ok {
		return refuse("a payload of another backend")
	}
	g := o.Graph()
	if err := mergeable(g); err != nil {
		return err
	}
	if len(c.call.Args) != len(g.Args) {
		return refuse("%d arguments, the payload has %d", len(c.call.Args), len(g.Args))
	}
	at := make([]int, len(g.Values))
	for v := range at {
		at[v] = graph.None
	}
	for k, v := range g.Args[:g.Inputs] {
		t := c.call.Args[k]
		order, err := c.fitsArgument(t, &g.Values[v])
		if err != nil {
			return err
		}
		at[v] = c.Lowering.value(t, order)
	}
	for v := range g.Values {
		if at[v] == graph.None {
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
		c.layoutsOf(t).at[order] = at[v]
	}
	return nil
}

// fitsArgument checks that a tensor matches the payload's argument, and returns its memory order.
func (c *lowerCall) fitsArgument(t int, want *graph.Value) (order, error) {
	x := &c.vals[t]
	if err := checkTensor(x); err != nil {
		return 0, err
	}
	o, ok := declaredOrder(x)
	switch {
	case x.DType != tensor.Float32 && x.DType != tensor.Float16:
		return 0, refuse("a payload's argument of %v", x.DType)
	case x.Dynamism != tensor.Static:
		return 0, refuse("an argument of the payload has dynamic sizes")
	case !ok || want.Datatype != floatOf(x) || want.Shape != memoryShapeOf(x, o):
		return 0, refuse("an argument of %v%v, the payload has %v %v", x.DType, x.Sizes, want.Datatype, want.Shape)
	}
	return o, nil
}

// merged adds a value of a payload that is not an input.
func (c *lowerCall) merged(from *graph.Value) int {
	x := *from
	x.ID, x.Arg, x.Input, x.Output = uint32(len(c.Graph.Values)), graph.None, false, false
	c.Graph.Values = append(c.Graph.Values, x)
	return len(c.Graph.Values) - 1
}

// mergeNode adds a node of a payload. at maps the payload's values to those of the graph.
func (c *lowerCall) mergeNode(from *graph.Node, at []int) {
	n := *from
	n.Index = len(c.Graph.Nodes)
	n.In, n.Out = moved(from.In, at), moved(from.Out, at)
	if w := n.Window(); w != nil {
		own := *w
		n.Params = &own
	}
	c.Graph.Nodes = append(c.Graph.Nodes, n)
}

// moved maps the values of a list by at. none stays none.
func moved(list, at []int) []int {
	to := make([]int, len(list))
	for i, v := range list {
		if to[i] = graph.None; v != graph.None {
			to[i] = at[v]
		}
	}
	return to
}
