package prepare

import (
	"context"
	"fmt"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/trace"
)

// lowered is a method with regions that run on backends.
type lowered struct {
	base     *rewritten
	ir       *ir.Method
	images   []delegate.Image // of the regions
	needs    []delegate.Needs
	backends []string // IDs
	read     readByImages
	report   *lower.Report // nil if nothing was to be lowered
	tuning   *tuning       // nil unless regions are measured
}

// regions reports whether there are any.
func (m *lowered) regions() bool { return len(m.images) > 0 }

// without returns the method without regions, and why.
func (m *lowered) without(why error) *lowered {
	m.report.Drop(why.Error())
	return &lowered{base: m.base, ir: m.base.ir, report: m.report, tuning: m.tuning}
}

// close frees the images.
func (m *lowered) close(l *load) {
	for i, img := range m.images {
		img.Close()
		l.hold(trace.MemoryPacked, -m.needs[i].PackedBytes)
	}
	m.images, m.needs = nil, nil
}

// lower lowers regions of a method, unless that is off.
func (l *load) lower(ctx context.Context, base *rewritten) (*lowered, error) {
	if !l.Lower {
		return &lowered{base: base, ir: base.ir}, nil
	}
	r := &regions{load: l, to: &lowered{base: base}}
	defer r.end()
	by := lower.Backends{Compilers: l.compilers(), MinProfit: l.MinProfit, Payloads: l.payloads(), Dataflow: base.flow,
		Contradiction: base.contradiction, Compile: r.compileGraph}
	base.flow = nil
	if l.Tune {
		r.to.tuning = l.newTuning(ctx)
		by.Measure = r.measure
	}
	m, report, err := lower.Regions(ctx, base.ir, by)
	if err := l.report.Stage(trace.StageLower, 0, err); err != nil {
		return nil, err
	}
	r.to.ir, r.to.report, r.ok = m, report, true
	for i := range report.Regions {
		if region := &report.Regions[i]; region.Delegate >= 0 {
			r.to.backends = append(r.to.backends, region.Backend)
		}
	}
	return r.to, nil
}

// regions compiles the regions of a method.
type regions struct {
	*load
	to       *lowered
	measured regionImage // the latest measured image, until it is decided whether it is used; may have no image
	ok       bool
}

// regionImage is the image of a graph.
type regionImage struct {
	delegate.Image
	graph  *lowering.Graph
	packed [][]byte // constants that it does not need
}

// end frees the images that are not used.
func (r *regions) end() {
	r.dropMeasured()
	if r.to.tuning != nil {
		r.to.tuning.keep()
	}
	if !r.ok {
		r.to.close(r.load)
	}
}

// dropMeasured closes the image that was measured last, if its region was not taken.
func (r *regions) dropMeasured() {
	if r.measured.Image != nil {
		r.measured.Close()
		r.measured = regionImage{}
	}
}

// compileGraph makes the image of a region, unless it was made for a measurement.
func (r *regions) compileGraph(ctx context.Context, c lowering.Compiler, g *lowering.Graph) error {
	img := r.measured
	if img.Image != nil && img.graph == g {
		r.measured = regionImage{}
	} else {
		var err error
		if img, err = r.graphImage(ctx, c, g); err != nil {
			return err
		}
	}
	needs := img.Needs()
	r.to.images, r.to.needs = append(r.to.images, img.Image), append(r.to.needs, needs)
	r.to.read.add(g, img.packed)
	r.hold(trace.MemoryPacked, needs.PackedBytes)
	return nil
}

// graphImage compiles a graph.
func (r *regions) graphImage(ctx context.Context, c lowering.Compiler, g *lowering.Graph) (done regionImage, err error) {
	if err := r.report.Stage(trace.StageLower, 0, nil); err != nil { // the time before is not part of compiling
		return done, err
	}
	var packed [][]byte
	g.Limits, g.Scratch, g.Threads = r.limits(r.to.needs...), r.sharedScratch(), r.Pool.Size()
	g.Release = func(data []byte) bool {
		if !r.mayRelease(data) {
			return false
		}
		packed = append(packed, data)
		return true
	}
	img, err := c.CompileGraph(ctx, g)
	if err != nil {
		return done, err
	}
	needs := img.Needs()
	err = r.report.Compiled(g.Index, c.ID(), needs.PackedBytes, nil)
	if err == nil && needs.Inputs != len(g.Inputs) {
		err = fmt.Errorf("%s: the image has %d inputs, the graph %d", c.ID(), needs.Inputs, len(g.Inputs))
	}
	if err != nil {
		img.Close()
		return done, err
	}
	return regionImage{img, g, packed}, nil
}

// measure returns the measured times of a graph, from an earlier measurement or a new one. ok is
// false if the run fails: other inputs may still work.
func (r *regions) measure(ctx context.Context, c lowering.Compiler, g *lowering.Graph) (times lower.Times, ok bool, err error) {
	t, digest := r.to.tuning, regionDigest(c, g)
	if times, ok := t.times[digest]; ok {
		return times, true, nil
	}
	if hasPayload(g) || tuningBytes(g) > r.Limits.Planned || r.Limits.Total > 0 {
		return times, false, nil
	}
	r.dropMeasured()
	img, err := r.graphImage(ctx, c, g)
	if err != nil {
		return times, false, err
	}
	r.measured = img
	unit, err := img.Unit(delegate.Instance{Pool: r.Pool, Scratch: r.sharedScratch()})
	if err != nil {
		return times, false, err
	}
	defer unit.Close()
	if times, err = measure(ctx, g, r.Pool, unit); err != nil {
		return times, false, context.Cause(ctx)
	}
	t.times[digest], t.dirty = times, true
	return times, true, nil
}
