package etrun

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/trace"
)

// compilers returns the backends that compile graphs, by ID.
func (c *config) compilers() (list []delegate.Compiler) {
	for _, id := range slices.Sorted(maps.Keys(c.backends)) {
		if b, ok := c.backends[id].(delegate.Compiler); ok {
			list = append(list, b)
		}
	}
	return list
}

// regions lowers regions of the method to backends. If the result would exceed the program's
// limits, nothing is lowered.
func (p *preparation) regions(ctx context.Context, w *watch, done *prepared) error {
	p.drop(w, len(p.spec.Delegates)) // an earlier attempt may have left some
	p.packed, p.graphs = nil, nil
	by := lower.Backends{Compilers: p.config.compilers(), MinProfit: p.config.minProfit, Payloads: p.payloads(), Dataflow: p.flow}
	by.Compile = func(ctx context.Context, c delegate.Compiler, g *delegate.Graph) error {
		return p.compileGraph(ctx, w, c, g)
	}
	if p.config.lowering == LowerTune {
		done.tuning = p.newTuning(ctx)
		by.Measure = func(ctx context.Context, c delegate.Compiler, g *delegate.Graph) (lower.Times, bool, error) {
			return p.measure(ctx, w, done.tuning, c, g)
		}
		defer done.tuning.keep()
		defer p.dropMeasured()
	}
	m, report, err := lower.Regions(ctx, done.ir, by)
	if err != nil {
		return w.stage(trace.StageLower, 0, p.placed(err))
	}
	done.lowered = report
	if err := w.stage(trace.StageLower, 0, nil); err != nil {
		return err
	}
	if err := p.compileOpened(ctx, w, m); err != nil {
		return err
	}
	plain, count := done.ir, len(done.images)
	done.ir, done.images, done.needs = m, p.images, p.needs
	for i := range report.Regions {
		if r := &report.Regions[i]; r.Delegate >= 0 {
			done.backends = append(done.backends, r.Backend)
		}
	}
	if report.Taken() > 0 {
		if err := done.makePlan(p.config.planning()); err != nil {
			return err
		}
		if err := done.checkMemory(done.plan, p.config, p.size); err != nil {
			report.Drop(err.Error())
			p.drop(w, count)
			if err := p.compileOpened(ctx, w, plain); err != nil {
				return err
			}
			done.ir, done.images, done.needs, done.backends = plain, p.images, p.needs, done.backends[:count]
			p.packed, p.graphs, done.plan = nil, nil, nil
			return w.stage(trace.StageLower, 0, nil)
		}
	}
	return w.stage(trace.StageLower, 0, nil)
}

// compileGraph makes the image of a region, unless it was made for a measurement.
func (p *preparation) compileGraph(ctx context.Context, w *watch, c delegate.Compiler, g *delegate.Graph) error {
	r := p.measured
	if r.Image != nil && r.graph == g {
		p.measured = regionImage{}
	} else {
		var err error
		if r, err = p.graphImage(ctx, w, c, g); err != nil {
			return err
		}
	}
	img := r.Image
	p.images, p.needs = append(p.images, img), append(p.needs, img.Needs())
	p.keep(g, r.packed)
	p.hold(w, trace.MemoryPacked, img.Needs().PackedBytes)
	return nil
}

// regionImage is the image of a graph.
type regionImage struct {
	delegate.Image
	graph  *delegate.Graph
	packed [][]byte // constants that it does not need
}

