package serve

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// queue admits requests to a model: a fixed number runs, a fixed number waits in order, and further
// ones are refused.
type queue struct {
	turns    chan struct{} // one element per running request
	capacity int64         // running and waiting requests
	inside   atomic.Int64
	mean     atomic.Int64 // smoothed time of a turn in nanoseconds
}

// newQueue admits turns concurrent runs of up to rows requests each, and waiting more requests.
func newQueue(turns, rows, waiting int) *queue {
	return &queue{turns: make(chan struct{}, turns), capacity: int64(turns)*int64(rows) + int64(waiting)}
}

// full reports whether enter would refuse a request.
func (q *queue) full() bool { return q.inside.Load() >= q.capacity }

// enter admits a request, until leave.
func (q *queue) enter() error {
	if q.inside.Add(1) > q.capacity {
		q.leave()
		return q.busy()
	}
	return nil
}

// busy returns the error of a refused request.
func (q *queue) busy() error { return &busyError{"the queue is full", q.retryAfter()} }

func (q *queue) leave() { q.inside.Add(-1) }

// waiting returns the number of admitted requests without a turn.
func (q *queue) waiting() int { return max(0, int(q.inside.Load())-len(q.turns)) }

// turn waits for a turn. The caller must call end.
func (q *queue) turn(ctx context.Context) (end func(), err error) {
	select {
	case q.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	begun := time.Now()
	return func() {
		<-q.turns
		was := q.mean.Load()
		q.mean.Store(was + (time.Since(begun).Nanoseconds()-was)/8) // a lost update is harmless
	}, nil
}

// retryAfter estimates when the queue is likely to accept a request.
func (q *queue) retryAfter() time.Duration {
	return time.Duration(q.mean.Load() * q.inside.Load() / int64(cap(q.turns)))
}

// busyError is a request that is refused because of load.
type busyError struct {
	why   string
	after time.Duration // when to retry
}

func (e *busyError) Error() string { return e.why }

// budget counts the bytes of requests.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take reserves bytes; ok is false if they exceed the limit.
func (b *budget) take(n int64) (ok bool) {
	if b.used.Add(n) > b.limit {
		b.release(n)
		return false
	}
	return true
}

func (b *budget) release(n int64) { b.used.Add(-n) }

// buffers recycles memory of tensors and answers.
type buffers struct {
	mu   sync.Mutex
	free [][]byte
	max  int // maximum number of free buffers
}

// get returns a buffer of n bytes with arbitrary contents, nil if there is none of about that size.
func (b *buffers) get(n int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, have := range b.free {
		if cap(have) >= n && cap(have)/2 <= n {
			last := len(b.free) - 1
			b.free[i], b.free[last] = b.free[last], nil
			b.free = b.free[:last]
			return have[:n]
		}
	}
	return nil
}

// put returns a buffer that is no longer used.
func (b *buffers) put(used []byte) {
	if cap(used) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.free) < b.max {
		b.free = append(b.free, used)
		return
	}
	b.free = append(b.free[1:], used) // buffers of unused sizes are eventually dropped
}
