package quantize

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// recurrent finds the results of products that are part of a recurrent layer: the next product by the same filter needs the result of
// a step. So are products whose result goes to a step without another product between. Exporters leave these in floats. A layer that
// is used for several inputs, as a head of a detector, is not recurrent. All products by a filter are alike: it is stored once.
func recurrent(g *graph.Graph) (steps map[int]bool) {
	repeated := repeatedFilters(g)
	parts := make(map[*byte]bool)          // filters
	reaches := make([]bool, len(g.Values)) // by value: a step reads it, or what is computed of it
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		after := false
		for _, v := range n.Out {
			after = after || reaches[v]
		}
		isStep := repeated[filterOf(g, n)]
		if at := filterOf(g, n); at != nil && (isStep || after) {
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
