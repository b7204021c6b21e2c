package xnnpack

// affords reports whether a native unit at the given shapes stays within the limits. Those of the declared sizes say nothing
// about smaller ones, where values that share memory may need their own.
func (m *nativeImage) affords(s []shape) bool {
	g, threads := m.graph, m.instanceThreads()
	return g.nativeNeedsWith(g.unsharedBytes(s, threads), m.lib.Soname, s).check(m.limits) == nil ||
		g.nativeNeeds(m.lib.Soname, s, threads).check(m.limits) == nil
}

// unsharedBytes returns the size of an arena in which nothing shares memory: an upper bound of arenaBytes that takes less time.
func (g *graph) unsharedBytes(s []shape, threads int) (bytes int64) {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.native().scratch != nil {
			bytes = plus(bytes, n.native().scratch(g, n, s, threads))
		}
		if n.native().clampsApart && n.bounds() {
			bytes = plus(bytes, g.valueBytes(n.Out[0], s))
		}
		for _, v := range n.Out {
			bytes = plus(bytes, g.valueBytes(v, s))
		}
	}
	return bytes
}
