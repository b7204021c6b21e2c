package xnnpack

import (
	"context"
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

// Graph returns the graph for lowering, which does not modify it.
func (o *payload) Graph() *graph.Graph { return o.graph }
