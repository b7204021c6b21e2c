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
	if w := countTokenWork(m.Graph, m.Shapes); w.weights > 0 && (w.products == w.weights || m.HasDynamicArgs()) {
		e = w.estimates(e, m.InstanceThreads())
	}
	if !e.PrefersGo() {
		return false, nil
	}
	if _, err = b.openGo(ctx, m); ctx.Err() != nil {
		return false, err
	}
	return err == nil, nil
}

// tokenWork is what a graph of a language model computes with 4-bit weights: how many there are, and in how many products of an
// element with a weight a call of the declared sizes has. Most of its calls are for one token, whatever sizes are declared. Only such
// models have 4-bit weights and rows that vary, or one row.
type tokenWork struct {
	weights, products float64
	nodes             int
}

func countTokenWork(g *graph.Graph, s []graph.Shape) (w tokenWork) {
	w.nodes = len(g.Nodes)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Type.Tag == graph.TagFullyConnected && g.Values[n.In[1]].Datatype.Info().Bits == 4 {
			w.weights += float64(s[n.In[1]].Numel())
			w.products += float64(s[n.Out[0]].Numel()) * float64(n.InputChannels(g))
		}
	}
	return w
}

// estimates returns the times of the products for a prompt of the declared length, if that is longer than a token, and for as many
// tokens of an answer, of the engines that run the graph. The rates of other graphs do not know how much memory these products read.
func (w tokenWork) estimates(e cost.Estimates, threads int) cost.Estimates {
	for engine := range e {
		if e[engine] == cost.Never {
			continue
		}
		ns := w.timeOfWeight(engine, threads)
		if w.products > w.weights {
			ns += cost.PromptProduct[engine][min(threads, 2)-1]
		}
		e[engine] = time.Duration(w.products * ns)
	}
	return e
}

// timeOfWeight returns the nanoseconds for each weight in a call for one token. The library computes small calls on one thread.
func (w tokenWork) timeOfWeight(engine, threads int) float64 {
	times := cost.TokenWeight[engine]
	if graph.Parallel(w.weights, w.nodes) {
		times = cost.LargeTokenWeight[engine]
	}
	return times[min(threads, 2)-1]
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
