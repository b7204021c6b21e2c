package ethosu

import "context"

// queue admits one job at a time to a device.
type queue struct{ slot chan struct{} }

// newQueue returns a free queue.
func newQueue() *queue { return &queue{slot: make(chan struct{}, 1)} }

// Enter waits for the device; if ctx ends first, it returns context.Cause(ctx). Each successful
// Enter needs a Leave.
func (q *queue) Enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case q.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leave releases the device for the next job.
func (q *queue) Leave() { <-q.slot }
