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
}

// regions reports whether there are any.
func (m *lowered) regions() bool { return len(m.images) > 0 }

// without returns the method without regions, and why.
func (m *lowered) without(why error) *lowered {
	m.report.Drop(why.Error())
	return &lowered{base: m.base, ir: m.base.ir, report: m.report}
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
	by := lower.Backends{Compilers: l.compilers(), All: l.LowerAll, Payloads: l.payloads(), Dataflow: base.flow,
		Contradiction: base.contradiction, Compile: r.compileGraph}
	base.flow = nil
	m, report, err := lower.Regions(ctx, base.ir, by)
	if err := l.report.Stage(trace.StageLower, 0, err); err != nil {
		return nil, err
	}
	if r.lack != nil {
		return nil, r.lack
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
	to   *lowered
	lack error // of memory that the system has left
	ok   bool
}

// end frees the images that are not used.
func (r *regions) end() {
	if !r.ok {
		r.to.close(r.load)
	}
}

// compileGraph makes the image of a region.
func (r *regions) compileGraph(ctx context.Context, c lowering.Compiler, g *lowering.Graph) error {
	if err := r.report.Stage(trace.StageLower, 0, nil); err != nil { // the time before is not part of compiling
		return err
	}
	var packed [][]byte
	g.Limits, g.Scratch, g.Threads = r.limits(r.to.needs...), r.sharedScratch(), r.Pool.Size()
	g.DescribeOnly = r.DescribeOnly
	g.Release = func(data []byte) bool {
		if !r.mayRelease(data) {
			return false
		}
		packed = append(packed, data)
		return true
	}
	img, err := c.CompileGraph(ctx, g)
	if err != nil {
		if lack := r.lacks(packedBytes(r.files.needs)+packedBytes(r.to.needs), err); lack != nil {
			r.lack = lack
		}
		return err
	}
	needs := img.Needs()
	err = r.report.Compiled(g.Index, c.ID(), needs.PackedBytes, nil)
	if err == nil && needs.Inputs != len(g.Inputs) {
		err = fmt.Errorf("%s: the image has %d inputs, the graph %d", c.ID(), needs.Inputs, len(g.Inputs))
	}
	if err != nil {
		img.Close()
		return err
	}
	r.to.images, r.to.needs = append(r.to.images, img), append(r.to.needs, needs)
	r.to.read.add(g, packed)
	r.hold(trace.MemoryPacked, needs.PackedBytes)
	return nil
}
