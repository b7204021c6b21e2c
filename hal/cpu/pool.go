// Package cpu (no compatibility promise) provides the machine's processors: how many may be used,
// their features, memory pages, and the thread pool that everything shares.
package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/etrun-go/etrun/internal/platform" // its message
)

// Body is work that can be divided into ranges. Range is called with disjoint ranges, concurrently
// from up to Pool.Size goroutines; worker is in [0, Pool.Size) and differs between concurrent
// calls.
type Body interface{ Range(worker, lo, hi int) }

// Pool is a fixed number of threads: the caller of Do and Size-1 helpers. Several goroutines may
// call Do concurrently, also from inside a body with another Run: they share the helpers. Each
// caller also works itself, so none waits for a helper that has not started.
type Pool struct {
	helpers []helper
	once    sync.Once // starts the helpers
	closed  atomic.Bool
}

// helper is one goroutine of a pool. A caller that finds run nil stores its Run there. The helper
// accepts it by storing taken, unless the caller has withdrawn it first.
type helper struct {
	run    atomic.Pointer[Run]
	asleep atomic.Bool   // it waits for wake, or is about to
	wake   chan struct{} // holds one signal to check run and closed
}

// spinTime is how long a helper looks for the next loop before it sleeps, and a caller for the end
// of a helper's last chunk. Waking a sleeping thread takes longer than most loops of a model.
const spinTime = 100 * time.Microsecond

// spin calls ready until it returns true, and reports whether it did within spinTime. Other
// goroutines run meanwhile.
func spin(ready func() bool) bool {
	for begin := time.Now(); ; {
		for range 16 {
			if ready() {
				return true
			}
			runtime.Gosched()
		}
		if time.Since(begin) > spinTime {
			return false
		}
	}
}

// taken marks a helper that is busy or has ended.
var taken = new(Run)

// NewPool returns a pool of n threads, at least 1. Helpers start on first use.
func NewPool(n int) *Pool { return &Pool{helpers: make([]helper, max(n, 1)-1)} }

// Size returns the number of threads, including the caller's; that of a nil pool is 1.
func (p *Pool) Size() int {
	if p == nil {
		return 1
	}
	return len(p.helpers) + 1
}

// Close stops the helpers once they have finished their work. Do still works after Close, in its
// caller only.
func (p *Pool) Close() {
	p.closed.Store(true)
	p.once.Do(func() {}) // no helper starts from now on
	for i := range p.helpers {
		p.helpers[i].signal()
	}
}

// Run is the reusable state of a parallel loop. The zero value is ready to use; it must not be used
// by two goroutines at once.
type Run struct {
	body  Body
	grain int
	parts []part   // one for each thread
	done  chan any // per helper: nil, or the panic that stopped it
	stop  <-chan struct{}
	short uint // number of loops of one range on the caller's thread
}

// part is the share of a thread in a loop. Threads begin with their own part, and so find in their caches what they wrote in the
// loop before; one that has ended it continues with those of others.
type part struct {
	next       atomic.Int64 // the first element that no thread has
	end, chunk int64
	_          [40]byte // the counters of two threads are in different cache lines
}

// Stopped is the panic of [Pool.Do] in a loop whose Run was stopped.
type Stopped struct{}

// StopWhen makes loops end with the panic Stopped, after the ranges that run, once done is closed; nil means
// never.
func (r *Run) StopWhen(done <-chan struct{}) { r.stop = done }

// Poll ends a loop with the panic Stopped once the channel of StopWhen is closed. Bodies of loops call it during
// ranges that may take long, on any thread.
func (r *Run) Poll() {
	if r.stop != nil && r.stopped() {
		panic(Stopped{})
	}
}

func (r *Run) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// stopRanges is the number of ranges of the least size, of 20 µs each, between two checks for a stop in a
// thread's part of a loop.
const stopRanges = 16

// rangeTime is the time in picoseconds that one range of a parallel loop should take, about 20 µs, so that the cost of
// waking a thread does not matter.
const rangeTime = 20_000_000

// Grain returns the grain of a loop for [Pool.Do], each of whose steps processes a number of units: elements, bytes or
// MACs that take cost picoseconds each.
func Grain(units, cost int) int { return max(rangeTime/cost/max(units, 1), 1) }

