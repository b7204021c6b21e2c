package xnnpack

import (
	"io"
	"sync"
	"time"

	"github.com/etrun-go/etrun/delegate"
)

// What it takes to have the library run graphs of a method, in about the measured times.
const (
	openTime    = 700 * time.Microsecond // once, to open it
	runtimeTime = 100 * time.Microsecond // to make a graph's runtime
	switchTime  = 150 * time.Nanosecond  // each run: from other graphs to one of the library's, beside the estimate
	longTime    = time.Millisecond       // of a run: here the library may save more than estimates tell
	paidRuns    = 250                    // runs in which the library is to make up for the first two
	maxLoss     = 10                     // without the library a run may be slower by one part in so many, as estimated
	leastGain   = 150 * time.Nanosecond  // of a run, for which the library is opened at all
)

// survey is the graphs of a method that were read before the first of them is compiled.
type survey struct {
	mu      sync.Mutex
	plans   map[int]*plan // by index of the payload, until it is compiled
	inGo    bool          // the library is not worth it
	time    time.Duration // of a run in the Go engine
	saving  time.Duration // of a run, by the library
	gain    time.Duration // the same without switches
	doubt   time.Duration // by how much more estimates may tell less than it gains
	graphs  int
	library int // graphs that it is estimated to be faster for
}

// plan is a checked graph, ready to be compiled.
type plan struct {
	graph  *graph
	mended *graph // where the exporter's faults were repaired: the graph before it was fused
	shapes []shape
}

// surveyKey is the survey's in a [delegate.Scratch].
type surveyKey struct{ Backend }

// Survey implements delegate.Surveyor. The library may run graphs slightly faster than the Go
// engine and still take longer to start than it saves, so the graphs of a method are considered
// together. Errors in payloads are reported by Compile.
func (b Backend) Survey(payloads []*delegate.Payload) error {
	if !b.automatic() || len(payloads) == 0 || payloads[0].Scratch == nil {
		return nil
	}
	s := &survey{plans: make(map[int]*plan)}
	for _, p := range payloads {
		x, err := b.plan(p)
		if err != nil {
			return nil
		}
		s.plans[p.Index] = x
		if s.add(b.estimates(x.graph, x.shapes)); s.time > longTime {
			break
		}
	}
	s.inGo = s.time <= longTime && !s.worth()
	_, err := payloads[0].Scratch.Part(surveyKey{b}, func() (io.Closer, error) { return s, nil })
	return err
}

// add counts a graph.
func (s *survey) add(e estimates) {
	s.time += e[byGo]
	s.graphs++
	if !e.prefersGo() {
		s.gain += e[byGo] - e[byLibrary]
		s.doubt += e.margin()
		s.saving += e[byGo] - e[byLibrary] - switchTime
		s.library++
	}
}

// worth reports whether the library makes up for the time that it takes to start, or makes
// runs so much faster that the start does not count. A single graph is decided by its
// estimates, as long as there is something to gain.
func (s *survey) worth() bool {
	switch {
	case s.gain+s.doubt < leastGain:
		return false
	case s.graphs == 1 || s.gain*maxLoss > s.time:
		return true
	}
	return s.saving*paidRuns > openTime+time.Duration(s.library)*runtimeTime
}

// read reads and checks a payload.
func (b Backend) read(p *delegate.Payload) (*graph, error) {
	g, err := readPayload(p, !b.NoRepair && !p.AsWritten)
	if err != nil {
		return nil, err
	}
	if len(p.Args) > 0 && len(p.Args) != len(g.Args) {
		return nil, payloadError("", "the call has %d arguments, the payload %d", len(p.Args), len(g.Args))
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

// planOf is a graph after its repair.
func planOf(g *graph) (*plan, error) {
	shapes, err := g.repair()
	if err != nil {
		return nil, err
	}
	x := &plan{graph: g, shapes: shapes}
	if len(g.mended) > 0 {
		x.mended = g.snapshot()
	}
	g.fuse(shapes)
	return x, nil
}

// image takes over the plan.
func (x *plan) image(m *image) *image {
	m.graph, m.mended, m.shapes = x.graph, x.mended, x.shapes
	return m
}

// surveyed is the plan of a payload that the survey has, else nil, and whether the method
// is one for the Go engine.
func (b Backend) surveyed(p *delegate.Payload) (x *plan, inGo bool) {
	if p.Scratch == nil {
		return nil, false
	}
	part, err := p.Scratch.Part(surveyKey{b}, func() (io.Closer, error) { return &survey{}, nil })
	if err != nil {
		return nil, false
	}
	s := part.(*survey)
	s.mu.Lock()
	defer s.mu.Unlock()
	x = s.plans[p.Index]
	delete(s.plans, p.Index)
	return x, s.inGo
}

// Close forgets the graphs.
func (s *survey) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.plans)
	return nil
}
