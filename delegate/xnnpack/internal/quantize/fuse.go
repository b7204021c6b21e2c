package quantize

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// fuseClamps makes clamps bounds of the node before them, if nothing else reads its result.
func fuseClamps(g *graph.Graph) {
	readers, writer := g.Readers(), make([]int, len(g.Values)) // behind the node that computes a value
	var kept []graph.Node
	for _, n := range g.Nodes {
		at := writer[n.In[0]]
		if n.Type.Tag == graph.TagClamp && at > 0 && fuse(g, &kept[at-1], &n, readers[n.In[0]]) {
			writer[n.Out[0]] = at
			continue
		}
		kept = append(kept, n)
		for _, v := range n.Out {
			writer[v] = len(kept)
		}
	}
	g.Nodes = kept
}

// fuse adds the bounds of a clamp to the node that computes its operand, and reports whether it did.
func fuse(g *graph.Graph, by, clamp *graph.Node, readers int) bool {
	lo, hi := max(by.Min, clamp.Min), min(by.Max, clamp.Max)
	computes := by.Type.Weighted() || isElementwise(by) || by.Type.Tag == graph.TagSubtract
	if !computes || readers != 1 || g.Values[by.Out[0]].Output || lo >= hi {
		return false
	}
	by.Min, by.Max, by.Out = lo, hi, []int{clamp.Out[0]}
	return true
}