// graphImage compiles a graph.
func (p *preparation) graphImage(ctx context.Context, w *watch, c delegate.Compiler, g *delegate.Graph) (r regionImage, err error) {
	if err := w.stage(trace.StageLower, 0, nil); err != nil { // the time before is not part of compiling
		return r, err
	}
	left := p.delegateLimits()
	for _, n := range p.needs {
		left = less(left, n)
	}
	var packed [][]byte
	g.Limits, g.Scratch, g.Threads, g.Release = left, p.sharedScratch(), p.pool.Size(), func(data []byte) bool {
		if !p.mayRelease(data) {
			return false
		}
		packed = append(packed, data)
		return true
	}
	img, err := c.CompileGraph(ctx, g)
	if err != nil {
		return r, err
	}
	needs := img.Needs()
	err = w.stageOf(trace.StageCompile, g.Index, c.ID(), needs.PackedBytes, nil)
	if err == nil && needs.Inputs != len(g.Inputs) {
		err = fmt.Errorf("%s: the image has %d inputs, the graph %d", c.ID(), needs.Inputs, len(g.Inputs))
	}
	if err != nil {
		img.Close()
		return r, err
	}
	return regionImage{img, g, packed}, nil
}

// measure returns the measured times of a graph, from an earlier measurement or a new one. ok is
// false if the run fails: other inputs may still work.
func (p *preparation) measure(ctx context.Context, w *watch, t *tuning, c delegate.Compiler, g *delegate.Graph) (lower.Times, bool, error) {
	digest := regionDigest(c, g)
	if times, ok := t.times[digest]; ok {
		return times, true, nil
	}
	if hasPayload(g) || tuningBytes(g) > p.config.limits.PlannedBytes || p.config.maxMemory > 0 {
		return lower.Times{}, false, nil
	}
	p.dropMeasured()
	img, err := p.graphImage(ctx, w, c, g)
	if err != nil {
		return lower.Times{}, false, err
	}
	p.measured = img
	unit, err := img.Unit(delegate.Instance{Pool: p.pool, Scratch: p.sharedScratch()})
	if err != nil {
		return lower.Times{}, false, err
	}
	defer unit.Close()
	times, err := measure(ctx, g, p.pool, unit)
	if err != nil {
		return lower.Times{}, false, context.Cause(ctx)
	}
	t.times[digest], t.dirty = times, true
	return times, true, nil
}

// dropMeasured closes the image that was measured last, if its region was not taken.
func (p *preparation) dropMeasured() {
	if p.measured.Image != nil {
		p.measured.Close()
		p.measured = regionImage{}
	}
}

// drop closes the images of regions that are not used.
func (p *preparation) drop(w *watch, count int) {
	for i, img := range p.images[count:] {
		img.Close()
		p.hold(w, trace.MemoryPacked, -p.needs[count+i].PackedBytes)
	}
	p.images, p.needs = p.images[:count], p.needs[:count]
}

// tellFolded reports the values that steps executed at load read and wrote.
func tellFolded(w *watch, before, after *ir.Method, folded []lower.Folded) {
	if w == nil || !w.wants.Any(trace.Values) {
		return
	}
	at := make(map[ir.Origin]bool, len(folded))
	for i := range folded {
		at[folded[i].Origin] = true
	}
	for i := range before.Steps {
		if s := &before.Steps[i]; at[s.Origin] {
			w.constants(trace.Read, before.StepName(s), s.Origin, after, s.Reads)
			w.constants(trace.Written, before.StepName(s), s.Origin, after, s.Writes)
		}
	}
}

// constants reports values of a step that were constants when it was executed at load.
func (w *watch) constants(kind trace.Kind, name string, at ir.Origin, m *ir.Method, values []int) {
	w.values = w.values[:0]
	for _, v := range values {
		w.values = append(w.values, constantValue(m, v))
	}
	now := trace.Now()
	e := w.set(kind, name, now, now, nil)
	e.Chain, e.Instruction, e.Values = at.Chain, at.Index, w.values
	w.tell()
}

// constantValue returns a tensor with known bytes.
func constantValue(m *ir.Method, v int) trace.Value {
	d := m.Values[v].Tensor
	t := tensor.Make(d.DType, d.Sizes, d.DimOrder, tensor.Static)
	t.Const = true
	t.Bind(m.Storages[m.Values[v].Storage].Data)
	value := tensor.TensorValue(t)
	return trace.Value{Index: v, Name: d.Name, Value: &value}
}
