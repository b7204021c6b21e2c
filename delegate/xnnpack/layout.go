package xnnpack

// layout is what a runtime is made for besides the memory of its values, which is planned
// at every change of sizes. The library of 2024 takes some sizes for constant: a
// dynamically quantized value of images keeps their number; a pool or resize keeps its
// channels; a product of matrices keeps which operand is broadcast. With others it would
// read and write out of bounds, so the runtime is made anew instead.
type layout struct {
	images []int // scales of the dynamically quantized values of images
	states []int // of the nodes
}

// set notes the layout of a runtime that is made for the shapes.
func (l *layout) set(g *graph, s []shape) {
	l.images, l.states = l.images[:0], l.states[:0]
	for v := range g.Values {
		if n, ok := imageScales(g, v, s); ok {
			l.images = append(l.images, n)
		}
	}
	for i := range g.Nodes {
		l.states = append(l.states, g.Nodes[i].state(s))
	}
}

// imageScales is how many scales a value has if it is one of images that is quantized
// dynamically.
func imageScales(g *graph, v int, s []shape) (n int, ok bool) {
	x := &g.Values[v]
	if x.Datatype != qdint8 || x.Quant.Nonbatch <= 1 || s[v].rank == 0 {
		return 0, false
	}
	return scalesOf(x, s[v]), true
}

// state is what must not change about a node's shapes, 0 where anything may.
func (n *node) state(s []shape) int {
	if n.Type.layout == nil {
		return 0
	}
	return n.Type.layout(n, s)
}

// fullOperands says which of the operands are as large as the output.
func fullOperands(n *node, s []shape) (state int) {
	for i, v := range n.In {
		if s[v].numel() == s[n.Out[0]].numel() {
			state |= 1 << i
		}
	}
	return state
}

// imageChannels is how many channels the images have.
func imageChannels(n *node, s []shape) int { return s[n.In[0]].last() }

// scalesOf is how many scales a dynamically quantized value has.
func scalesOf(x *value, s shape) int { return s.leading(s.rank - x.Quant.Nonbatch) }

// fits reports that the runtime serves other shapes.
func (l *layout) fits(g *graph, s []shape) bool {
	for i := range g.Nodes {
		if l.states[i] != g.Nodes[i].state(s) {
			return false
		}
	}
	known := l.images
	for v := range g.Values {
		if n, ok := imageScales(g, v, s); ok {
			if n != known[0] {
				return false
			}
			known = known[1:]
		}
	}
	return true
}
