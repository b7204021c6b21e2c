package xnnpack

import "slices"

// infer computes the shape of every value, node by node, from the input shapes, which s already
// contains. It returns an error for incompatible shapes.
func (g *graph) infer(s []shape) error {
	for v := range g.Values {
		if g.Values[v].isConst() {
			s[v] = g.Values[v].Shape
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if err := n.Type.shape(g, n, s); err != nil {
			return err
		}
		if n.exact && n.repeats(s) {
			return n.fault("operands of sizes %v and %v, which the operator does not repeat", s[n.In[0]], s[n.In[1]])
		}
		for _, v := range n.Out {
			if err := s[v].check(); err != nil {
				return n.beyond("output of %w", err)
			}
		}
	}
	return nil
}

// repeats reports whether the first operand of a node of two is repeated or, if it multiplies matrices, one of both.
func (n *node) repeats(s []shape) bool {
	a, b, out := s[n.In[0]], s[n.In[1]], s[n.Out[0]]
	if n.Type.tag != tagBatchMatrixMultiply {
		return out != a
	}
	return a.rank != b.rank || !slices.Equal(a.dim[:a.rank-2], b.dim[:b.rank-2])
}

// declared returns the shapes of the values at the inputs' declared sizes, which are the largest.
func (g *graph) declared() ([]shape, error) {
	s := make([]shape, len(g.Values))
	for v := range g.Values {
		if g.Values[v].Input {
			s[v] = g.Values[v].Shape
		}
	}
	return s, g.infer(s)
}

// cost estimates the work of one run in MACs.
func (g *graph) cost(s []shape) float64 {
	total := 0.0
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Type.cost != nil {
			total += float64(n.Type.cost(g, n, s))
		} else {
			total += float64(s[n.Out[0]].numel())
		}
	}
	return total
}
