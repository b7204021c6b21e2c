package xnnpack

import (
	"slices"
)

// The exporter's layout pass gives a convolution its input in channels last order. For a
// dynamically quantized one it looks for the place behind the first operand of the first
// operand, and so on, and puts the transpose there: mostly at an input of the payload.
// All that read this value before, in the order of the model, now read its transposed
// copy as if nothing had changed, and a node on the way that moves elements, as a
// StaticReshape does, or another transpose brings the convolution what it does not
// expect. The repair lets those readers read the value itself, and puts a transpose
// where the convolution's input is quantized.

// layoutMender repairs the layout of one graph.
type layoutMender struct {
	g        *graph
	producer []int        // node by value, none for no node
	images   map[int]node // dynamically quantized input to the first convolution of it
	copies   map[int]int  // misplaced transposes: output to input
	shapes   []shape      // declared ones, to try nodes with others
	orders   *imageOrders
}

// mendLayout repairs the layout around dynamically quantized convolutions.
func (g *graph) mendLayout() error {
	if !g.mend {
		return nil
	}
	m := &layoutMender{g: g, images: make(map[int]node), copies: make(map[int]int)}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if _, ok := m.images[n.In[0]]; !ok && n.Type.convolution && g.Values[n.In[0]].Datatype == qdint8 {
			m.images[n.In[0]] = *n
		}
	}
	if len(m.images) == 0 {
		return nil
	}
	m.producer = slices.Repeat([]int{none}, len(g.Values))
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].Out {
			m.producer[v] = i
		}
	}
	m.shapes = make([]shape, len(g.Values))
	for v := range g.Values {
		m.shapes[v] = g.Values[v].Shape
	}
	m.orders = g.findOrders(nil)
	for _, i := range m.conversions() {
		m.findCopy(&g.Nodes[i])
	}
	m.orders = g.findOrders(m.copies)
	for _, i := range m.conversions() {
		m.orders.set(g.Nodes[i].In[0], m.placed(&g.Nodes[i]))
	}
	if err := m.redirect(); err != nil {
		return err
	}
	return m.transposeImages()
}

// conversions are the nodes that quantize inputs of convolutions.
func (m *layoutMender) conversions() (list []int) {
	for i := range m.g.Nodes {
		if n := &m.g.Nodes[i]; m.quantizes(n) {
			list = append(list, i)
		}
	}
	return list
}

func (m *layoutMender) quantizes(n *node) bool {
	_, ok := m.images[n.Out[0]]
	return ok && n.Type.tag == tagConvert
}

// findCopy goes the exporter's way from the source of a conversion, and takes a transpose
// to channels last at the end of it for the one that the exporter put there.
func (m *layoutMender) findCopy(conversion *node) {
	v := conversion.In[0]
	if m.orders.of(v) == orderLast {
		return // there was nothing to transpose
	}
	placed := m.placed(conversion) != orderFirst // a transpose just in front is the one
	for ; m.producer[v] != none; placed = false {
		n := &m.g.Nodes[m.producer[v]]
		if n.isConcatenate() {
			return
		}
		from := n.In[0]
		if n.isTranspose(toChannelsLast) && (placed || m.isRoot(from)) {
			m.copies[v] = from
			return
		}
		v = from
	}
}

// isRoot reports a value that the exporter's way ends at: nothing computes it, or a node
// whose first operand is a list.
func (m *layoutMender) isRoot(v int) bool {
	return m.producer[v] == none || m.g.Nodes[m.producer[v]].isConcatenate()
}

func (n *node) isConcatenate() bool {
	_, ok := n.Params.(*concatenateParams)
	return ok
}

// placed is the order of what a node quantizes for a convolution as sizes tell it: that in
// which the convolution's output has the declared ones, unless both give them.
func (m *layoutMender) placed(conversion *node) imageOrder {
	from := m.g.Values[conversion.In[0]].Shape
	if from.rank != 4 {
		return orderUnknown
	}
	last, first := m.convolves(conversion, from), m.convolves(conversion, from.permuted(toChannelsLast))
	switch {
	case last && !first:
		return orderLast
	case first && !last:
		return orderFirst
	}
	return orderUnknown
}

// convolves reports that the convolution of an input of sizes s has the declared sizes.
func (m *layoutMender) convolves(conversion *node, s shape) bool {
	n := m.images[conversion.Out[0]]
	m.shapes[n.In[0]] = s
	err := n.Type.shape(m.g, &n, m.shapes)
	m.takeShape(n.In[0])
	return m.takeShape(n.Out[0]) == m.g.Values[n.Out[0]].Shape && err == nil
}

// takeShape is the shape that a value was given to try, which is put back.
func (m *layoutMender) takeShape(v int) shape {
	s := m.shapes[v]
	m.shapes[v] = m.g.Values[v].Shape
	return s
}

