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
	e := m.estimates
	if computesTokens(m.Compilation) {
		e = forTokens(e)
	}
	if !e.PrefersGo() {
		return false, nil
	}
	if _, err = b.openGo(ctx, m); ctx.Err() != nil {
		return false, err
	}
	return err == nil, nil
}

// computesTokens reports whether a graph is of a language model on several threads: most of its calls are for one token, whatever
// sizes are declared. Only such models have products with 4-bit weights whose rows vary. Graphs whose calls for one token are
// large enough for the threads of the library are none of these.
func computesTokens(c *graph.Compilation) bool {
	if c.InstanceThreads() < 2 || !c.HasDynamicArgs() {
		return false
	}
	weights := 0.0 // each is multiplied once for a token
	for i := range c.Graph.Nodes {
		n := &c.Graph.Nodes[i]
		if n.Type.Tag == graph.TagFullyConnected && c.Graph.Values[n.In[1]].Datatype.Info().Bits == 4 {
			weights += float64(c.Shapes[n.In[1]].Numel())
		}
	}
	return weights > 0 && !graph.Parallel(weights, len(c.Graph.Nodes))
}

// forTokens changes the estimates of a graph at its declared sizes such that calls for one token count as much. Reading the
// weights takes these calls the same time in both engines, but the library computes them on one thread, see
// [graph.Parallel], while the Go engine divides the loop of each product among its threads.
func forTokens(e cost.Estimates) cost.Estimates {
	e[cost.ByGo] = time.Duration(cost.ThreadedTime[cost.ByGo] * float64(e[cost.ByGo]))
	return e
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
