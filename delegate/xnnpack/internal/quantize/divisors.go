package quantize

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// poles are the nodes whose function has a pole at 0, by the operand: an error that is small beside the other elements of the operand
// makes a small one 0, and the result infinite, or no number.
var poles = map[uint8]int{graph.TagDiv: 1, graph.TagReciprocalSquareRoot: 0, graph.TagLog: 0}

// Results of positive are not 0 where the operands are, nor those of shifted with a constant. Products have many terms.
var (
	positive = []uint8{graph.TagSigmoid, graph.TagExp, graph.TagCos, graph.TagSoftmax, graph.TagBatchMatrixMultiply}
	shifted  = []uint8{graph.TagAdd, graph.TagSubtract, graph.TagMaximum, graph.TagMinimum}
)

// Divisors leaves the nodes in floats whose results are divided by; is reports whether others divide by an argument, an output of the graph.
// It returns the inputs that are divided by. Weights alone leave small values as they are.
func (p *Plan) Divisors(is func(arg int) bool) (inputs []int) {
	g := p.Graph
	if p.Scheme.Name == lowering.Weights8 {
		return nil
	}
	for k, v := range g.Args[g.Inputs:] {
		p.divisors[v] = p.divisors[v] || is(g.Inputs+k)
	}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		if pole, ok := poles[n.Type.Tag]; ok {
			p.divisors[n.In[pole]] = true
		}
		if !p.divisors[n.Out[0]] || n.Min > 0 {
			continue
		}
		if l := p.layers[i]; l != graph.None && len(p.Layers[l].Forms) > 0 {
			p.Layers[l].Forms, p.Layers[l].Reason = nil, "its results are divided by, and small ones would be 0"
		}
		constant := slices.ContainsFunc(n.In, func(v int) bool { return v != graph.None && g.Values[v].IsConst() })
		if !n.Type.Weighted() && !slices.Contains(positive, n.Type.Tag) && !(constant && slices.Contains(shifted, n.Type.Tag)) {
			for _, v := range n.In {
				p.divisors[v] = true
			}
		}
	}
	for k, v := range g.Args[:g.Inputs] {
		if p.divisors[v] {
			inputs = append(inputs, k)
		}
	}
	return inputs
}
