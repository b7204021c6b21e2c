package native

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// affords reports whether a native unit at the given shapes stays within the limits. Those of the declared sizes say nothing
// about smaller ones, where values that share memory may need their own.
func (m *Image) affords(s []graph.Shape) bool {
	g, threads := m.Graph, m.InstanceThreads()
	return needsWith(g, unsharedBytes(g, s, threads), m.lib.Soname, s).Check(m.Limits) == nil ||
		needsOf(g, m.lib.Soname, s, threads).Check(m.Limits) == nil
}

// unsharedBytes returns the size of an arena in which nothing shares memory: an upper bound of arenaBytes that takes less time.
func unsharedBytes(g *graph.Graph, s []graph.Shape, threads int) (bytes int64) {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		bytes = graph.Plus(bytes, scratchBytes(g, n, s, threads))
		if typeOf(n).clampsApart && outputBounds(n) {
			bytes = graph.Plus(bytes, paddedBytes(g, n.Out[0], s))
		}
		for _, v := range n.Out {
			bytes = graph.Plus(bytes, paddedBytes(g, v, s))
		}
	}
	return bytes
}
