package etrun

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"
)

// Pool manages up to a fixed number of instances of one method for concurrent callers. Instances
// are loaded on demand or by Warm, and share the program's constants and packed weights. Each call
// of Do gets an instance in its initial state: no inputs or state of one caller reach the next. A
// Pool is safe for concurrent use.
type Pool struct {
	program *Program
	method  string
	config  poolConfig
	turns   chan struct{} // one element per instance in use
	warming chan struct{} // one element while Warm collects instances
	ended   chan struct{} // closed by Close

	mu    sync.Mutex
	idle  []*Method
	stats PoolStats
}

type poolConfig struct {
	queue   int // maximum number of waiting callers
	keep    bool
	methods []MethodOption
}

// PoolOption configures [Program.NewPool].
type PoolOption func(*poolConfig)

// WithQueue limits the number of callers waiting for an instance to n; a further caller immediately
// gets a *QueueError. By default there is no limit.
func WithQueue(n int) PoolOption { return func(c *poolConfig) { c.queue = max(n, 0) } }

// WithKeptState skips the Reset of an instance between callers: its state and inputs remain for the
// next caller, which may get any instance.
func WithKeptState() PoolOption { return func(c *poolConfig) { c.keep = true } }

// WithMethodOptions sets options for loading the instances. Instances that share the state of one
// method (WithStateOf) also need WithKeptState, and cannot run at the same time: calls during
// another call return ErrBusy.
func WithMethodOptions(options ...MethodOption) PoolOption {
	return func(c *poolConfig) { c.methods = append(c.methods, options...) }
}

// PoolStats contains the current state and the counters of a pool.
type PoolStats struct {
	Size    int // maximum number of instances
	InUse   int // instances in use, or being loaded for a caller
	Idle    int // instances not in use
	Waiting int // callers that wait for an instance

	Created  int64         // instances loaded so far
	Replaced int64         // of these, closed because they could not be reused
	Calls    int64         // calls of Do that got an instance
	Refused  int64         // callers rejected because the queue was full
	Waited   int64         // callers that had to wait
	WaitTime time.Duration // total of all waiting callers
}

// QueueError reports a full queue. It matches ErrBusy.
type QueueError struct {
	Method string
	Size   int // instances, all in use
	Queue  int // callers waiting for one
}

func (e *QueueError) Error() string {
	return withCode(fmt.Sprintf("pool of method %q: %d instances in use, %d callers waiting", e.Method, e.Size, e.Queue), ErrBusy, nil)
}

// Unwrap makes errors.Is(err, ErrBusy) true.
func (e *QueueError) Unwrap() error { return ErrBusy }

// NewPool returns a pool of up to n instances of a method, at least one. The empty name means
// "forward". It does not load any instance.
func (p *Program) NewPool(method string, n int, options ...PoolOption) (*Pool, error) {
	i, err := p.methodIndex(method)
	if err != nil {
		return nil, err
	}
	if !p.isOpen() {
		return nil, p.closedError()
	}
	n = max(n, 1)
	pool := &Pool{program: p, method: p.spec.Methods[i].Name, config: poolConfig{queue: math.MaxInt},
		turns: make(chan struct{}, n), warming: make(chan struct{}, 1), ended: make(chan struct{}), stats: PoolStats{Size: n}}
	for _, o := range options {
		o(&pool.config)
	}
	pool.config.methods = append(pool.config.methods, WithTransientOutputs())
	return pool, nil
}

// Do calls fn with an instance for its exclusive use and returns fn's error. Waiting callers are
// served in order. ctx limits the wait and the load of an instance; fn itself passes a context to
// Execute or Run. fn must not keep the instance or its output slices. Do replaces an instance that
// is unusable after an operator panicked, or that fn closed or still uses.
//
// Errors are those of fn and Load, context.Cause(ctx), *QueueError and ErrClosed.
func (p *Pool) Do(ctx context.Context, fn func(*Method) error) error {
	if err := p.enterObserved(ctx); err != nil {
		return err
	}
	defer func() { <-p.turns }()
	m, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	defer p.give(m)
	p.change(func(s *PoolStats) { s.Calls++ })
	return fn(m)
}

