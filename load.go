package etrun

import (
	"context"
	"fmt"

	"github.com/etrun-go/etrun/runtime/exec"
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
		return nil, p.config.observers.Watch(ctx, "").Whole(trace.Load, name, 0, err)
	}
	name = p.spec.Methods[i].Name
	w := p.config.observers.Watch(ctx, name)
	if err := p.acquire(); err != nil {
		return nil, w.Whole(trace.Load, name, 0, err)
	}
	m, err := p.load(ctx, w, i, options)
	if err != nil {
		p.release()
		return nil, w.Whole(trace.Load, name, 0, loadError(p.path(), name, err, ErrFormat))
	}
	if err := w.Whole(trace.Load, name, m.in.Bytes(), nil); err != nil {
		m.Close()
		return nil, loadError(p.path(), name, err, ErrFormat)
	}
	return m, nil
}

func (p *Program) load(ctx context.Context, w *exec.Watch, index int, options []MethodOption) (*Method, error) {
	if err := p.spec.Methods[index].Err; err != nil {
		return nil, err
	}
	m := &Method{program: p, index: index}
	for _, o := range options {
		o(m)
	}
	if m.shares != nil {
		if m.shares.program != p {
			return nil, fmt.Errorf("WithStateOf: the method belongs to another program: %w", ErrInput)
		}
		m.options.StateOf = m.shares.in
	}
	if p.plain != nil {
		m.options.Plain = func(ctx context.Context) (*prepare.Method, error) { return p.plain[index].Get(ctx, &p.shared) }
	}
	var err error
	if m.shared, err = p.slots[index].Get(ctx, &p.shared); err != nil {
		return nil, err
	}
	p.hold(w)
	m.in, err = exec.New(ctx, w, &p.shared, m.shared, m.options)
	return m, err
}
