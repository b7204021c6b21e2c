package xnnpack

import (
	"github.com/etrun-go/etrun/delegate"
	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
)

// plan is a checked graph, ready to be compiled.
type plan struct {
	graph    *graph.Graph
	repaired *graph.Graph // the graph before it was fused, if faults of the exporter were repaired
	shapes   []graph.Shape
}

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

// plan reads a payload and plans its graph.
func (b Backend) plan(p *delegate.Payload) (*plan, error) {
	g, err := b.read(p)
	if err != nil {
		return nil, err
	}
	return planOf(g, p.Args)
}

// planOf repairs and fuses a graph, and returns its plan. args describes its arguments, nil for a graph without constants among them.
func planOf(g *graph.Graph, args []*delegate.ArgSpec) (*plan, error) {
	shapes, err := g.Repair()
	if err != nil {
		return nil, err
	}
	x := &plan{graph: g, shapes: shapes}
	if len(g.Repaired) > 0 {
		x.repaired = g.Snapshot()
	}
	x.shapes = g.ConstantArguments(args, shapes)
	graph.Fuse(g, x.shapes, native.RefusesNode)
	return x, nil
}

// work returns the work of a run at the declared sizes.
func (x *plan) work() regions.Work {
	var w regions.Work
	for i := range x.graph.Nodes {
		switch n := &x.graph.Nodes[i]; {
		case n.Type.Convolution, n.Type.Tag == graph.TagFullyConnected, n.Type.Tag == graph.TagBatchMatrixMultiply:
			w.Multiplications += float64(n.Type.Cost(x.graph, n, x.shapes))
		case n.Type.Tag == graph.TagStaticTranspose:
			w.Transposed += float64(x.shapes[n.Out[0]].Numel())
		default:
			w.Elements += float64(x.shapes[n.Out[0]].Numel())
		}
	}
	return w
}

// image returns an image without an engine. c is of the calls.
func (x *plan) image(c *graph.Compilation) *image {
	c.Graph, c.Shapes = x.graph, x.shapes
	return &image{Compilation: c, repaired: x.repaired}
}
