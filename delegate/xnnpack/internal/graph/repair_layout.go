package graph

import (
	"slices"

	"github.com/etrun-go/etrun/delegate"
)

// The exporter's layout pass converts the input of a convolution to channels last order. For a
// dynamically quantized convolution, it follows the first operand of the first operand, and so on,
// and inserts the transpose at the end of that chain, mostly at an input of the payload. All nodes
// that read this value in the order of the model now read the transposed copy instead. If the chain
// contains another transpose, or a node that moves elements, such as StaticReshape, the convolution
// does not get the order that it expects. The repair makes those readers read the value itself, and
// inserts a transpose where the input of the convolution is quantized.

// layoutRepairer repairs the layout of one graph.
type layoutRepairer struct {
	g        *Graph
	producer []int        // index of the node that computes a value, or none
	images   map[int]Node // dynamically quantized input to its first convolution
	copies   map[int]int  // misplaced transposes: output to input
	shapes   []Shape      // declared ones; changed temporarily to try other shapes
	orders   *imageOrders
}

// repairLayout repairs the layout of inputs of dynamically quantized convolutions.
func (g *Graph) repairLayout() error {
	if !g.MayRepair {
		return nil
	}
	m := &layoutRepairer{g: g, images: make(map[int]Node), copies: make(map[int]int)}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if _, ok := m.images[n.In[0]]; !ok && n.Type.Convolution && g.Values[n.In[0]].Datatype == QDInt8 {
			m.images[n.In[0]] = *n
		}
	}
	if len(m.images) == 0 {
		return nil
	}
	m.producer = slices.Repeat([]int{None}, len(g.Values))
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].Out {
			m.producer[v] = i
		}
	}
	m.shapes = make([]Shape, len(g.Values))
	for v := range g.Values {
		m.shapes[v] = g.Values[v].Shape
	}
	m.orders = g.findOrders(nil)
	for _, i := range m.conversions() {
		m.findCopy(&g.Nodes[i])
	}
	m.orders = g.findOrders(m.copies)
	for _, i := range m.conversions() {
		m.orders.set(g.Nodes[i].In[0], m.orderBySizes(&g.Nodes[i]))
	}
	if err := m.redirect(); err != nil {
		return err
	}
	return m.transposeImages()
}

// CheckReadable returns an error if a reader would take a graph, as its writer means it, for one with an exporter's fault. specs are
// those of its arguments.
func (g *Graph) CheckReadable(specs []*delegate.ArgSpec) error {
	c := g.Snapshot()
	c.MayRepair, c.specs, c.Repaired = true, specs, nil
	if err := c.repairLayout(); err != nil {
		return InPayload(err)
	}
	if len(c.Repaired) > 0 {
		return Unsupported("", "a reader would repair it: %s", c.Repaired[0])
	}
	return nil
}

// conversions returns the nodes that quantize inputs of convolutions.
func (m *layoutRepairer) conversions() (list []int) {
	for i := range m.g.Nodes {
		if n := &m.g.Nodes[i]; m.quantizes(n) {
			list = append(list, i)
		}
	}
	return list
}

func (m *layoutRepairer) quantizes(n *Node) bool {
	_, ok := m.images[n.Out[0]]
	return ok && n.Type.Tag == TagConvert
}

// findCopy follows the exporter's chain from the source of a conversion. If the chain ends with a
// transpose to channels last, that is the one that the exporter inserted.
func (m *layoutRepairer) findCopy(conversion *Node) {
	v := conversion.In[0]
	if m.orders.order(v) == orderLast {
		return // no transpose was needed
	}
	placed := m.orderBySizes(conversion) != orderFirst // a transpose directly before the conversion is the one
	for ; m.producer[v] != None; placed = false {
		n := &m.g.Nodes[m.producer[v]]
		if n.IsConcatenate() {
			return
		}
		from := n.In[0]
		if n.IsTranspose(ToChannelsLast) && (placed || m.isRoot(from)) {
			m.copies[v] = from
			return
		}
		v = from
	}
}

// isRoot reports whether the exporter's chain ends at v: no node computes it, or a node whose first
// operand is a list.
func (m *layoutRepairer) isRoot(v int) bool {
	return m.producer[v] == None || m.g.Nodes[m.producer[v]].IsConcatenate()
}

// IsConcatenate reports whether a node concatenates its inputs.
func (n *Node) IsConcatenate() bool {
	_, ok := n.Params.(*ConcatenateParams)
	return ok
}

// orderBySizes returns the order of the value that a node quantizes for a convolution, derived from
// sizes: the order in which the convolution's output has the declared sizes. It is unknown if both
// or neither do.
func (m *layoutRepairer) orderBySizes(conversion *Node) imageOrder {
	from := m.g.Values[conversion.In[0]].Shape
	if from.Rank != 4 {
		return orderUnknown
	}
	last, first := m.convolves(conversion, from), m.convolves(conversion, from.Permuted(ToChannelsLast))
	switch {
	case last && !first:
		return orderLast
	case first && !last:
		return orderFirst
	}
	return orderUnknown
}

// convolves reports whether the convolution of an input of sizes s has the declared output sizes.
func (m *layoutRepairer) convolves(conversion *Node, s Shape) bool {
	n := m.images[conversion.Out[0]]
	m.shapes[n.In[0]] = s
	err := n.Type.Shape(m.g, &n, m.shapes)
	m.popShape(n.In[0])
	return m.popShape(n.Out[0]) == m.g.Values[n.Out[0]].Shape && err == nil
}

