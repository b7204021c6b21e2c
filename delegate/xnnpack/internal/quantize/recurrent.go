package quantize

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// recurrent finds the results of products that are part of a recurrent layer: several nodes have the filter, or the result goes to
// such nodes without another product between. Exporters leave these in floats.
func recurrent(g *graph.Graph) (steps map[int]bool) {
	uses := make(map[*byte]int)
	for i := range g.Nodes {
		if at := filterOf(g, &g.Nodes[i]); at != nil {
			uses[at]++
		}
	}
	steps = make(map[int]bool)
	reaches := make([]bool, len(g.Values)) // by value: a step reads it, or what is computed of it
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		at := filterOf(g, n)
		repeated := at != nil && uses[at] > 1
		steps[n.Out[0]] = n.Type.Weighted() && (repeated || reaches[n.Out[0]])
		if !repeated && (n.Type.Weighted() || !reaches[n.Out[0]]) {
			continue
		}
		for _, v := range n.In {
			if v != graph.None {
				reaches[v] = true
			}
		}
	}
	return steps
}

// filterOf returns where the filter of a node is, nil if it has none.
func filterOf(g *graph.Graph, n *graph.Node) *byte {
	if !n.Type.Weighted() || len(g.Values[n.In[1]].Data) == 0 {
		return nil
	}
	return &g.Values[n.In[1]].Data[0]
}
