package load

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Plan is the load of one level.
type Plan struct {
	// Clients send requests one after the other, each when its last one was answered: a closed loop.
	Clients int
	// Rate is the number of requests per second of an open loop, 0 for a closed one: they are sent whether or not earlier ones have
	// been answered.
	Rate float64
	// Random intervals between requests of an open loop are distributed exponentially, as those of many independent clients.
	Random bool
	Seed   uint64
	// InFlight is the maximum number of requests in progress of an open loop. Further ones wait in the client, and their
	// latency contains this wait.
	InFlight int

	Warmup   time.Duration // requests before are not counted
	Duration time.Duration // of the part that is counted
}

// MaxSamples is the maximum number of requests of a level, together with the parts of their answers, which bounds its memory. A level
// ends when it has as many.
const MaxSamples = 4 << 20

// sample is a request that has ended. Times are since the begin of the level.
type sample struct {
	due, sent, end time.Duration
	answer         Answer
	failed         *Failure
}

// run is a level in progress.
type run struct {
	*Plan
	sender Sender
	begun  time.Time
	number atomic.Int64
	size   atomic.Int64 // requests and parts of answers

	mu      sync.Mutex
	samples []sample
	faults  map[Class]*Failure // the first one of each class, for all samples of it: others may have long messages
	stopped time.Duration      // the end of the level, before its plan says so; 0 if not
}

// Run sends the requests of a level, and waits for their answers. If ctx ends, so does the level: requests in progress do not
// count.
func (p *Plan) Run(ctx context.Context, s Sender) *Level {
	r := &run{Plan: p, sender: s, begun: time.Now(), faults: make(map[Class]*Failure)}
	if p.Rate > 0 {
		r.open(ctx)
	} else {
		r.closed(ctx)
	}
	if ctx.Err() != nil {
		r.stop(time.Since(r.begun))
	}
	return r.level()
}

// last is the end of the time in which requests are sent.
func (p *Plan) last() time.Duration { return p.Warmup + p.Duration }

// closed runs the clients of a closed loop.
func (r *run) closed(ctx context.Context) {
	var clients sync.WaitGroup
	for range r.Clients {
		clients.Go(func() {
			for ctx.Err() == nil {
				due := time.Since(r.begun)
				if due >= r.last() {
					return
				}
				if !r.send(ctx, due) {
					return
				}
			}
		})
	}
	clients.Wait()
}

// send sends the request that is due, and adds its sample. It reports false if there are too many.
func (r *run) send(ctx context.Context, due time.Duration) bool {
	if r.size.Add(1) > MaxSamples {
		r.stop(time.Since(r.begun))
		return false
	}
	s := sample{due: due, sent: time.Since(r.begun)}
	answer, err := r.sender.Send(ctx, r.number.Add(1)-1)
	s.end, s.answer = time.Since(r.begun), answer
	r.size.Add(int64(len(answer.Events)))
	if err != nil {
		if ctx.Err() != nil {
			return true
		}
		s.failed = failure(err)
	}
	r.add(s)
	return true
}

func (r *run) add(s sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := s.failed; f != nil {
		if r.faults[f.Class] == nil {
			r.faults[f.Class] = f
		}
		s.failed, s.answer = r.faults[f.Class], Answer{}
	}
	r.samples = append(r.samples, s)
}

// stop ends the level at a time, unless it has ended before.
func (r *run) stop(at time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at < r.last() && (r.stopped == 0 || at < r.stopped) {
		r.stopped = at
	}
}

// isFull reports whether there are as many samples as a level can have, which ends it.
func (r *run) isFull() bool {
	if r.size.Load() < MaxSamples {
		return false
	}
	r.stop(time.Since(r.begun))
	return true
}

// open hands requests to clients when they are due. A new client starts if none is free.
func (r *run) open(ctx context.Context) {
	due := make(chan time.Duration)
	var clients sync.WaitGroup
	defer clients.Wait()
	defer close(due)
	over := time.NewTimer(r.last())
	defer over.Stop()
	next, running := r.intervals(), 0
	for at := next(); at < r.last(); at = next() {
		if r.isFull() || !await(ctx, at-time.Since(r.begun)) {
			return
		}
		select {
		case due <- at:
			continue
		default:
		}
		if running < r.InFlight {
			running++
			clients.Go(func() {
				r.send(ctx, at)
				for at := range due {
					r.send(ctx, at)
				}
			})
			continue
		}
		select {
		case due <- at:
		case <-ctx.Done():
			return
		case <-over.C:
			r.unsent(at, next)
			return
		}
	}
}

// intervals returns a function that returns the times at which requests are due.
func (r *run) intervals() func() time.Duration {
	random, n, sum := rand.New(rand.NewPCG(r.Seed, 0)), 0.0, 0.0
	return func() time.Duration {
		at := n // in intervals, whose multiples do not add up errors of rounding
		if r.Random {
			at = sum
		}
		n, sum = n+1, sum+random.ExpFloat64()
		return time.Duration(math.Min(at/r.Rate*float64(time.Second), math.MaxInt64/2))
	}
}

// unsent adds the requests that were due but are not sent, from that at a time on.
func (r *run) unsent(at time.Duration, next func() time.Duration) {
	for ; at < r.last() && r.size.Add(1) <= MaxSamples; at = next() {
		r.add(sample{due: at, sent: r.last(), end: r.last(), failed: &Failure{Unsent, errBusy}})
	}
}

// await waits for a time, and reports whether ctx lasts.
func await(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
