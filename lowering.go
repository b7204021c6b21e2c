package etrun

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/trace"
)

// compilers are the backends that take graphs and run here, by ID.
func (c *config) compilers() (list []delegate.Compiler) {
	for _, id := range slices.Sorted(maps.Keys(c.backends)) {
		if b, ok := c.backends[id].(delegate.Compiler); ok && b.Probe().Loaded {
			list = append(list, b)
		}
	}
	return list
}

// regions hands regions of the method to backends. Where the result would not fit into the
// program's limits, none is.
func (p *preparation) regions(ctx context.Context, w *watch, done *prepared) error {
	p.drop(w, len(p.spec.Delegates)) // an earlier attempt may have left some
	by := lower.Backends{Compilers: p.config.compilers(), MinProfit: p.config.minProfit}
	by.Compile = func(ctx context.Context, c delegate.Compiler, g *delegate.Graph) error {
		return p.compileGraph(ctx, w, c, g)
	}
	m, report, err := lower.Regions(ctx, done.ir, by)
	if err != nil {
		return w.stage(trace.StageLower, 0, p.placed(err))
	}
	done.lowered = report
	plain, count := done.ir, len(done.images)
	done.ir, done.images, done.needs = m, p.images, p.needs
	for i := range report.Regions {
		if r := &report.Regions[i]; r.Delegate >= 0 {
			done.backends = append(done.backends, r.Backend)
		}
	}
	if report.Taken() > 0 {
		if err := done.checkMemory(plan.Make(done.ir, done.conflicts, p.config.planning()), p.config, p.size); err != nil {
			report.Drop(err.Error())
			p.drop(w, count)
			done.ir, done.images, done.needs, done.backends = plain, done.images[:count], done.needs[:count], done.backends[:count]
		}
	}
	return w.stage(trace.StageLower, 0, nil)
}

// compileGraph makes the image of a region.
func (p *preparation) compileGraph(ctx context.Context, w *watch, c delegate.Compiler, g *delegate.Graph) error {
	if err := w.stage(trace.StageLower, 0, nil); err != nil { // what came before is no compiling
		return err
	}
	left := p.delegateLimits()
	for _, n := range p.needs {
		left = less(left, n)
	}
	g.Limits, g.Scratch = left, p.sharedScratch()
	img, err := c.CompileGraph(ctx, g)
	if err != nil {
		return err
	}
	needs := img.Needs()
	err = w.stageOf(trace.StageCompile, g.Index, c.ID(), needs.PackedBytes, nil)
	if err == nil && needs.Inputs != len(g.Inputs) {
		err = fmt.Errorf("%s: an image of %d inputs for a graph of %d", c.ID(), needs.Inputs, len(g.Inputs))
	}
	if err != nil {
		img.Close()
		return err
	}
	p.images, p.needs = append(p.images, img), append(p.needs, needs)
	p.hold(w, trace.MemoryPacked, needs.PackedBytes)
	return nil
}

// drop closes the images of regions that are not used after all.
func (p *preparation) drop(w *watch, count int) {
	for i, img := range p.images[count:] {
		img.Close()
		p.hold(w, trace.MemoryPacked, -p.needs[count+i].PackedBytes)
	}
	p.images, p.needs = p.images[:count], p.needs[:count]
}
