package graph

import "slices"

// Infer computes the shape of every value, node by node, from the input shapes, which s already
// contains. It returns an error for incompatible shapes.
func (g *Graph) Infer(s []Shape) error {
	for v := range g.Values {
		if g.Values[v].IsConst() {
			s[v] = g.Values[v].Shape
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if err := n.Type.Shape(g, n, s); err != nil {
			return err
		}
		if n.Exact && n.repeats(s) {
			return n.fault("operands of sizes %v and %v, which the operator does not repeat", s[n.In[0]], s[n.In[1]])
		}
		for _, v := range n.Out {
			if err := s[v].Check(); err != nil {
				return n.unsupported("output of %w", err)
			}
		}
	}
	return nil
}

// repeats reports whether the first operand of a node of two is repeated or, if it multiplies matrices, one of both.
func (n *Node) repeats(s []Shape) bool {
	a, b, out := s[n.In[0]], s[n.In[1]], s[n.Out[0]]
	if n.Type.Tag != TagBatchMatrixMultiply {
		return out != a
	}
	return a.Rank != b.Rank || !slices.Equal(a.Dim[:a.Rank-2], b.Dim[:b.Rank-2])
}

// Declared returns the shapes of the values at the inputs' declared sizes, which are the largest.
func (g *Graph) Declared() ([]Shape, error) {
	s := make([]Shape, len(g.Values))
	for v := range g.Values {
		if g.Values[v].Input {
			s[v] = g.Values[v].Shape
		}
	}
	return s, g.Infer(s)
}

// Cost estimates the work of one run in MACs.
func (g *Graph) Cost(s []Shape) float64 {
	total := 0.0
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Type.Cost != nil {
			total += float64(n.Type.Cost(g, n, s))
		} else {
			total += float64(s[n.Out[0]].Numel())
		}
	}
	return total
}
