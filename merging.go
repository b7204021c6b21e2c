package etrun

import (
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
)

// openedPayload is a payload that lowering may merge with the calls around it.
type openedPayload struct {
	delegate.Opened
	payload *delegate.Payload
}

// merger returns the backend of a delegate if its payloads are opened first, and compiled when the
// method is rewritten and lowered: the backend may open its library meanwhile. It is nil if they are
// compiled at once, as in a method without other calls.
func (p *preparation) merger(id string) delegate.Merger {
	b, ok := p.config.backends[id].(delegate.Merger)
	if !ok {
		return nil
	}
	calls := 0
	for c := range p.spec.Chains {
		for i := range p.spec.Chains[c].Instructions {
			if k := p.spec.Chains[c].Instructions[i].Kind; k == pte.DelegateCall || k == pte.KernelCall {
				calls++
			}
		}
	}
	if calls < 2 {
		return nil
	}
	return b
}

// open stores payload i after checking it, and returns a placeholder for its image.
func (p *preparation) open(i int, by delegate.Merger, payload *delegate.Payload) (delegate.Image, error) {
	o, err := by.Open(payload)
	if err != nil {
		return nil, err
	}
	if p.opened == nil {
		p.opened = make([]*openedPayload, len(p.spec.Delegates))
	}
	p.opened[i] = &openedPayload{o, payload}
	return mergedImage{o.Inputs()}, nil
}

// payloads returns the payloads that lowering may merge.
func (p *preparation) payloads() []lower.Payload {
	list := make([]lower.Payload, len(p.opened))
	for i, o := range p.opened {
		if o != nil {
			list[i] = lower.Payload{Opened: o.Opened, Backend: p.spec.Delegates[i].ID}
		}
	}
	return list
}

// compileOpened compiles the opened payloads, except those that were merged into regions of m.
func (p *preparation) compileOpened(ctx context.Context, w *watch, m *ir.Method) error {
	merged := p.merged(m)
	for d, o := range p.opened {
		if o == nil || merged[d] {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		left := p.delegateLimits()
		for _, n := range p.needs {
			left = less(left, n)
		}
		img, err := p.image(d, o.payload, left, func() (delegate.Image, error) { return o.Compile(ctx) })
		if err != nil {
			return w.stageOf(trace.StageCompile, d, p.spec.Delegates[d].ID, 0, err)
		}
		p.images[d], p.needs[d], p.opened[d] = img, img.Needs(), nil
		p.hold(w, trace.MemoryPacked, p.needs[d].PackedBytes)
		if err := w.stageOf(trace.StageCompile, d, p.spec.Delegates[d].ID, p.needs[d].PackedBytes, nil); err != nil {
			return err
		}
	}
	return nil
}

// merged reports which delegates of the file m does not call, while the method before lowering
// does.
func (p *preparation) merged(m *ir.Method) []bool {
	merged := make([]bool, len(p.spec.Delegates))
	for k, method := range [...]*ir.Method{p.base.ir, m} {
		for i := range method.Steps {
			if s := &method.Steps[i]; s.Kind == ir.DelegateCall && s.Delegate < len(merged) {
				merged[s.Delegate] = k == 0
			}
		}
	}
	return merged
}

// mergedImage is the placeholder of a payload that was merged into a region and is no longer called.
type mergedImage struct{ inputs int }

func (m mergedImage) Needs() delegate.Needs { return delegate.Needs{Inputs: m.inputs} }

func (m mergedImage) Info() delegate.Info {
	return delegate.Info{Needs: m.Needs(), Facts: [][2]string{{"merged", "into a region"}}}
}

func (mergedImage) Unit(delegate.Instance) (delegate.Unit, error) { return mergedUnit{}, nil }

func (mergedImage) Close() error { return nil }

type mergedUnit struct{}

func (mergedUnit) Execute(context.Context, []*tensor.Value) error {
	return fmt.Errorf("%w: the payload was merged into a region", ErrExecute)
}

func (mergedUnit) Close() error { return nil }

// hasPayload reports whether a graph contains a payload, so that operators cannot execute it.
func hasPayload(g *delegate.Graph) bool {
	return slices.ContainsFunc(g.Calls, func(c delegate.GraphCall) bool { return c.Payload != nil })
}
