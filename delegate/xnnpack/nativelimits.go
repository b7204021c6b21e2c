package xnnpack

// affords reports whether a native unit at the given shapes stays within the limits. Those of the declared sizes say nothing
// about smaller ones, where values that share memory may need their own.
func (m *nativeImage) affords(s []shape) bool {
	g, threads := m.graph, m.instanceThreads()
	return nativeNeedsWith(g, unsharedBytes(g, s, threads), m.lib.Soname, s).check(m.limits) == nil ||
		nativeNeeds(g, m.lib.Soname, s, threads).check(m.limits) == nil
}

// unsharedBytes returns the size of an arena in which nothing shares memory: an upper bound of arenaBytes that takes less time.
func unsharedBytes(g *graph, s []shape, threads int) (bytes int64) {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if nativeTypeOf(n).scratch != nil {
			bytes = plus(bytes, nativeTypeOf(n).scratch(g, n, s, threads))
		}
		if nativeTypeOf(n).clampsApart && outputBounds(n) {
			bytes = plus(bytes, paddedBytes(g, n.Out[0], s))
		}
		for _, v := range n.Out {
			bytes = plus(bytes, paddedBytes(g, v, s))
		}
	}
	return bytes
}