// redirect lets those nodes read the value itself that took its copy for it.
func (m *layoutMender) redirect() error {
	for i := range m.g.Nodes {
		n := &m.g.Nodes[i]
		if m.quantizes(n) || !slices.ContainsFunc(n.In, m.isCopy) {
			continue
		}
		read, err := m.reads(n)
		if err != nil {
			return err
		}
		if read != orderFirst {
			continue
		}
		n.In = slices.Clone(n.In)
		for k, v := range n.In {
			if m.isCopy(v) {
				n.In[k] = m.copies[v]
				m.g.note(n.place(), "reads %s, not its copy in channels last order", m.g.describe(n.In[k]))
			}
		}
	}
	return nil
}

func (m *layoutMender) isCopy(v int) bool {
	_, ok := m.copies[v]
	return ok
}

// reads is the order in which a node takes its operands that are copies to be: that in
// which its output has the declared sizes or, where both give them, that of the nodes
// around it.
func (m *layoutMender) reads(n *node) (imageOrder, error) {
	if own := nodeOrders[n.Type.tag]; own != orderUnknown {
		return own, nil
	}
	last, first := m.gives(n, orderLast), m.gives(n, orderFirst)
	switch {
	case !first && !last:
		return orderUnknown, n.beyond("no order of its operands gives the declared sizes %v", m.g.Values[n.Out[0]].Shape)
	case !last:
		return orderFirst, nil
	case !first:
		return orderLast, nil
	case n.Type.tag == tagStaticTranspose:
		return m.transposeReads(n)
	}
	own := m.orders.of(n.Out[0])
	switch {
	case own == orderBoth:
		return own, n.beyond("%s is read in channels first and channels last order", m.g.describe(n.Out[0]))
	case own == orderUnknown && m.orders.turned[m.orders.find(n.Out[0])]:
		return own, n.beyond("the order of %s cannot be told from the payload", m.g.describe(n.Out[0]))
	}
	return own, nil
}

// gives reports that a node's output has the declared sizes if its operands that are
// copies are in an order.
func (m *layoutMender) gives(n *node, in imageOrder) bool {
	for _, v := range n.In {
		if m.isCopy(v) && in == orderFirst {
			m.shapes[v] = m.g.Values[m.copies[v]].Shape
		}
	}
	err := n.Type.shape(m.g, n, m.shapes)
	for _, v := range n.In {
		if v != none {
			m.takeShape(v)
		}
	}
	return m.takeShape(n.Out[0]) == m.g.Values[n.Out[0]].Shape && err == nil
}

// transposeReads is for a transpose of a copy where sizes do not tell the order. The
// exporter brings copies back to channels first order by the inverse.
func (m *layoutMender) transposeReads(n *node) (imageOrder, error) {
	switch {
	case n.isTranspose(toChannelsFirst):
		return orderLast, nil
	case m.orders.of(n.Out[0]) == orderFirst:
		return orderFirst, nil
	}
	return orderUnknown, n.beyond("the order of its operand cannot be told from the payload")
}

// transposeImages transposes what is quantized for convolutions where it is in channels
// first order.
func (m *layoutMender) transposeImages() error {
	for _, i := range slices.Backward(m.conversions()) {
		n := &m.g.Nodes[i]
		is, err := m.imageOrder(n)
		if err != nil {
			return err
		}
		if is == orderFirst {
			m.g.note(n.place(), "%s transposed to channels last order for a convolution", m.g.describe(n.In[0]))
			m.g.insertTranspose(i, toChannelsLast)
		}
	}
	return nil
}

// imageOrder is the order of what a node quantizes for convolutions: where sizes do not
// tell it, that of the nodes around it.
func (m *layoutMender) imageOrder(n *node) (imageOrder, error) {
	v := n.In[0]
	if m.isCopy(v) || m.g.Values[v].Shape.rank != 4 {
		return orderUnknown, nil
	}
	if is := m.placed(n); is != orderUnknown {
		return is, nil
	}
	is, from := m.orders.of(v), m.producer[v]
	switch {
	case is == orderBoth:
		return is, n.beyond("%s is read in channels first and channels last order", m.g.describe(v))
	case is == orderUnknown && m.orders.back[m.orders.find(v)] && !m.g.Nodes[from].isTranspose(toChannelsFirst):
		return is, n.beyond("the order of %s cannot be told from the payload", m.g.describe(v))
	}
	return is, nil
}

// insertTranspose transposes the operand of node i, in front of it.
func (g *graph) insertTranspose(i int, perm []int) {
	n := &g.Nodes[i]
	v := n.In[0]
	turned := g.Values[v]
	turned.Shape, turned.Arg, turned.Input, turned.Output, turned.Data = turned.Shape.permuted(perm), none, false, false, nil
	g.Values = append(g.Values, turned)
	n.In = []int{len(g.Values) - 1}
	transpose := node{Type: nodeTypes[tagStaticTranspose], In: []int{v}, Out: []int{n.In[0]}, Min: -inf, Max: inf,
		Params: &transposeParams{perm}, index: n.index, DebugHandle: n.DebugHandle}
	g.Nodes = slices.Insert(g.Nodes, i, transpose)
}
