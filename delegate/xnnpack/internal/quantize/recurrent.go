package quantize

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// recurrent finds the results of products that are part of a recurrent layer: the next product by the same filter needs the result of
// a step. So are products whose result goes to a step without another product between, and those of a cell's gates, whose state
// is in the program. Exporters leave these in floats. A layer that
// is used for several inputs, as a head of a detector, is not recurrent. All products by a filter are alike: it is stored once.
func recurrent(g *graph.Graph) (steps map[int]bool) {
	repeated, gates := repeatedFilters(g), gates(g)
	parts := make(map[*byte]bool)          // filters
	reaches := make([]bool, len(g.Values)) // by value: a step reads it, or what is computed of it
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		after := false
		for _, v := range n.Out {
			after = after || reaches[v]
		}
		isStep := repeated[filterOf(g, n)]
		if at := filterOf(g, n); at != nil && (isStep || after || gates[n.Out[0]]) {
			parts[at] = true
		}
		if isStep || after && !n.Type.Weighted() {
			for _, v := range n.In {
				if v != graph.None {
					reaches[v] = true
				}
			}
		}
	}
	steps = make(map[int]bool)
	for i := range g.Nodes {
		if n := &g.Nodes[i]; parts[filterOf(g, n)] {
			steps[n.Out[0]] = true
		}
	}
	return steps
}

// repeatedFilters returns the filters of products whose result another product by the same filter needs. Filters have 64 numbers, so
// that the sets take little memory: in a graph with more of them, some share a number.
func repeatedFilters(g *graph.Graph) map[*byte]bool {
	repeated, numbers := make(map[*byte]bool), make(map[*byte]int)
	reaches := make([]uint64, len(g.Values)) // by value: the filters of the products that read it, or what is computed of it
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		after := uint64(0)
		for _, v := range n.Out {
			after |= reaches[v]
		}
		if at := filterOf(g, n); at != nil {
			number, known := numbers[at]
			if !known {
				number = len(numbers)
				numbers[at] = number
			}
			bit := uint64(1) << (number % 64)
			if known && after&bit != 0 {
				repeated[at] = true
			}
			after |= bit
		}
		for _, v := range n.In {
			if v != graph.None {
				reaches[v] |= after
			}
		}
	}
	return repeated
}

// filterOf returns where the filter of a node is, nil if it has none.
func filterOf(g *graph.Graph, n *graph.Node) *byte {
	if !n.Type.Weighted() || len(g.Values[n.In[1]].Data) == 0 {
		return nil
	}
	return &g.Values[n.In[1]].Data[0]
}

// A cell has at least so many gates: sigmoids and tangents of parts of one sum of products. A gated linear unit has one.
const leastSigmoids, leastTanhs = 2, 1

// gates marks the results of products that are summed up to the gates of a recurrent cell, such as an LSTM's.
func gates(g *graph.Graph) []bool {
	type count struct{ sigmoids, tanhs int }
	reaches, found := make([]count, len(g.Values)), make([]bool, len(g.Values))
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		y := reaches[n.Out[0]]
		switch n.Type.Tag {
		case graph.TagSigmoid:
			y = count{sigmoids: 1}
		case graph.TagTanh:
			y = count{tanhs: 1}
		case graph.TagAdd, graph.TagSubtract, graph.TagStaticSlice, graph.TagStaticReshape, graph.TagStaticTranspose, graph.TagCopy:
		default:
			found[n.Out[0]] = n.Type.Weighted() && y.sigmoids >= leastSigmoids && y.tanhs >= leastTanhs
			continue
		}
		for _, v := range n.In {
			if v != graph.None {
				reaches[v].sigmoids += y.sigmoids
				reaches[v].tanhs += y.tanhs
			}
		}
	}
	return found
}
