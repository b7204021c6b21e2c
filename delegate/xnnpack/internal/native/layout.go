package native

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// layout is the set of sizes that a runtime depends on, in addition to the memory of its values,
// which is replanned whenever sizes change. The 2024 library assumes that some sizes are constant:
// the number of images of a dynamically quantized value, the channels of a pool or resize, and
// which operand of a matrix product is broadcast. With other sizes it would read and write out of
// bounds, so the runtime is recreated instead.
type layout struct {
	images []int // number of scales of each dynamically quantized value of images
	states []int // of the nodes, see state
}

// set sets the layout to that of a runtime created for the shapes.
func (l *layout) set(g *graph.Graph, s []graph.Shape) {
	l.images, l.states = l.images[:0], l.states[:0]
	for v := range g.Values {
		if n, ok := imageScales(g, v, s); ok {
			l.images = append(l.images, n)
		}
	}
	for i := range g.Nodes {
		l.states = append(l.states, state(&g.Nodes[i], s))
	}
}

// imageScales returns the number of scales of a dynamically quantized value of images. ok is false
// for other values.
func imageScales(g *graph.Graph, v int, s []graph.Shape) (n int, ok bool) {
	x := &g.Values[v]
	if x.Datatype != graph.QDInt8 || x.Quant.Nonbatch <= 1 || s[v].Rank == 0 {
		return 0, false
	}
	return graph.ScalesOf(x, s[v]), true
}

// state returns the property of a node's shapes that must not change, 0 if everything may.
func state(n *graph.Node, s []graph.Shape) int {
	if typeOf(n).layout == nil {
		return 0
	}
	return typeOf(n).layout(n, s)
}

// fullOperands returns a bit mask of the operands that are as large as the output.
func fullOperands(n *graph.Node, s []graph.Shape) (state int) {
	for i, v := range n.In {
		if s[v].Numel() == s[n.Out[0]].Numel() {
			state |= 1 << i
		}
	}
	return state
}

// imageChannels returns the number of channels of the images.
func imageChannels(n *graph.Node, s []graph.Shape) int { return s[n.In[0]].Last() }

// matches reports whether the runtime can be used for other shapes.
func (l *layout) matches(g *graph.Graph, s []graph.Shape) bool {
	for i := range g.Nodes {
		if l.states[i] != state(&g.Nodes[i], s) {
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
