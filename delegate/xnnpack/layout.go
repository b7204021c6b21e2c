package xnnpack

// layout is what the memory of a runtime is laid out for. The library of 2024 lays it
// out anew when a value outgrows its bytes, and misses other cases: a dynamically
// quantized value of the same bytes with more scales; a convolution of such a value
// over another number of images; a pool or resize of other channels; a broadcasting
// operand that lent its memory to the output while both were of one size. In these it
// would read and write out of bounds, so the runtime is made anew instead.
type layout struct {
	dynamic []dynamicSize // of the dynamically quantized values
	states  []int         // of the nodes, as far as the library takes them for constant
}

type dynamicSize struct{ value, bytes, scales int }

// set notes the layout of a runtime that is made for the shapes.
func (l *layout) set(g *graph, s []shape) {
	l.dynamic, l.states = l.dynamic[:0], l.states[:0]
	for v := range g.Values {
		if x := &g.Values[v]; x.Datatype == qdint8 && s[v].rank > 0 {
			l.dynamic = append(l.dynamic, dynamicSize{v, s[v].numel(), scalesOf(x, s[v])})
		}
	}
	for i := range g.Nodes {
		l.states = append(l.states, g.Nodes[i].state(s))
	}
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

// fits reports that the runtime's memory serves other shapes, and follows what the
// library does with it then.
func (l *layout) fits(g *graph, s []shape) bool {
	for i := range g.Nodes {
		if l.states[i] != g.Nodes[i].state(s) {
			return false
		}
	}
	for i := range l.dynamic {
		r := &l.dynamic[i]
		bytes, scales := s[r.value].numel(), scalesOf(&g.Values[r.value], s[r.value])
		if images := g.Values[r.value].Quant.Nonbatch > 1; scales > r.scales || images && scales != r.scales {
			return false
		}
		if bytes > r.bytes {
			r.bytes, r.scales = bytes, scales
		}
	}
	return true
}
