package xnnpack

import "fmt"

// maxBytes bounds all values between nodes, and the weights of all nodes, together.
const maxBytes = 4 << 30

// infer computes the shape of every value from those of the inputs, which s holds
// already, node by node. It refuses shapes that do not go together, and what would
// take too much memory.
func (g *Graph) infer(s []shape) error {
	for v := range g.Values {
		if g.Values[v].isConst() {
			s[v] = g.Values[v].Shape
		}
	}
	total := 0
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for _, v := range n.In { // weights are packed once a node
			if v != none && g.Values[v].isConst() {
				total += len(g.Values[v].Data)
			}
		}
		if err := n.Type.shape(g, n, s); err != nil {
			return err
		}
		for _, v := range n.Out {
			if err := s[v].check(); err != nil {
				return unsupported(n.place(), "output of %w", err)
			}
			if total += g.Values[v].Datatype.bytes(s[v]); total > maxBytes {
				return unsupported(n.place(), "values of more than %d bytes in all", maxBytes)
			}
		}
	}
	return nil
}

// declared are the shapes of the values at the inputs' declared sizes, the largest
// ones.
func (g *Graph) declared() ([]shape, error) {
	s := make([]shape, len(g.Values))
	for v := range g.Values {
		if g.Values[v].Input {
			s[v] = g.Values[v].Shape
		}
	}
	return s, g.infer(s)
}

// cost estimates the work of one execute in multiplications.
func (g *Graph) cost(s []shape) float64 {
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

// lacks is the first reason why the library cannot run the graph, "" if there is none.
func (g *Graph) lacks() string {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for _, list := range [2][]int{n.In, n.Out} {
			for _, v := range list {
				if v != none && g.Values[v].Datatype.info().native == noNative {
					return fmt.Sprintf("%s: %v values", n.place(), g.Values[v].Datatype)
				}
			}
		}
		if n.Type.native != nil {
			if reason := n.Type.native(g, n); reason != "" {
				return fmt.Sprintf("%s: %s", n.place(), reason)
			}
		}
	}
	return ""
}
