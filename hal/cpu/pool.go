// Package cpu (no compatibility promise) knows the machine's processors: which may be
// used, what they can do, and the one thread budget that everything shares.
package cpu

import (
	"sync"
	"sync/atomic"
)

// Body is work that can be cut into ranges. Range is called with disjoint ranges,
// from up to Pool.Size goroutines at once; worker is in [0, Pool.Size) and is
// distinct for goroutines that run at the same time.
type Body interface{ Range(worker, lo, hi int) }

// Pool is a thread budget of a fixed size: the caller of Do and Size-1 helpers.
// Several goroutines may call Do at once, also from inside a body with a Run of its
// own: they share the helpers, and each always does its own work too, so none ever
// waits for a helper that has not started.
type Pool struct {
	helpers []helper
	once    sync.Once // starts the helpers
	closed  atomic.Bool
}

// helper is one goroutine of a pool. A caller that finds run nil offers its Run
// there; the helper takes it by putting taken in its place, unless the caller has
// withdrawn the offer first.
type helper struct {
	run  atomic.Pointer[Run]
	wake chan struct{} // holds one signal to look at run and at closed
}

// taken marks a helper that works, or has ended.
var taken = new(Run)

// NewPool returns a budget of n threads, at least 1. Helpers start at first use.
func NewPool(n int) *Pool { return &Pool{helpers: make([]helper, max(n, 1)-1)} }

// Size is the number of threads, the caller's included.
func (p *Pool) Size() int { return len(p.helpers) + 1 }

// Close ends the helpers once they have done what they took on. Loops go on after
// Close, in their callers alone.
func (p *Pool) Close() {
	p.closed.Store(true)
	p.once.Do(func() {}) // none start from now on
	for i := range p.helpers {
		p.helpers[i].signal()
	}
}

// Run is the reusable state of one parallel loop. The zero value is ready; it must
// not be used by two goroutines at once.
type Run struct {
	body  Body
	n     int
	chunk int
	next  atomic.Int64
	done  chan any // of each helper: nil, or the panic that stopped it
}

// Do calls body.Range over [0, n) in chunks of at least grain, on the pool's
// threads, and returns when all of it is done. A nil pool is one thread. Do allocates
// nothing after the first use of r. A panic in body is raised again here.
func (p *Pool) Do(r *Run, n, grain int, body Body) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	if p == nil || len(p.helpers) == 0 || n <= grain || p.closed.Load() {
		body.Range(0, 0, n)
		return
	}
	p.once.Do(p.start)
	r.prepare(p.Size(), n, grain, body)
	offered := p.offer(r, (n-1)/r.chunk)
	fault := r.share(0)
	for range offered - p.withdraw(r) {
		if f := <-r.done; f != nil {
			fault = f
		}
	}
	r.body = nil
	if fault != nil {
		panic(fault)
	}
}

// offer gives r to at most want helpers that have nothing to do, and tells how many.
func (p *Pool) offer(r *Run, want int) (offered int) {
	for i := range p.helpers {
		h := &p.helpers[i]
		if offered == want {
			break
		}
		if h.run.CompareAndSwap(nil, r) {
			h.signal()
			offered++
		}
	}
	return offered
}

// withdraw takes r back from the helpers that have not started, and tells how many.
func (p *Pool) withdraw(r *Run) (withdrawn int) {
	for i := range p.helpers {
		if p.helpers[i].run.CompareAndSwap(r, nil) {
			withdrawn++
		}
	}
	return withdrawn
}

func (p *Pool) start() {
	for i := range p.helpers {
		h := &p.helpers[i]
		h.wake = make(chan struct{}, 1)
		go h.work(p, i+1)
	}
}

// signal wakes the helper, or has it look again before it sleeps.
func (h *helper) signal() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *helper) work(p *Pool, worker int) {
	for !p.closed.Load() {
		<-h.wake
		if r := h.run.Load(); r != nil && h.run.CompareAndSwap(r, taken) {
			fault := r.share(worker)
			h.run.Store(nil)
			r.done <- fault
		}
	}
}

func (r *Run) prepare(threads, n, grain int, body Body) {
	if cap(r.done) < threads {
		r.done = make(chan any, threads)
	}
	r.body, r.n = body, n
	r.chunk = max(grain, n/(4*threads)) // a few chunks a thread: a slow core costs one of them
	r.next.Store(0)
}

// share takes chunks until none are left; it returns the panic that stopped it.
func (r *Run) share(worker int) (fault any) {
	defer func() {
		if fault = recover(); fault != nil {
			r.next.Store(int64(r.n))
		}
	}()
	for {
		hi := int(r.next.Add(int64(r.chunk)))
		lo := hi - r.chunk
		if lo >= r.n {
			return nil
		}
		r.body.Range(worker, lo, min(hi, r.n))
	}
}
