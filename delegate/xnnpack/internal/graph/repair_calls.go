package graph

import "slices"

// If a module with an 8-bit convolution is called twice and an output of the payload lies between
// the calls, the exporter's layout pass does not see the second convolution, whose operands are
// mixed: it reads a value in channels first order without a transpose. If channels, height and width
// are equal, no size shows that.

// transposeCalls transposes values in channels first order that convolutions, pools and other nodes
// of images read in a payload with mixed operands.
func (g *Graph) transposeCalls() error {
	if !g.mixed {
		return nil
	}
	made := g.madeOrders()
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if _, own := nodeOrders[n.Type.Tag]; !own && made.isImage(n.Out[0]) && made.order(n.Out[0]) == orderBoth {
			return n.unsupported("operands in channels first and in channels last order")
		}
	}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		v := n.In[0]
		if nodeOrders[n.Type.Tag] != orderLast || !made.isImage(v) {
			continue
		}
		switch is := made.order(v); {
		case is == orderFirst:
			g.note(n.Location(), "%s transposed to channels last order", g.Describe(v))
			g.insertTranspose(i, ToChannelsLast)
		case is == orderBoth:
			return n.unsupported("%s is in channels first and channels last order", g.Describe(v))
		case is == orderUnknown && g.Values[v].Shape.Permuted(ToChannelsLast) == g.Values[v].Shape:
			return n.unsupported("the order of %s cannot be determined from the payload", g.Describe(v))
		}
	}
	return nil
}

// madeOrders returns the orders in which values are computed, whatever the nodes that read them
// expect: those of the nodes that compute them, and of the program's arguments.
func (g *Graph) madeOrders() *imageOrders {
	o := g.connected(nil)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		switch own, ok := nodeOrders[n.Type.Tag]; {
		case ok:
			o.set(n.Out[0], own)
		case n.IsTranspose(ToChannelsLast):
			o.set(n.Out[0], orderLast)
		case n.Type.Tag == TagStaticTranspose:
			o.set(n.Out[0], orderFirst)
		}
	}
	for i, v := range g.Args {
		if v != None && i < len(g.specs) && g.specs[i] != nil && slices.Equal(specShape(g.specs[i]).Dims(), g.Values[v].Shape.Dims()) {
			o.set(v, specOrder(g.specs[i]))
		}
	}
	return o
}
