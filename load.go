package etrun

import (
	"context"

	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Load loads a method. The first load prepares what all instances of the method share: it resolves
// operators, backends and external data, compiles delegates, folds constants and plans memory.
// Concurrent loads wait for that preparation, each no longer than its ctx allows; it continues as
// long as one of them waits. The empty name means "forward". Errors are *LoadError; a MissingError
// lists everything that is not available.
func (p *Program) Load(ctx context.Context, name string, options ...MethodOption) (*Method, error) {
	i, err := p.methodIndex(name)
	if err != nil {
		return nil, p.config.watch(ctx, "").whole(trace.Load, name, 0, err)
	}
	name = p.spec.Methods[i].Name
	w := p.config.watch(ctx, name)
	if err := p.acquire(); err != nil {
		return nil, w.whole(trace.Load, name, 0, err)
	}
	m, err := p.load(ctx, w, i, options)
	if err != nil {
		p.release()
		return nil, w.whole(trace.Load, name, 0, loadError(p.path(), name, err, ErrFormat))
	}
	if err := w.whole(trace.Load, name, m.held[0]+m.held[1], nil); err != nil {
		m.Close()
		return nil, loadError(p.path(), name, err, ErrFormat)
	}
	return m, nil
}

func (p *Program) load(ctx context.Context, w *watch, index int, options []MethodOption) (*Method, error) {
	if err := p.spec.Methods[index].Err; err != nil {
		return nil, err
	}
	shared, err := p.slots[index].get(ctx, p)
	if err != nil {
		return nil, err
	}
	p.hold(w)
	m := p.newMethod(index, shared)
	m.observed = *newWatch(context.Background(), p.config.watchers, shared.IR.Name)
	if w != nil {
		w.instance, w.mark = m.observed.instance, m.observed.mark
	}
	for _, o := range options {
		o(m)
	}
	err = m.build(ctx, w)
	if err == nil && p.plain != nil {
		var plain *prepare.Method
		if plain, err = p.plain[index].get(ctx, p); err == nil {
			err = m.refer(ctx, plain)
		}
	}
	if err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}
