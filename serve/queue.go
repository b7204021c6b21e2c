package serve

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// queue admits requests to a model: a fixed number runs, a fixed number waits for its turn, and further
// ones are refused.
type queue struct {
	scheduler *scheduler
	capacity  int64 // running and waiting requests
	inside    atomic.Int64
	mean      atomic.Int64 // smoothed time of a turn in nanoseconds
}

// newQueue admits turns concurrent runs of up to rows requests each, and waiting more requests.
func newQueue(turns, rows, waiting int) *queue {
	return &queue{scheduler: newScheduler(turns), capacity: int64(turns)*int64(rows) + int64(waiting)}
}

// full reports whether enter would refuse a request of a client.
func (q *queue) full(c Client) bool {
	return q.inside.Load() >= q.capacity && !q.scheduler.preempts(c)
}

// enter admits a request, until leave. If the queue is full, it is in the place of one of a client with more that wait, which is refused.
func (q *queue) enter(c Client) error {
	if q.inside.Add(1) > q.capacity && !q.scheduler.preempt(c, q.busy()) {
		q.leave()
		return q.busy()
	}
	return nil
}

// busy returns the error of a refused request.
func (q *queue) busy() error { return &busyError{"the queue is full", q.retryAfter()} }

func (q *queue) leave() { q.inside.Add(-1) }

// waiting returns the number of admitted requests without a turn.
func (q *queue) waiting() int { return max(0, int(q.inside.Load())-q.scheduler.count()) }

// acquire waits for a turn of the client of ctx. The caller must call end.
func (q *queue) acquire(ctx context.Context) (end func(), err error) {
	l, err := q.lease(ctx)
	if err != nil {
		return nil, err
	}
	return l.end, nil
}

// retryAfter estimates when the queue is likely to accept a request.
func (q *queue) retryAfter() time.Duration {
	return time.Duration(q.mean.Load() * q.inside.Load() / int64(q.scheduler.limit))
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

// reserve reserves bytes; ok is false if they exceed the limit.
func (b *budget) reserve(n int64) (ok bool) {
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
