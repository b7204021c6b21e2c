package xnnpack

import (
	"context"
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/cost"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
)

// estimates returns the estimates of a graph at its declared sizes, for the library that the backend
// opens, with this number of threads.
func (b Backend) estimates(g *graph.Graph, s []graph.Shape, threads int) (e cost.Estimates) {
	varies, lib := make([]bool, g.Inputs), xnn.Locate(b.Library)
	for _, engine := range []int{cost.ByLibrary, cost.ByGo} {
		e[engine] = estimateRun(g, lib, s, engine, varies, 1)
	}
	if native.Miscomputed(g, lib, s, false) != "" {
		e[cost.ByLibrary] = cost.Never
	}
	if threads > 1 && graph.Parallel(g.Cost(s), len(g.Nodes)) {
		for engine := range e {
			e[engine] = time.Duration(cost.ThreadedTime[engine]*float64(e[engine])) + cost.ThreadedNode[engine]*time.Duration(len(g.Nodes))
		}
	}
	return e
}

// estimateFor returns the estimate of the engine that a backend would choose for a payload on its own. The
// survey of a method's payloads may choose the other one.
func estimateFor(e cost.Estimates, b Backend) time.Duration {
	if b.automatic() && e.PrefersGo() {
		return e[cost.ByGo]
	}
	return e[b.engine()]
}

// isGo reports whether the Go engine runs every graph.
func (b Backend) isGo() bool { return b.Engine == EngineGo || b.Engine == formerName }

// automatic reports whether the engine is chosen for each graph. A folder for packed weights
// holds those of the library, which then runs every graph that it supports.
func (b Backend) automatic() bool {
	return (b.Engine == "" || b.Engine == EngineAuto) && b.WeightsCache == ""
}

// choose prepares the image for the Go engine if that is faster; done is false if the library
// should run it. A library whose location was specified must exist in any case.
func (b Backend) choose(ctx context.Context, m *image) (done bool, err error) {
	if !b.automatic() {
		return false, nil
	}
	if xnn.Named(b.Library) && !xnn.Found(b.Library) {
		if _, err := xnn.Open(b.Library); err != nil {
			return false, &delegate.Error{Backend: ID, Reason: delegate.ErrMissing, Err: err}
		}
	}
	if m.estimates == (cost.Estimates{}) {
		m.estimates = b.estimates(m.Graph, m.Shapes, m.ThreadCount)
	}
	if inGo := m.inGo || m.estimates.PrefersGo() || m.Region && m.estimates.RegionInGo(); !inGo {
		return false, nil
	}
	if _, err = m.openGo(ctx); ctx.Err() != nil {
		return false, err
	}
	return err == nil, nil
}
