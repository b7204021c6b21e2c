package ethosu

import "context"

// Queue lets one job at a time onto a device.
type Queue struct{ turn chan struct{} }

// NewQueue returns a free queue.
func NewQueue() *Queue { return &Queue{turn: make(chan struct{}, 1)} }

// Enter waits for the device; it ends early with context.Cause(ctx). Each Enter
// without an error needs a Leave.
func (q *Queue) Enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case q.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leave gives the device to the next job.
func (q *Queue) Leave() { <-q.turn }
