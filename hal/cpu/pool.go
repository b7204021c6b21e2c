// Package cpu knows the machine's processors: which may be used, what they can do,
// and the one thread budget that everything shares.
package cpu

import (
	"sync"
	"sync/atomic"
)

// Body is work that can be cut into ranges. Range is called with disjoint ranges,
// from up to Pool.Size goroutines at once; worker is in [0, Pool.Size) and is
// distinct for goroutines that run at the same time.
type Body interface{ Range(worker, lo, hi int) }

// Pool is a thread budget of a fixed size: the caller of Run and Size-1 helpers.
// Several goroutines may call Run at once: they share the helpers, and each always
// does its own work too, so none ever waits for a helper that has not started.
type Pool struct {
	size  int
	once  sync.Once
	close sync.Once
	work  chan *Run
}

// NewPool returns a budget of n threads, at least 1. Helpers start at first use.
func NewPool(n int) *Pool {
	return &Pool{size: max(n, 1), work: make(chan *Run)}
}

// Size is the number of threads, the caller's included.
func (p *Pool) Size() int { return p.size }

// Close ends the helpers. Runs after Close are done by their callers alone.
func (p *Pool) Close() {
	p.close.Do(func() {
		p.once.Do(func() {}) // none start from now on
		close(p.work)
	})
}

// Run is the reusable state of one parallel loop. The zero value is ready; it must
// not be used by two goroutines at once.
type Run struct {
	body    Body
	n       int
	chunk   int
	next    atomic.Int64
	ids     atomic.Int64
	done    chan any
	started int
}

// Do calls body.Range over [0, n) in chunks of at least grain, on the pool's
// threads, and returns when all of it is done. It allocates nothing after the
// first use of r. A panic in body is raised again here.
func (p *Pool) Do(r *Run, n, grain int, body Body) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	if p == nil || p.size == 1 || n <= grain {
		body.Range(0, 0, n)
		return
	}
	p.once.Do(p.start)
	r.prepare(p.size, n, grain, body)
	r.started = 0
	for range min(p.size-1, (n+grain-1)/grain-1) {
		if !p.offer(r) {
			break
		}
		r.started++
	}
	fault := r.share(0)
	for range r.started {
		if f := <-r.done; f != nil {
			fault = f
		}
	}
	r.body = nil
	if fault != nil {
		panic(fault)
	}
}

// offer hands r to a helper that is waiting now.
func (p *Pool) offer(r *Run) (taken bool) {
	defer func() {
		if recover() != nil { // the pool was closed
			taken = false
		}
	}()
	select {
	case p.work <- r:
		return true
	default:
		return false
	}
}

func (p *Pool) start() {
	for range p.size - 1 {
		go func() {
			for r := range p.work {
				r.done <- r.share(int(r.ids.Add(1)))
			}
		}()
	}
}

func (r *Run) prepare(threads, n, grain int, body Body) {
	if cap(r.done) < threads {
		r.done = make(chan any, threads)
	}
	r.body, r.n = body, n
	r.chunk = max(grain, n/(4*threads)) // a few chunks a thread: a slow core costs one of them
	r.next.Store(0)
	r.ids.Store(0)
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
