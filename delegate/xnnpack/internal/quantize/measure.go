package quantize

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// Pair are the results of a layer as arguments of a graph: of floats, and computed from quantized operands.
type Pair struct{ Layer, Float, Quantized int }

// Measuring returns the plan's graph with each layer a second time, computed from the same inputs in its quantized form, nil if there is
// none. The results are further outputs.
func (p *Plan) Measuring() (*Built, error) {
	out := make([]bool, len(p.Graph.Nodes))
	for i, l := range p.layers {
		out[i] = l != graph.None && p.Layers[l].Reason != ""
	}
	return p.supported(out, p.measuring)
}

func (p *Plan) measuring(out []bool) *builder {
	b := p.newBuilder()
	b.Graph.Args = slices.Clone(b.Graph.Args)
	if p.Scheme.Name == lowering.Static8 {
		b.static = b.chosen(out)
		for v := range b.static.float {
			b.static.float[v] = true
		}
	}
	for i := range p.Graph.Nodes {
		n := &p.Graph.Nodes[i]
		b.add(graph.None, *n)
		if p.layers[i] == graph.None || out[i] || b.static != nil && !b.static.is[i] || len(b.Graph.Args)+2 > graph.MaxArgs {
			continue
		}
		again := b.again(i, n)
		b.pairs = append(b.pairs, Pair{p.layers[i], b.shown(n.Out[0]), b.shown(again)})
	}
	return b
}

// again adds the quantized form of a layer, and returns its result as floats.
func (b *builder) again(i int, n *graph.Node) int {
	y := b.Value(graph.FP32, b.Graph.Values[n.Out[0]].Shape, graph.Quant{})
	if b.static != nil {
		b.convert(graph.None, b.addInt8(i, n), y)
		return y
	}
	b.layers = append(b.layers, b.plan.layers[i])
	b.emit(i, n, n.In[0], y)
	return y
}

// shown makes a value an output if it is none, and returns the argument.
func (b *builder) shown(v int) int { return Show(b.Graph, v) }

// Show makes a value of a graph an output if it is no argument, and returns the argument.
func Show(g *graph.Graph, v int) int {
	x := &g.Values[v]
	if x.Arg == graph.None {
		x.Arg, x.Output = len(g.Args), true
		g.Args = append(g.Args, v)
	}
	return x.Arg
}