// Do calls body.Range over [0, n) on the pool's threads, in chunks of at least half of grain, and returns
// when all are done. A nil pool is one thread. Do does not allocate after the first use of r. It
// re-panics a panic in body. See [Run.StopWhen].
func (p *Pool) Do(r *Run, n, grain int, body Body) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	if p == nil || len(p.helpers) == 0 || n <= grain || p.closed.Load() {
		r.alone(n, grain, body)
		return
	}
	r.prepare(p.Size(), n, grain, body)
	if s := simulation.Load(); s != nil {
		s.run(r)
		return
	}
	p.once.Do(p.start)
	offered := p.offer(r, len(r.parts)-1)
	fault := r.share(0)
	for range offered - p.withdraw(r) {
		spin(func() bool { return len(r.done) > 0 })
		if f := <-r.done; f != nil {
			fault = f
		}
	}
	r.body = nil
	if fault != nil {
		panic(fault)
	}
}

// alone calls body.Range on the caller's thread. Loops of one range, which may take less time than a check for a stop, are
// checked once in a while.
func (r *Run) alone(n, grain int, body Body) {
	if n <= grain {
		if r.short++; r.short%stopRanges != 0 {
			body.Range(0, 0, n)
			return
		}
	}
	r.grain = grain
	r.chunk(0, 0, n, body)
}

// chunk calls body.Range on [lo, hi), in a few ranges if the loop can be stopped.
func (r *Run) chunk(worker, lo, hi int, body Body) {
	if r.stop == nil {
		body.Range(worker, lo, hi)
		return
	}
	step := hi - lo
	if step/stopRanges > r.grain {
		step = r.grain * stopRanges
	}
	for ; lo < hi; lo += step {
		r.Poll()
		body.Range(worker, lo, min(lo+step, hi))
	}
}

// offer offers r to at most want idle helpers and returns their number.
func (p *Pool) offer(r *Run, want int) (offered int) {
	for i := range p.helpers {
		h := &p.helpers[i]
		if offered == want {
			break
		}
		if h.run.CompareAndSwap(nil, r) {
			if h.asleep.Load() {
				h.signal()
			}
			offered++
		}
	}
	return offered
}

// withdraw withdraws r from the helpers that have not started and returns their number.
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

// signal wakes the helper, or makes it check again before it sleeps.
func (h *helper) signal() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *helper) work(p *Pool, worker int) {
	due := func() bool { return h.run.Load() != nil || p.closed.Load() }
	for !p.closed.Load() {
		if !spin(due) {
			h.sleep(due)
		}
		if r := h.run.Load(); r != nil && h.run.CompareAndSwap(r, taken) {
			fault := r.share(worker)
			h.run.Store(nil)
			r.done <- fault
		}
	}
}

// sleep waits for a signal, unless there is something to do.
func (h *helper) sleep(due func() bool) {
	h.asleep.Store(true)
	if !due() { // a caller that has not seen asleep has stored its run before
		<-h.wake
	}
	h.asleep.Store(false)
}

// prepare divides [0, n) into as many parts as threads have work.
func (r *Run) prepare(threads, n, grain int, body Body) {
	if cap(r.done) < threads {
		r.done, r.parts = make(chan any, threads), make([]part, threads)
	}
	r.body, r.grain = body, grain
	r.parts = r.parts[:min(threads, (n-1)/grain+1)]
	lo, all := int64(0), int64(len(r.parts))
	for i := range r.parts {
		p, hi := &r.parts[i], int64(n)*int64(i+1)/all
		p.next.Store(lo)
		p.end, p.chunk = hi, max(int64(grain), (hi-lo)/4) // a few chunks: a slow core delays at most one
		lo = hi
	}
}

// share processes chunks until none are left, those of the worker's own part first; it returns the panic that stopped it.
func (r *Run) share(worker int) (fault any) {
	defer func() {
		if fault = recover(); fault != nil {
			for i := range r.parts {
				r.parts[i].next.Store(r.parts[i].end)
			}
		}
	}()
	for i := range r.parts {
		p := &r.parts[(worker+i)%len(r.parts)]
		for p.next.Load() < p.end {
			hi := p.next.Add(p.chunk)
			if lo := hi - p.chunk; lo < p.end {
				r.chunk(worker, int(lo), int(min(hi, p.end)), r.body)
			}
		}
	}
	return nil
}
