package etrun

import (
	"context"
	"fmt"
	"sync"
)

// Pool holds up to a number of instances of one method, for callers in many
// goroutines. Instances are made when they are first needed. They share the
// program's constants and packed weights, not state.
type Pool struct {
	program *Program
	method  string
	tokens  chan struct{}

	mu     sync.Mutex
	free   []*Method
	closed bool
}

// NewPool returns a pool of up to n instances of a method.
func (p *Program) NewPool(method string, n int) (*Pool, error) {
	if _, err := p.methodIndex(method); err != nil {
		return nil, err
	}
	return &Pool{program: p, method: method, tokens: make(chan struct{}, max(n, 1))}, nil
}

// Do calls fn with an instance that nobody else uses meanwhile. It waits for one
// until ctx ends. An instance whose operator panicked is replaced.
func (p *Pool) Do(ctx context.Context, fn func(*Method) error) error {
	select {
	case p.tokens <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.tokens }()
	m, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer p.give(m)
	return fn(m)
}

func (p *Pool) take(ctx context.Context) (*Method, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, fmt.Errorf("pool: %w", ErrClosed)
	}
	if n := len(p.free); n > 0 {
		m := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return m, nil
	}
	p.mu.Unlock()
	return p.program.Load(ctx, p.method)
}

func (p *Pool) give(m *Method) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || m.poison != nil {
		m.Close()
		return
	}
	p.free = append(p.free, m)
}

// Close closes the idle instances, and each busy one when its Do ends.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var first error
	for _, m := range p.free {
		if err := m.Close(); err != nil && first == nil {
			first = err
		}
	}
	p.free = nil
	return first
}
