package native

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// The library turns NaN into numbers: in minima, maxima, bounds, pools and conversions, and into infinities in
// products. It computes roots of infinity wrongly. A region that was lowered from operators must not
// differ from them in that, so it runs in the library only as long as its numbers are finite: its
// inputs are checked before a call and its outputs after it, and the Go engine runs calls with others
// (see executeChecked). A region whose nodes make NaN of finite numbers, and hide it from the outputs, always runs in Go.

// mayHide is what a value of a region may contain although its inputs are finite.
type mayHide uint8

const (
	finite   mayHide = iota
	mayBeNaN         // from the operands of a function outside of its domain
	mayBeInf         // an infinity instead of NaN, from a product
)

// HidesNaN reports whether the library may compute finite outputs from finite inputs although the operators
// compute NaN: a function of an operand outside of its domain precedes a node that turns NaN into numbers.
func HidesNaN(g *graph.Graph) bool {
	state := make([]mayHide, len(g.Values))
	for i := range g.Nodes {
		n, most := &g.Nodes[i], finite
		for _, v := range n.In {
			if v != graph.None {
				most = max(most, state[v])
			}
		}
		if most >= mayBeNaN && losesNaN(n) || most == mayBeInf && n.Type.IsFunction() {
			return true
		}
		switch {
		case multiplies(n) && most > finite:
			most = mayBeInf
		case hasDomain(g, n):
			most = max(most, mayBeNaN)
		}
		for _, v := range n.Out {
			state[v] = most
		}
	}
	return false
}

// losesNaN reports whether the library computes numbers from NaN in such nodes.
func losesNaN(n *graph.Node) bool {
	switch n.Type.Name {
	case "Minimum", "Maximum", "Clamp", "MaxPooling2d", "AvgPooling2d", "Convert":
		return true
	}
	return n.Type.Bounded && (n.Min > -graph.Inf || n.Max < graph.Inf)
}

// hasDomain reports whether the node computes NaN or infinities from some finite numbers.
func hasDomain(g *graph.Graph, n *graph.Node) bool {
	switch n.Type.Name {
	case "SquareRoot", "ReciprocalSquareRoot", "Log":
		return true
	case "Div":
		return !g.Values[n.In[1]].IsConst()
	}
	return false
}
