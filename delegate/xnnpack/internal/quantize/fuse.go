package quantize

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// fuseClamps makes clamps bounds of the node before them, if nothing else reads its result. Elements may be rearranged between both,
// as behind a convolution of one dimension.
func fuseClamps(g *graph.Graph) {
	readers, writer := g.Readers(), make([]int, len(g.Values)) // behind the node that computes a value
	var kept []graph.Node
	for _, n := range g.Nodes {
		last := writer[n.In[0]]
		if n.Type.Tag == graph.TagClamp && last > 0 && fuse(g, kept, last-1, &n, readers, writer) {
			writer[n.Out[0]] = last
			continue
		}
		kept = append(kept, n)
		for _, v := range n.Out {
			writer[v] = len(kept)
		}
	}
	g.Nodes = kept
}

// fuse adds the bounds of a clamp, which reads the result of node last, to the node that computes its elements, and reports whether
// it did.
func fuse(g *graph.Graph, kept []graph.Node, last int, clamp *graph.Node, readers, writer []int) bool {
	is := func(n *graph.Node) bool { return readers[n.Out[0]] == 1 && !g.Values[n.Out[0]].Output }
	by := &kept[last]
	for is(by) && slices.Contains(rearranging, by.Type.Tag) && writer[by.In[0]] > 0 {
		by = &kept[writer[by.In[0]]-1]
	}
	lo, hi := max(by.Min, clamp.Min), min(by.Max, clamp.Max)
	computes := by.Type.Weighted() || isElementwise(by) || by.Type.Tag == graph.TagSubtract
	if !computes || !is(by) || lo >= hi {
		return false
	}
	by.Min, by.Max = lo, hi
	kept[last].Out = []int{clamp.Out[0]}
	return true
}
