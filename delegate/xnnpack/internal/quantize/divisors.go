package quantize

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// poles are the nodes whose function has a pole at 0, by the operand: an error that is small beside the other elements of the operand
// makes a small one 0, and the result infinite, or no number.
var poles = map[uint8]int{graph.TagDiv: 1, graph.TagReciprocalSquareRoot: 0, graph.TagLog: 0}

// Results of positive are not 0 where the operands are, nor those of shifted with a constant.
var (
	positive = []uint8{graph.TagSigmoid, graph.TagExp, graph.TagCos, graph.TagSoftmax}
	shifted  = []uint8{graph.TagAdd, graph.TagSubtract, graph.TagMaximum, graph.TagMinimum}
)

// keepsZero reports whether results of a node may be 0 where the operands are small.
func (p *Plan) keepsZero(n *graph.Node) bool {
	values := p.Graph.Values
	constant := func(v int) bool { return v != graph.None && values[v].IsConst() }
	switch {
	case n.Type.Weighted():
		channels := max(values[n.Out[0]].Shape.FromEnd(0), 1)
		return values[n.In[1]].Shape.Numel()/channels < lowering.FewTerms && !slices.ContainsFunc(n.In[2:], constant)
	case n.Type.Tag == graph.TagBatchMatrixMultiply:
		return values[n.In[0]].Shape.FromEnd(0) < lowering.FewTerms
	case slices.Contains(shifted, n.Type.Tag):
		return !slices.ContainsFunc(n.In, constant)
	}
	return !slices.Contains(positive, n.Type.Tag)
}

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
		if p.keepsZero(n) {
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
