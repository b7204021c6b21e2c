package xnnpack

import (
	"github.com/etrun-go/etrun/delegate"
	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
)

// read reads and checks a payload.
func (b Backend) read(p *delegate.Payload) (*graph.Graph, error) {
	g, err := graph.ReadPayload(p, !b.NoRepair && !p.AsWritten)
	if err != nil {
		return nil, err
	}
	if len(p.Args) > 0 && len(p.Args) != len(g.Args) {
		return nil, graph.PayloadError("", "the call has %d arguments, the payload %d", len(p.Args), len(g.Args))
	}
	return g, nil
}

// plan repairs and fuses a graph, and returns its image, without an engine. args describes its arguments, nil for a graph without
// constants among them.
func plan(g *graph.Graph, args []*delegate.ArgSpec) (*image, error) {
	m, err := unfused(g, args)
	if err == nil {
		graph.Fuse(g, m.Shapes, native.RefusesNode)
	}
	return m, err
}

// unfused is plan for a graph that keeps the nodes of its payload.
func unfused(g *graph.Graph, args []*delegate.ArgSpec) (*image, error) {
	shapes, err := g.Repair()
	if err != nil {
		return nil, err
	}
	m := &image{Compilation: &graph.Compilation{Graph: g, Args: args}}
	if len(g.Repaired) > 0 {
		m.repaired = g.Snapshot()
	}
	m.Shapes = g.ConstantArguments(args, shapes)
	return m, nil
}

// manyChannels is how many channels a convolution computes at a time.
const manyChannels = 16

// work returns the work of a run at the declared sizes.
func (m *image) work() regions.Work {
	var w regions.Work
	for i := range m.Graph.Nodes {
		switch n := &m.Graph.Nodes[i]; {
		case n.Type.Convolution, n.Type.Tag == graph.TagFullyConnected, n.Type.Tag == graph.TagBatchMatrixMultiply:
			cost := float64(n.Type.Cost(m.Graph, n, m.Shapes))
			if w.Multiplications += cost; n.Type.Convolution && m.Shapes[n.Out[0]].Last() < manyChannels {
				w.Narrow += cost
			}
		case n.Type.Tag == graph.TagStaticTranspose:
			w.Transposed += float64(m.Shapes[n.Out[0]].Numel())
		default:
			w.Elements += float64(m.Shapes[n.Out[0]].Numel())
		}
	}
	return w
}
