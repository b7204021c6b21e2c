package xnnpack

import (
	"cmp"
	"context"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var (
	_ regions.Compiler = Backend{}
	_ regions.Selector = Backend{}
)

// Unsupported implements regions.Selector.
func (b Backend) Unsupported(op *kernels.Op) string {
	if !lowering.Supports(op) {
		return lowering.NoNode
	}
	return ""
}

// Accepts implements regions.Compiler. It lowers the call alone, and checks whether the library
// supports the result.
func (b Backend) Accepts(g *regions.Graph, i int) string {
	return lowering.Reject(g, i, native.Refuses, func(*graph.Graph) string { return "" })
}

// lowerFor returns a lowering to graphs that the library may run.
func lowerFor(g *regions.Graph, shapeOnly bool) *lowering.Lowering {
	return lowering.New(g, shapeOnly, native.Refuses)
}

// planCalls lowers all calls and plans their graph.
func planCalls(l *lowering.Lowering, in *regions.Graph) (*image, error) {
	g, err := l.LowerAll()
	if err != nil {
		return nil, err
	}
	m, err := plan(g, nil)
	if err != nil {
		return nil, err
	}
	return m, l.CheckOutputs(g, m.Shapes, in.Outputs)
}

// keptPlan is the plan of a region, from when its work is known until it is compiled.
type keptPlan struct {
	*image
	deferred []lowering.DeferredConstant
}

// keep keeps the plan of a lowering of shapes only for the graph's next call, if only deferred constants are not
// final.
func keep(l *lowering.Lowering, in *regions.Graph, m *image) {
	if m.repaired != nil {
		return
	}
	if deferred, ok := l.Detach(); ok {
		in.Kept = &keptPlan{m, deferred}
	}
}

// Drop gives the memory of the plan to other lowerings.
func (k *keptPlan) Drop() {
	lowering.RecycleGraph(k.Graph)
}

// planRegion returns the plan of a region with all its constants. The graph no longer keeps it.
func planRegion(g *regions.Graph) (*image, error) {
	if k, ok := g.Kept.(*keptPlan); ok {
		g.Kept = nil
		lowering.FillConstants(k.Graph, k.deferred, g.DescribeOnly)
		return k.image, nil
	}
	return planCalls(lowerFor(g, false), g)
}

// CompileGraph implements regions.Compiler.
func (b Backend) CompileGraph(ctx context.Context, g *regions.Graph) (delegate.Image, error) {
	m, err := planRegion(g)
	if err != nil {
		return nil, err
	}
	release := g.Release
	if slices.ContainsFunc(g.Inputs, func(v int) bool { return g.Values[v].Dynamism != tensor.Static }) {
		release = nil // the calls remain
	}
	m.Limits, m.Scratch, m.ThreadCount, m.Release, m.Region = g.Limits, g.Scratch, g.Threads, m.Graph.DiscardOr(release), true
	m.DescribeOnly = g.DescribeOnly
	img, err := b.compile(ctx, m)
	if err != nil {
		return nil, err
	}
	if release != nil && m.Release != nil {
		m.releaseCopied(g)
	}
	return img, nil
}

// Measure implements regions.Compiler.
func (b Backend) Measure(g *regions.Graph) (work regions.Work, err error) {
	if k, ok := g.Kept.(*keptPlan); ok {
		return k.work(), nil
	}
	l := lowerFor(g, true)
	defer l.Recycle()
	m, err := planCalls(l, g)
	if err != nil {
		return work, err
	}
	if why := cmp.Or(native.PlanLimits(m.Graph, m.Shapes), native.Refuses(m.Graph, m.Shapes)); why != "" {
		return work, graph.Unsupported("", "%s", why)
	}
	keep(l, g, m)
	return m.work(), nil
}
