package xnnpack

import (
	"context"
	"slices"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
)

var _ lowering.Merger = Backend{}

// payload is one that was read and checked. Its graph can be merged into another one.
type payload struct {
	backend Backend
	of      *delegate.Payload
	graph   *graph.Graph  // as read; must not be modified
	takes   time.Duration // cached result of Estimate
}

// Open implements lowering.Merger.
func (b Backend) Open(p *delegate.Payload) (lowering.Opened, error) {
	g, err := b.read(p)
	if err != nil {
		return nil, err
	}
	return &payload{backend: b, of: p, graph: g}, nil
}

// Inputs implements lowering.Opened.
func (o *payload) Inputs() int { return o.graph.Inputs }

// Compile implements lowering.Opened.
func (o *payload) Compile(ctx context.Context) (delegate.Image, error) {
	return o.backend.Compile(ctx, o.of)
}

// Estimate implements lowering.Opened.
func (o *payload) Estimate() time.Duration {
	if o.takes == 0 {
		o.takes = o.estimate()
	}
	return o.takes
}

// estimate returns the run time on the engine that Compile would choose. It is 0 for graphs with
// faults, which are not merged.
func (o *payload) estimate() time.Duration {
	g := o.graph.Snapshot()
	g.Prune()
	s, err := g.Declared()
	if err != nil {
		return 0
	}
	s = g.ConstantArguments(o.of.Args, s)
	goengine.Fuse(g, s, native.RefusesNode)
	e := o.backend.declaredEstimates(g, s, o.of.Threads)
	return e[o.backend.choice(e)]
}

// Reaches implements lowering.Examined.
func (o *payload) Reaches(inputs []bool) (outputs []bool) {
	g := o.graph
	reached := make([]bool, len(g.Values))
	for i := range g.Values {
		v := &g.Values[i]
		reached[i] = v.Input && v.Arg >= 0 && v.Arg < len(inputs) && inputs[v.Arg]
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if slices.ContainsFunc(n.In, func(v int) bool { return v >= 0 && reached[v] }) {
			for _, v := range n.Out {
				reached[v] = true
			}
		}
	}
	outputs = make([]bool, len(g.Args)-g.Inputs)
	for i := range g.Values {
		if v := &g.Values[i]; v.Output && v.Arg >= g.Inputs && reached[i] {
			outputs[v.Arg-g.Inputs] = true
		}
	}
	return outputs
}

// Constants implements lowering.Examined.
func (o *payload) Constants() (list []lowering.Constant) {
	for i := range o.graph.Values {
		if v := &o.graph.Values[i]; v.Data != nil && !v.Lent {
			list = append(list, lowering.Constant{Elements: v.Shape.Numel(), Data: v.Data})
		}
	}
	return list
}

// Graph returns the graph for lowering, which does not modify it.
func (o *payload) Graph() *graph.Graph { return o.graph }
