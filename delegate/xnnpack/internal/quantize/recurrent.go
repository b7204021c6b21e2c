package quantize

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// recurrent reports whether a product is part of a recurrent layer: several nodes have its filter, or its result goes to such nodes
// without another product between. Exporters leave these in floats.
func (p *Plan) recurrent(n *graph.Node) bool {
	if p.steps == nil {
		p.findSteps()
	}
	return p.steps[n.Out[0]]
}

// findSteps finds the results of the products of recurrent layers.
func (p *Plan) findSteps() {
	g, uses := p.Graph, make(map[*byte]int)
	for i := range g.Nodes {
		if at := filterOf(g, &g.Nodes[i]); at != nil {
			uses[at]++
		}
	}
	p.steps = make(map[int]bool)
	reaches := make([]bool, len(g.Values)) // by value: a step reads it, or what is computed of it
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		at := filterOf(g, n)
		repeated := at != nil && uses[at] > 1
		p.steps[n.Out[0]] = n.Type.Weighted() && (repeated || reaches[n.Out[0]])
		if !repeated && (n.Type.Weighted() || !reaches[n.Out[0]]) {
			continue
		}
		for _, v := range n.In {
			if v != graph.None {
				reaches[v] = true
			}
		}
	}
}

// filterOf returns where the filter of a node is, nil if it has none.
func filterOf(g *graph.Graph, n *graph.Node) *byte {
	if !n.Type.Weighted() || len(g.Values[n.In[1]].Data) == 0 {
		return nil
	}
	return &g.Values[n.In[1]].Data[0]
}