// popShape returns the shape of a value that was set to try it, and restores the declared one.
func (m *layoutRepairer) popShape(v int) Shape {
	s := m.shapes[v]
	m.shapes[v] = m.g.Values[v].Shape
	return s
}

// redirect makes nodes read the value itself if they read its copy as if it had the same order.
func (m *layoutRepairer) redirect() error {
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
				m.g.note(n.Location(), "reads %s, not its copy in channels last order", m.g.Describe(n.In[k]))
			}
		}
	}
	return nil
}

func (m *layoutRepairer) isCopy(v int) bool {
	_, ok := m.copies[v]
	return ok
}

// reads returns the order that a node expects for its operands that are copies: the order in which
// its output has the declared sizes or, if both orders do, that of the nodes connected to it.
func (m *layoutRepairer) reads(n *Node) (imageOrder, error) {
	if own := nodeOrders[n.Type.Tag]; own != orderUnknown {
		return own, nil
	}
	last, first := m.matches(n, orderLast), m.matches(n, orderFirst)
	switch {
	case !first && !last:
		return orderUnknown, n.unsupported("no order of its operands gives the declared sizes %v", m.g.Values[n.Out[0]].Shape)
	case !last:
		return orderFirst, nil
	case !first:
		return orderLast, nil
	case n.Type.Tag == TagStaticTranspose:
		return m.transposeReads(n)
	}
	own := m.orders.order(n.Out[0])
	switch {
	case own == orderBoth:
		return own, n.unsupported("%s is read in channels first and channels last order", m.g.Describe(n.Out[0]))
	case own == orderUnknown && m.orders.transposed[m.orders.find(n.Out[0])]:
		return own, n.unsupported("the order of %s cannot be determined from the payload", m.g.Describe(n.Out[0]))
	}
	return own, nil
}

// matches reports whether the output of a node has the declared sizes if its operands that are
// copies are in the given order.
func (m *layoutRepairer) matches(n *Node, in imageOrder) bool {
	for _, v := range n.In {
		if m.isCopy(v) && in == orderFirst {
			m.shapes[v] = m.g.Values[m.copies[v]].Shape
		}
	}
	err := n.Type.Shape(m.g, n, m.shapes)
	for _, v := range n.In {
		if v != None {
			m.popShape(v)
		}
	}
	return m.popShape(n.Out[0]) == m.g.Values[n.Out[0]].Shape && err == nil
}

// transposeReads returns the order that a transpose of a copy expects if sizes do not determine it.
// The exporter converts copies back to channels first order by the inverse.
func (m *layoutRepairer) transposeReads(n *Node) (imageOrder, error) {
	switch {
	case n.IsTranspose(toChannelsFirst):
		return orderLast, nil
	case m.orders.order(n.Out[0]) == orderFirst:
		return orderFirst, nil
	}
	return orderUnknown, n.unsupported("the order of its operand cannot be determined from the payload")
}

// transposeImages transposes values that are quantized for convolutions and are in channels first
// order.
func (m *layoutRepairer) transposeImages() error {
	for _, i := range slices.Backward(m.conversions()) {
		n := &m.g.Nodes[i]
		is, err := m.imageOrder(n)
		if err != nil {
			return err
		}
		if is == orderFirst {
			m.g.note(n.Location(), "%s transposed to channels last order for a convolution", m.g.Describe(n.In[0]))
			m.g.insertTranspose(i, ToChannelsLast)
		}
	}
	return nil
}

// imageOrder returns the order of the value that a node quantizes for convolutions. If sizes do not
// determine it, it is that of the nodes connected to it.
func (m *layoutRepairer) imageOrder(n *Node) (imageOrder, error) {
	v := n.In[0]
	if m.isCopy(v) || m.g.Values[v].Shape.Rank != 4 {
		return orderUnknown, nil
	}
	if is := m.orderBySizes(n); is != orderUnknown {
		return is, nil
	}
	is, from := m.orders.order(v), m.producer[v]
	switch {
	case is == orderBoth:
		return is, n.unsupported("%s is read in channels first and channels last order", m.g.Describe(v))
	case is == orderUnknown && m.orders.back[m.orders.find(v)] && !m.g.Nodes[from].IsTranspose(toChannelsFirst):
		return is, n.unsupported("the order of %s cannot be determined from the payload", m.g.Describe(v))
	}
	return is, nil
}

// insertTranspose inserts a transpose of the operand of node i before that node.
func (g *Graph) insertTranspose(i int, perm []int) {
	n := &g.Nodes[i]
	v := n.In[0]
	turned := g.Values[v]
	turned.Shape, turned.Arg, turned.Input, turned.Output, turned.Data = turned.Shape.Permuted(perm), None, false, false, nil
	g.Values = append(g.Values, turned)
	n.In = append([]int{len(g.Values) - 1}, n.In[1:]...)
	transpose := Node{Type: NodeTypes[TagStaticTranspose], In: []int{v}, Out: []int{n.In[0]}, Min: -Inf, Max: Inf,
		Params: &TransposeParams{perm}, Index: n.Index, DebugHandle: n.DebugHandle}
	g.Nodes = append(g.Nodes[:i:i], append([]Node{transpose}, g.Nodes[i:]...)...)
}