// enterObserved is enter for Do, with observers.
func (p *Pool) enterObserved(ctx context.Context) error {
	w := p.program.config.observers.Waiting(ctx, p.method)
	err := p.enter(ctx, p.config.queue)
	told := w.Waited(err)
	if err == nil && told != nil { // an observer panicked
		<-p.turns
	}
	return told
}

// enter waits for a free instance, with at most bound callers already waiting.
func (p *Pool) enter(ctx context.Context, bound int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.closed() {
		return p.closedError()
	}
	select {
	case p.turns <- struct{}{}:
		return nil
	default:
	}
	if err := p.queue(bound); err != nil {
		return err
	}
	begun := time.Now()
	defer p.change(func(s *PoolStats) {
		s.Waiting--
		s.WaitTime += time.Since(begun)
	})
	select {
	case p.turns <- struct{}{}:
		return nil
	case <-p.ended:
		return p.closedError()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// change changes the counters.
func (p *Pool) change(f func(s *PoolStats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.stats)
}

// queue counts a waiting caller.
func (p *Pool) queue(bound int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.stats
	if s.Waiting >= bound {
		s.Refused++
		return &QueueError{Method: p.method, Size: s.Size, Queue: s.Waiting}
	}
	s.Waiting++
	s.Waited++
	return nil
}

func (p *Pool) closedError() error { return fmt.Errorf("pool of method %q: %w", p.method, ErrClosed) }

// acquire returns an idle instance or loads a new one.
func (p *Pool) acquire(ctx context.Context) (m *Method, err error) {
	if m = p.acquireIdle(); m != nil {
		return m, nil
	}
	defer p.change(func(s *PoolStats) { // also if a method option panics
		if m == nil {
			s.InUse--
		} else {
			s.Created++
		}
	})
	return p.program.Load(ctx, p.method, p.config.methods...)
}

// acquireIdle counts an instance in use and returns an idle one, nil if there is none.
func (p *Pool) acquireIdle() *Method {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.InUse++
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	m := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return m
}

// give returns an instance to the pool in its initial state.
func (p *Pool) give(m *Method) {
	usable := m.in.Usable() && m.Observe(nil) == nil
	if usable && !p.config.keep {
		usable = m.Reset() == nil
	}
	if !p.keepIdle(m, usable) {
		m.Close()
	}
}

// keepIdle ends the use of an instance, and reports whether it is idle now: not if it is unusable or the
// pool is closed.
func (p *Pool) keepIdle(m *Method, usable bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.InUse--
	if !usable {
		p.stats.Replaced++
	}
	if !usable || p.closed() {
		return false
	}
	p.idle = append(p.idle, m)
	return true
}

// Warm loads all instances and, if fn is not nil, calls it with each, for example to run it on
// sample inputs: the first run of an instance is slower than later ones. Warm and callers of Do
// wait for each other.
func (p *Pool) Warm(ctx context.Context, fn func(*Method) error) error {
	select {
	case p.warming <- struct{}{}:
		defer func() { <-p.warming }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var taken []*Method
	defer func() {
		for _, m := range taken {
			p.give(m)
			<-p.turns
		}
	}()
	for range p.stats.Size {
		if err := p.enter(ctx, math.MaxInt); err != nil {
			return err
		}
		m, err := p.acquire(ctx)
		if err != nil {
			<-p.turns
			return err
		}
		taken = append(taken, m)
		if fn == nil {
			continue
		}
		if err := fn(m); err != nil {
			return err
		}
	}
	return nil
}

// Stats returns the current state and the counters of the pool.
func (p *Pool) Stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Idle = len(p.idle)
	return s
}

// closed reports whether Close was called.
func (p *Pool) closed() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Close closes the pool. Waiting callers get ErrClosed. Idle instances are closed now, others when
// their callers return; Close does not wait for them. Closing twice is allowed.
func (p *Pool) Close() error {
	var first error
	for _, m := range p.end() {
		if err := m.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// end closes the pool to callers and returns the idle instances.
func (p *Pool) end() (idle []*Method) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed() {
		close(p.ended)
	}
	idle, p.idle = p.idle, nil
	return idle
}
