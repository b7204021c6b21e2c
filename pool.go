package etrun

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/etrun-go/etrun/runtime/trace"
)

// Pool holds up to a number of instances of one method, for callers in many goroutines.
// Instances are made when they are first needed, or by Warm. They share the program's
// constants and packed weights, and each begins every caller's turn as it was loaded:
// nothing of one caller's inputs or state reaches the next. It is safe for concurrent use.
type Pool struct {
	program *Program
	method  string
	config  poolConfig
	turns   chan struct{} // one element for each instance in use
	warming chan struct{} // one element while Warm collects instances
	ended   chan struct{} // closed by Close

	mu    sync.Mutex
	idle  []*Method
	stats PoolStats
}

type poolConfig struct {
	queue   int // callers that may wait
	keep    bool
	methods []MethodOption
}

// PoolOption configures a pool.
type PoolOption func(*poolConfig)

// WithQueue lets at most n callers wait for an instance; a further one gets a
// *QueueError at once. Without it there is no bound.
func WithQueue(n int) PoolOption { return func(c *poolConfig) { c.queue = max(n, 0) } }

// WithKeptState leaves each instance's state and inputs from one caller to the next, who
// gets any of the instances. It saves the time of a Reset where no caller minds.
func WithKeptState() PoolOption { return func(c *poolConfig) { c.keep = true } }

// WithMethodOptions gives the instances options. Instances that share the state of one
// method (WithStateOf) want WithKeptState too, and cannot execute at once: the others get
// ErrBusy.
func WithMethodOptions(options ...MethodOption) PoolOption {
	return func(c *poolConfig) { c.methods = append(c.methods, options...) }
}

// PoolStats says what a pool is doing and has done.
type PoolStats struct {
	Size    int // the most instances there may be
	InUse   int // instances with a caller, or being loaded for one
	Idle    int // instances without one
	Waiting int // callers that wait for an instance

	Created  int64         // instances loaded so far
	Replaced int64         // of these, closed since they could not be used again
	Calls    int64         // calls of Do that got an instance
	Refused  int64         // callers that the bound of the queue sent away
	Waited   int64         // callers that had to wait
	WaitTime time.Duration // by all of these together
}

// QueueError is a call of a pool whose queue is full. It is ErrBusy.
type QueueError struct {
	Method string
	Size   int // instances, all in use
	Queue  int // callers that wait for one
}

func (e *QueueError) Error() string {
	return withCode(fmt.Sprintf("pool of method %q: %d instances in use, %d callers waiting", e.Method, e.Size, e.Queue), ErrBusy, nil)
}

// Unwrap makes errors.Is(err, ErrBusy) true.
func (e *QueueError) Unwrap() error { return ErrBusy }

// NewPool returns a pool of up to n instances of a method, at least one; the empty name
// means "forward". No instance is made yet.
func (p *Program) NewPool(method string, n int, options ...PoolOption) (*Pool, error) {
	i, err := p.methodIndex(method)
	if err != nil {
		return nil, err
	}
	n = max(n, 1)
	pool := &Pool{program: p, method: p.spec.Methods[i].Name, config: poolConfig{queue: math.MaxInt},
		turns: make(chan struct{}, n), warming: make(chan struct{}, 1), ended: make(chan struct{}), stats: PoolStats{Size: n}}
	for _, o := range options {
		o(&pool.config)
	}
	return pool, nil
}

// Do calls fn with an instance that nobody else uses meanwhile, and returns its error.
// Callers that must wait get their turn in order. ctx ends the wait and the loading of an
// instance; fn gives it to Execute or Run itself. The instance and the slices of its
// outputs must not be kept after fn has returned. An instance that an operator's panic
// made useless, or that fn closed or still uses, is replaced.
//
// Errors are those of fn and of Load, context.Cause(ctx), *QueueError and ErrClosed.
func (p *Pool) Do(ctx context.Context, fn func(*Method) error) error {
	if err := p.enterObserved(ctx); err != nil {
		return err
	}
	defer func() { <-p.turns }()
	m, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer p.give(m)
	p.mu.Lock()
	p.stats.Calls++
	p.mu.Unlock()
	return fn(m)
}

// enterObserved is enter for a caller of Do, with somebody who may want to know.
func (p *Pool) enterObserved(ctx context.Context) error {
	if !p.program.config.wants.Has(trace.Wait) {
		return p.enter(ctx, p.config.queue)
	}
	w := waits.Get().(*watch)
	defer waits.Put(w)
	*w = watch{watchers: p.program.config.watchers, wants: p.program.config.wants, ctx: ctx, method: p.method, began: trace.Now()}
	err := p.enter(ctx, p.config.queue)
	told := w.whole(trace.Wait, p.method, 0, err)
	w.ctx, w.event = nil, trace.Event{}
	if err == nil && told != nil { // an observer panicked
		<-p.turns
	}
	return told
}

// waits are watches of callers of pools, kept so that waiting allocates nothing.
var waits = sync.Pool{New: func() any { return new(watch) }}

// enter waits for a turn, behind at most bound other callers.
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
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stats.Waiting--
		p.stats.WaitTime += time.Since(begun)
	}()
	select {
	case p.turns <- struct{}{}:
		return nil
	case <-p.ended:
		return p.closedError()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// queue counts a caller that has to wait.
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

// take hands out an idle instance, or a new one.
func (p *Pool) take(ctx context.Context) (*Method, error) {
	p.mu.Lock()
	p.stats.InUse++
	if n := len(p.idle); n > 0 {
		m := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return m, nil
	}
	p.mu.Unlock()
	m, err := p.program.Load(ctx, p.method, p.config.methods...)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.stats.InUse--
		return nil, err
	}
	p.stats.Created++
	return m, nil
}

// give takes an instance back, as it was loaded.
func (p *Pool) give(m *Method) {
	usable := m.poison == nil && m.life.Load() == idle && m.Observe(nil) == nil
	if usable && !p.config.keep {
		usable = m.Reset() == nil
	}
	p.mu.Lock()
	p.stats.InUse--
	closed := p.closed()
	if usable && !closed {
		p.idle = append(p.idle, m)
	} else if !usable {
		p.stats.Replaced++
	}
	p.mu.Unlock()
	if !usable || closed {
		m.Close()
	}
}

// Warm makes all instances there may be, and calls fn with each where it is not nil, such
// as to execute on sample inputs: the first execute of an instance is slower than later
// ones. It waits for the turns of callers, as they do for its own.
func (p *Pool) Warm(ctx context.Context, fn func(*Method) error) error {
	select {
	case p.warming <- struct{}{}:
		defer func() { <-p.warming }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	taken := make([]*Method, 0, p.stats.Size)
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
		m, err := p.take(ctx)
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

// Stats says what the pool is doing and has done.
func (p *Pool) Stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Idle = len(p.idle)
	return s
}

// closed reports that Close was called.
func (p *Pool) closed() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Close ends the pool: callers that wait get ErrClosed, idle instances are closed now, and
// each other one when its caller's turn ends. Close does not wait for these. Closing twice
// is fine.
func (p *Pool) Close() error {
	p.mu.Lock()
	if !p.closed() {
		close(p.ended)
	}
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	var first error
	for _, m := range idle {
		if err := m.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
