package xnnpack

import (
	"context"
	"slices"
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/cost"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
)

// estimates returns the estimates of a graph, for the library that the backend opens, with this number of threads. share is
// the part of the elements that inputs with varying sizes have.
func (b Backend) estimates(g *graph.Graph, s []graph.Shape, threads int, varies []bool, share float64) (e cost.Estimates) {
	miscomputed := native.Miscomputed(g, xnn.Locate(b.Library), s, slices.Contains(varies, true)) != ""
	parallel := threads > 1 && graph.Parallel(g.Cost(s), len(g.Nodes))
	for engine, r := range cost.Selected {
		if engine == cost.ByGo {
			g = goengine.FusedForGo(g, s)
		}
		ns := cost.LoadOf(g, s, r, engine, varies, share).Nanoseconds(&r.Rates)
		e[engine] = time.Duration(ns)
		if parallel {
			e[engine] = time.Duration(cost.ThreadedTime[engine]*ns) + cost.ThreadedNode[engine]*time.Duration(len(g.Nodes))
		}
	}
	if miscomputed {
		e[cost.ByLibrary] = cost.Never
	}
	return e
}

// declaredEstimates are the estimates at the declared sizes.
func (b Backend) declaredEstimates(g *graph.Graph, s []graph.Shape, threads int) cost.Estimates {
	return b.estimates(g, s, threads, make([]bool, g.Inputs), 1)
}

// choice returns the engine that runs a graph with these estimates.
func (b Backend) choice(e cost.Estimates) int {
	if b.automatic() && e.PrefersGo() {
		return cost.ByGo
	}
	return b.engine()
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
		m.estimates = b.declaredEstimates(m.Graph, m.Shapes, m.ThreadCount)
	}
	if !m.estimates.PrefersGo() {
		return false, nil
	}
	if _, err = b.openGo(ctx, m); ctx.Err() != nil {
		return false, err
	}
	return err == nil, nil
}

// openGo compiles the graph for the Go engine.
func (b Backend) openGo(ctx context.Context, m *image) (delegate.Image, error) {
	own, err := goengine.NewImage(ctx, m.Compilation, b.cache())
	if err != nil {
		return nil, err
	}
	m.by, m.cacheNote = own, own.CacheNote
	return m, nil
}
