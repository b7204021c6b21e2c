package prepare

import (
	"context"
	"errors"

	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Run makes all stages. It stops between two of them, or two delegates, if ctx is canceled. An error at an instruction
// is an *ir.StepError.
func (p *Preparation) Run(ctx context.Context, r Reporter) (*Method, error) {
	if p.files.lost != nil {
		return nil, p.files.lost
	}
	l := &load{p, r}
	l.findAvailable()
	if p.base == nil {
		base, err := l.describe(ctx)
		if err != nil {
			return nil, err
		}
		p.base = base
	}
	low, err := l.lower(ctx, p.base)
	if err != nil {
		return nil, err
	}
	defer func() {
		if p.done == nil {
			low.close(l)
		}
	}()
	m, err := l.complete(ctx, low)
	if err == nil {
		err = l.checkAvailable(m)
	}
	if err != nil {
		return nil, err
	}
	m.Released += l.release(m.IR, m.read)
	m.scratch.Store(p.scratch)
	p.done = m
	return m, nil
}

// describe makes the stages that depend on no backend but those of the file.
func (l *load) describe(ctx context.Context) (*rewritten, error) {
	linked, err := l.link()
	if err != nil {
		return nil, err
	}
	opened, err := l.open(ctx, linked)
	if err != nil {
		return nil, err
	}
	built, err := l.build(opened)
	if err != nil {
		return nil, err
	}
	return l.rewrite(ctx, built)
}

// complete makes the stages after lowering. Without room for what was lowered it completes the method before.
func (l *load) complete(ctx context.Context, low *lowered) (*Method, error) {
	m, err := l.finish(ctx, low)
	if err != nil {
		return nil, err
	}
	if low.regions() {
		if _, err := m.CheckMemory(m.Plan, l.Limits, l.Size); err != nil {
			low.close(l)
			if m, err = l.finish(ctx, low.without(err)); err != nil {
				return nil, err
			}
		}
	}
	if l.Lower {
		if err := l.report.Stage(trace.StageLower, 0, nil); err != nil {
			return nil, err
		}
	}
	return m, l.report.Stage(trace.StagePlan, m.Plan.Bytes(), nil)
}

// finish compiles what is left and plans the memory.
func (l *load) finish(ctx context.Context, low *lowered) (*Method, error) {
	c, err := l.compile(ctx, low)
	if err != nil {
		return nil, err
	}
	return l.plan(c)
}

// build makes the method of the file, and refuses what would compute something else than its author meant.
func (l *load) build(o *opened) (*built, error) {
	m, err := ir.Build(l.Method, o.links)
	if err := l.report.Stage(trace.StageBuild, 0, err); err != nil {
		return nil, err
	}
	b := &built{ir: m}
	if b.suspect, err = l.checkStates(m); err != nil {
		return nil, err
	}
	baked := l.checkBaked(m)
	if len(baked) > 0 && l.Strict {
		return nil, errors.New(baked[0])
	}
	b.suspect = append(b.suspect, baked[:min(len(baked), maxSuspects)]...)
	return b, l.checkPlan(b)
}

// Close frees the images. No instance of the method is open.
func (p *Preparation) Close(r Reporter) error {
	first := p.files.close()
	if p.done != nil {
		for _, img := range p.done.Images[len(p.Method.Delegates):] {
			if err := img.Close(); err != nil && first == nil {
				first = err
			}
		}
	}
	p.scratch.Close()
	for kind, bytes := range p.reported {
		r.Memory(kind, -bytes)
	}
	return first
}
