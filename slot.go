package etrun

import (
	"context"
	"sync"
)

// slot holds what the instances of one method share, from the first load on.
type slot struct {
	preparation preparation // used by the attempt that runs

	mu      sync.Mutex
	done    *prepared
	running *attempt // nil where none is
}

// attempt is one run of a preparation, which nothing interrupts while a delegate
// compiles. It goes on as long as somebody waits for it and is cancelled when the last
// one has left; what it has made by then is kept.
type attempt struct {
	cancel    context.CancelFunc
	waiting   int           // guarded by slot.mu
	abandoned bool          // cancelled; guarded by slot.mu
	ended     chan struct{} // closed when result and err are there
	result    *prepared
	err       error
}

// holder is what stays open while an attempt runs: the program.
type holder interface {
	retain()
	release() error
}

// get returns what the slot holds. It waits for an attempt, a running one or its own,
// no longer than ctx allows. The caller holds h.
func (s *slot) get(ctx context.Context, h holder) (*prepared, error) {
	for ctx.Err() == nil {
		done, a := s.join(ctx, h)
		if done != nil {
			return done, nil
		}
		select {
		case <-ctx.Done():
			s.leave(a)
		case <-a.ended:
			if abandoned := s.leave(a); !abandoned || a.err == nil {
				return a.result, a.err
			}
		}
	}
	return nil, context.Cause(ctx)
}

// ready is what the slot holds, nil as long as it holds nothing.
func (s *slot) ready() *prepared {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// join returns what there is, or waits with others for the running attempt, or begins one.
func (s *slot) join(ctx context.Context, h holder) (*prepared, *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done != nil {
		return s.done, nil
	}
	if s.running == nil {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		s.running = &attempt{cancel: cancel, ended: make(chan struct{})}
		h.retain()
		go s.attempt(own, s.running, h)
	}
	s.running.waiting++
	return nil, s.running
}

// leave ends the wait for an attempt; abandoned says that it was cancelled.
func (s *slot) leave(a *attempt) (abandoned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.waiting--; a.waiting == 0 && s.running == a {
		a.abandoned = true
		a.cancel()
	}
	return a.abandoned
}

// attempt runs the preparation to its end.
func (s *slot) attempt(ctx context.Context, a *attempt, h holder) {
	a.result, a.err = s.preparation.run(ctx)
	a.cancel()
	s.mu.Lock()
	s.running, s.done = nil, a.result
	s.mu.Unlock()
	h.release()
	close(a.ended)
}
