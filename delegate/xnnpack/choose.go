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
		e = withTokens(e, tokenProducts(m.Graph, m.Shapes), m.InstanceThreads())
	}
	if !e.PrefersGo() {
		return false, nil
	}
	if _, err = b.openGo(ctx, m); ctx.Err() != nil {
		return false, err
	}
	return err == nil, nil
}

// computesTokens reports whether a graph is of a language model: most of its calls are for one token, whatever sizes are declared.
// Only such models have products with 4-bit weights whose rows vary. On several threads, graphs whose calls for one token are
// large enough for the threads of the library are none of these: [cost.TokenWeight] is not measured with them.
func computesTokens(c *graph.Compilation) bool {
	if !c.HasDynamicArgs() {
		return false
	}
	weights := 0.0
	for i := range c.Graph.Nodes {
		if n := &c.Graph.Nodes[i]; multipliesNibbles(c.Graph, n) {
			weights += float64(c.Shapes[n.In[1]].Numel())
		}
	}
	return weights > 0 && (c.InstanceThreads() < 2 || !graph.Parallel(weights, len(c.Graph.Nodes)))
}

// multipliesNibbles reports whether a node is a product with 4-bit weights.
func multipliesNibbles(g *graph.Graph, n *graph.Node) bool {
	return n.Type.Tag == graph.TagFullyConnected && g.Values[n.In[1]].Datatype.Info().Bits == 4
}

// tokenProducts returns how many products of an element with a 4-bit weight a call has.
func tokenProducts(g *graph.Graph, s []graph.Shape) (sum float64) {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; multipliesNibbles(g, n) {
			sum += float64(s[n.Out[0]].Numel()) * float64(n.InputChannels(g))
		}
	}
	return sum
}

// withTokens adds the times of as many calls for one token as a call for a prompt of the declared length has: a text of that length
// and an answer as long. The library computes a call for a token on one thread, while the Go engine divides each product.
func withTokens(e cost.Estimates, products float64, threads int) cost.Estimates {
	for engine := range e {
		if e[engine] != cost.Never {
			e[engine] += time.Duration(products * cost.TokenWeight[engine][min(threads, 2)-1])
		}
	}
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
