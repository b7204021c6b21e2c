package serve

import (
	"context"
	"time"
)

// Lease is the right of a request to use one of a model's instances. Only the request's goroutine may use it.
type Lease struct {
	queue  *queue
	client Client
	begun  time.Time
	ended  bool
	began  func()
}

// lease waits for a turn of the client of ctx. The caller must call end.
func (q *queue) lease(ctx context.Context) (*Lease, error) {
	c := ClientOf(ctx)
	if err := q.scheduler.acquire(ctx, c); err != nil {
		return nil, err
	}
	return &Lease{queue: q, client: c, begun: time.Now()}, nil
}

// Began lifts the time limit of the request. It is called again whenever the request continues.
func (l *Lease) Began() { l.began() }

// Wanted reports whether other requests wait: one that is able to continue later should call Yield.
func (l *Lease) Wanted() bool { return l.queue.scheduler.wanted() }

// Yield lets another request run, and waits until this one may continue. It does nothing if no other one waits. After an error, which
// is the context's cause, the request must end.
func (l *Lease) Yield(ctx context.Context) error {
	l.note()
	err := l.queue.scheduler.yield(ctx, l.client)
	l.ended, l.begun = err != nil, time.Now()
	return err
}

// end ends the lease.
func (l *Lease) end() {
	if !l.ended {
		l.note()
		l.queue.scheduler.release(l.client)
	}
}

// note counts the time since the lease, or its last part, began.
func (l *Lease) note() {
	was := l.queue.mean.Load()
	l.queue.mean.Store(was + (time.Since(l.begun).Nanoseconds()-was)/8) // a lost update is harmless
}
