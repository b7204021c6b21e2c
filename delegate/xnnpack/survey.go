package xnnpack

import (
	"io"
	"sync"
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/cost"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
)

// Measured times of the library, and limits for the choice of the engine.
const (
	openTime    = 700 * time.Microsecond // once, to open the library
	runtimeTime = 100 * time.Microsecond // to create the runtime of a graph
	switchTime  = 150 * time.Nanosecond  // per run: to switch from other graphs to one of the library, in addition to the estimate
	paidRuns    = 250                    // runs in which the library must save as much time as its start costs
	maxLoss     = 25                     // without the library a run may be slower by 1/maxLoss, as estimated
	minGain     = 150 * time.Nanosecond  // per run; the library is not opened for less
)

// survey holds the graphs of a method, which are read before the first of them is compiled.
type survey struct {
	mu      sync.Mutex
	plans   map[int]*plan // by index of the payload; removed when it is compiled
	inGo    bool          // the library does not save enough time
	time    time.Duration // of a run in the Go engine
	saving  time.Duration // per run with the library
	gain    time.Duration // saving without the cost of switches
	doubt   time.Duration // margin of error of gain
	graphs  int
	library int // number of graphs for which the library is estimated to be faster
}

// plan is a checked graph, ready to be compiled.
type plan struct {
	graph     *graph.Graph
	repaired  *graph.Graph // the graph before it was fused, if faults of the exporter were repaired
	shapes    []graph.Shape
	estimates cost.Estimates // zero before a survey
}

// surveyKey is the key of the survey in a [delegate.Scratch].
type surveyKey struct{ Backend }

// Survey implements delegate.Surveyor. The library may run graphs slightly faster than the Go
// engine and still need more time to start than it saves, so the graphs of a method are estimated
// together. Compile reports errors in payloads.
func (b Backend) Survey(payloads []*delegate.Payload) error {
	if !b.automatic() || len(payloads) == 0 || payloads[0].Scratch == nil {
		return nil
	}
	s := &survey{plans: make(map[int]*plan, len(payloads))}
	for i, p := range payloads {
		x, err := b.plan(p)
		if err != nil {
			return nil
		}
		x.estimates = b.estimates(x.graph, x.shapes, p.Threads)
		s.plans[p.Index] = x
		if s.add(x.estimates); s.time > cost.LongTime {
			break
		}
		if i > 0 && i == len(payloads)/2 && s.worth() { // the library will very likely run: open it meanwhile
			go xnn.Open(b.Library)
		}
	}
	s.inGo = s.time <= cost.LongTime && !s.worth()
	_, err := payloads[0].Scratch.Part(surveyKey{b}, func() (io.Closer, error) { return s, nil })
	return err
}

// add adds the estimates of a graph.
func (s *survey) add(e cost.Estimates) {
	s.time += e[cost.ByGo]
	s.graphs++
	if !e.PrefersGo() {
		s.gain += e[cost.ByGo] - e[cost.ByLibrary]
		s.doubt += e.Expected() - e[cost.ByGo]
		s.saving += e[cost.ByGo] - e[cost.ByLibrary] - switchTime
		s.library++
	}
}

// worth reports whether the library saves the time that it needs to start, or makes runs so much
// faster that the start does not matter. A single graph is decided by its own estimates, unless the
// gain is less than minGain.
func (s *survey) worth() bool {
	switch {
	case s.gain+s.doubt < minGain:
		return false
	case s.graphs == 1 || s.gain*maxLoss > s.time:
		return true
	}
	return s.saving*paidRuns > openTime+time.Duration(s.library)*runtimeTime
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
	return planOf(g)
}

// planOf repairs and fuses a graph, and returns its plan.
func planOf(g *graph.Graph) (*plan, error) {
	shapes, err := g.Repair()
	if err != nil {
		return nil, err
	}
	x := &plan{graph: g, shapes: shapes}
	if len(g.Repaired) > 0 {
		x.repaired = g.Snapshot()
	}
	goengine.Fuse(g, shapes, native.RefusesNode)
	return x, nil
}

// image returns an image without an engine. c is of the calls; InGo says that the method is to run in the Go engine.
func (x *plan) image(c *graph.Compilation, inGo bool) *image {
	c.Graph, c.Shapes = x.graph, x.shapes
	return &image{Compilation: c, repaired: x.repaired, estimates: x.estimates, inGo: inGo}
}

// surveyOf returns the survey of a payload's method, nil if there was none.
func (b Backend) surveyOf(p *delegate.Payload) *survey {
	if p.Scratch == nil {
		return nil
	}
	part, err := p.Scratch.Part(surveyKey{b}, func() (io.Closer, error) { return &survey{}, nil })
	if err != nil {
		return nil
	}
	return part.(*survey)
}

// planned returns the plan of a payload, nil if it has none.
func (s *survey) planned(p *delegate.Payload) *plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plans[p.Index]
}

// surveyed returns the plan of a payload that was surveyed, else nil, and reports whether the
// method is to run in the Go engine.
func (b Backend) surveyed(p *delegate.Payload) (x *plan, inGo bool) {
	s := b.surveyOf(p)
	if s == nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x = s.plans[p.Index]
	delete(s.plans, p.Index)
	return x, s.inGo
}

// Close drops the graphs.
func (s *survey) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.plans)
	return nil
}
