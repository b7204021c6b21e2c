package xnnpack

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
		for _, v := range n.Out {
			if err := s[v].check(); err != nil {
				return n.beyond("output of %w", err)
			}
		}
	}
	return nil
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
