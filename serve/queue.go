package serve

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// queue admits requests to a model: so many execute at once, so many more wait, others are
// refused. Those that wait get their turn in order.
type queue struct {
	turns    chan struct{} // one element for each that executes
	capacity int64         // requests that execute or wait
	inside   atomic.Int64
	mean     atomic.Int64 // nanoseconds that a turn takes, smoothed
}

// newQueue lets so many turns go on at once, of up to rows requests each, while further
// requests wait.
func newQueue(turns, rows, waiting int) *queue {
	return &queue{turns: make(chan struct{}, turns), capacity: int64(turns)*int64(rows) + int64(waiting)}
}

// full reports that enter would refuse.
func (q *queue) full() bool { return q.inside.Load() >= q.capacity }

// enter takes a place, which leave gives back.
func (q *queue) enter() error {
	if q.inside.Add(1) > q.capacity {
		q.leave()
		return q.busy()
	}
	return nil
}

// busy is a request that was refused.
func (q *queue) busy() error { return &busyError{"the queue is full", q.patience()} }

func (q *queue) leave() { q.inside.Add(-1) }

// waiting is how many have a place and no turn.
func (q *queue) waiting() int { return max(0, int(q.inside.Load())-len(q.turns)) }

// turn waits for one, which the function that it returns ends.
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
		q.mean.Store(was + (time.Since(begun).Nanoseconds()-was)/8) // a lost update does no harm
	}, nil
}

// patience is when a place is likely to be free.
func (q *queue) patience() time.Duration {
	return time.Duration(q.mean.Load() * q.inside.Load() / int64(cap(q.turns)))
}

// busyError is a request that there is no room for now.
type busyError struct {
	why   string
	after time.Duration // when to try again
}

func (e *busyError) Error() string { return e.why }

// budget counts the bytes of requests.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take reserves bytes; ok is false where they would exceed the limit.
func (b *budget) take(n int64) (ok bool) {
	if b.used.Add(n) > b.limit {
		b.give(n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// buffers keeps bytes of tensors and answers for use by further requests.
type buffers struct {
	mu   sync.Mutex
	free [][]byte
	most int // kept at once
}

// get is a buffer of n bytes with any contents, nil where none fits well.
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

// put takes back a buffer that nobody uses.
func (b *buffers) put(used []byte) {
	if cap(used) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.free) < b.most {
		b.free = append(b.free, used)
		return
	}
	b.free = append(b.free[1:], used) // sizes that nobody asks for leave at some time
}
