package xnnpack

import (
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/cost"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
)

// plan is a checked graph, ready to be compiled.
type plan struct {
	graph     *graph.Graph
	repaired  *graph.Graph // the graph before it was fused, if faults of the exporter were repaired
	shapes    []graph.Shape
	estimates cost.Estimates // zero before they are needed
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
	goengine.Fuse(g, x.shapes, native.RefusesNode)
	return x, nil
}

// image returns an image without an engine. c is of the calls.
func (x *plan) image(c *graph.Compilation) *image {
	c.Graph, c.Shapes = x.graph, x.shapes
	return &image{Compilation: c, repaired: x.repaired, estimates: x.estimates}
}
