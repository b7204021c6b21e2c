package xnnpack

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/duration"
)

// estimates are the approximate times of a run, by engine.
type estimates [2]time.Duration

// never is the estimate of an engine that does not run a graph.
const never = time.Duration(math.MaxInt64 / 4)

// Times of a run on two threads of graphs that several threads compute in the library: relative to one thread, and in
// addition for each node, after which threads synchronize. Measured on 17 models, within 0.15 of the ratios of both.
var (
	threadedTime = [...]float64{byLibrary: 0.6, byGo: 0.7}
	threadedNode = [...]time.Duration{byLibrary: 2300 * time.Nanosecond, byGo: 1500 * time.Nanosecond}
)

// estimates returns the estimates of a graph at its declared sizes, for the library that the backend
// opens, with this number of threads.
func (b Backend) estimates(g *graph, s []shape, threads int) (e estimates) {
	varies, lib := make([]bool, g.Inputs), xnn.Locate(b.Library)
	for _, engine := range []int{byLibrary, byGo} {
		e[engine] = g.estimate(lib, s, engine, varies, 1)
	}
	if g.miscomputed(lib, s, false) != "" {
		e[byLibrary] = never
	}
	if threads > 1 && parallel(g.cost(s), len(g.Nodes)) {
		for engine := range e {
			e[engine] = time.Duration(threadedTime[engine]*float64(e[engine])) + threadedNode[engine]*time.Duration(len(g.Nodes))
		}
	}
	return e
}

// goFactors correct the Go engine's estimates of graphs, by their time, and include a margin. Nodes
// run faster in a graph than alone, because their operands are in the cache; those of large graphs
// read weights from memory. Measured over estimated times: 0.8 to 1 from 50 µs to 1 ms, up to 1.2
// above. Shorter runs depend on more than rates: their factors are larger margins.
var goFactors = [...]struct {
	upTo   time.Duration
	factor float64
}{
	{20 * time.Microsecond, 1.12},
	{50 * time.Microsecond, 1.05},
	{time.Millisecond, 0.97},
	{math.MaxInt64, 1.07},
}

// expected returns the corrected estimate of the Go engine.
func (e estimates) expected() time.Duration {
	i := 0
	for e[byGo] > goFactors[i].upTo {
		i++
	}
	return time.Duration(goFactors[i].factor * float64(e[byGo]))
}

// prefersGo reports whether the Go engine probably runs a graph faster than the library.
func (e estimates) prefersGo() bool { return e.expected() < e[byLibrary] }

// regionInGo reports whether the Go engine should run a region. The library must save 1/regionLoss of
// the time: its memory is not in the method's plan, and it needs time to start.
func (e estimates) regionInGo() bool {
	return e.prefersGo() || e[byGo] <= longTime && (e[byGo]-e[byLibrary])*regionLoss < e[byGo]
}

// of returns the estimate of the engine that a backend would choose for a payload on its own. The
// survey of a method's payloads may choose the other one.
func (e estimates) of(b Backend) time.Duration {
	if b.automatic() && e.prefersGo() {
		return e[byGo]
	}
	return e[b.engine()]
}

func (e estimates) String() string {
	if e[byLibrary] >= never/2 {
		return fmt.Sprintf("%s in Go, not in the library", duration.Format(e[byGo]))
	}
	return fmt.Sprintf("%s in Go, %s in the library", duration.Format(e[byGo]), duration.Format(e[byLibrary]))
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
	if m.estimates == (estimates{}) {
		m.estimates = b.estimates(m.graph, m.shapes, m.threadCount)
	}
	if inGo := m.inGo || m.estimates.prefersGo() || m.region && m.estimates.regionInGo(); !inGo {
		return false, nil
	}
	if _, err = m.openGo(ctx); ctx.Err() != nil {
		return false, err
	}
	return err == nil, nil
}
