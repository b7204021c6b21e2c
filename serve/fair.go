package serve

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// scheduler lets a number of requests run at once. The next one to run is that of the client of which the fewest run. If there are
// several such clients, they alternate; of a client, its requests that have not run yet alternate with those that continue; and these
// run in the order of their arrival. So no request waits for all texts of another one, and none waits forever.
type scheduler struct {
	limit int

	mu      sync.Mutex
	running int
	clients map[Client]*share
	waiting []*share // those with waiting requests, the one that runs next among equals first
}

// share is a client's part of a scheduler.
type share struct {
	client  Client
	running int
	lists   [2][]*waiter // requests that have not run yet, and requests that continue
	due     bool         // a request that continues is next
}

// waiter is a request that waits to run.
type waiter struct {
	ready chan struct{} // closed when it runs, or is refused
	err   error         // why it is refused
}

func newScheduler(limit int) *scheduler {
	return &scheduler{limit: limit, clients: make(map[Client]*share)}
}

// acquire waits until a request of a client may run, which release ends.
func (s *scheduler) acquire(ctx context.Context, c Client) error { return s.wait(ctx, c, s.arrive(c)) }

// yield lets another request run, and waits until that of the client may continue. It does nothing if no other request waits. After an
// error the request does not run.
func (s *scheduler) yield(ctx context.Context, c Client) error { return s.wait(ctx, c, s.pause(c)) }

// arrive runs a request of a client, and returns nil, or lets it wait.
func (s *scheduler) arrive(c Client) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running < s.limit {
		s.running++
		s.share(c).running++
		return nil
	}
	return s.add(c, 0)
}

// pause lets a request that runs wait behind others, or returns nil if there are none.
func (s *scheduler) pause(c Client) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return nil
	}
	w := s.add(c, 1)
	s.free(c)
	return w
}

// release ends a run of a client's request.
func (s *scheduler) release(c Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free(c)
}

// wanted reports whether a request waits.
func (s *scheduler) wanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) > 0
}

// count returns the number of requests that run.
func (s *scheduler) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// wait waits until a request runs or is refused, or ctx ends. A request that is nil runs.
func (s *scheduler) wait(ctx context.Context, c Client, w *waiter) error {
	if w == nil {
		return nil
	}
	select {
	case <-w.ready:
		return w.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.remove(c, w) && w.err == nil { // it has just been started
		s.free(c)
	}
	return context.Cause(ctx)
}

// share returns the share of a client. s.mu is locked, as for all methods below.
func (s *scheduler) share(c Client) *share {
	x := s.clients[c]
	if x == nil {
		x = &share{client: c}
		s.clients[c] = x
	}
	return x
}

// add appends a waiting request to a list of its client.
func (s *scheduler) add(c Client, list int) *waiter {
	x, w := s.share(c), &waiter{ready: make(chan struct{})}
	if x.waits() == 0 {
		s.waiting = append(s.waiting, x)
	}
	x.lists[list] = append(x.lists[list], w)
	return w
}

// remove removes a waiting request. It returns false if that does not wait any more.
func (s *scheduler) remove(c Client, w *waiter) bool {
	x := s.share(c)
	defer s.settle(x)
	for i, list := range x.lists {
		if k := slices.Index(list, w); k >= 0 {
			x.lists[i] = slices.Delete(list, k, k+1)
			return true
		}
	}
	return false
}

// settle drops a share from the lists in which it is no longer.
func (s *scheduler) settle(x *share) {
	if x.waits() == 0 {
		s.waiting = slices.DeleteFunc(s.waiting, func(y *share) bool { return y == x })
		if x.running == 0 {
			delete(s.clients, x.client)
		}
	}
}

// free ends a run, and begins the next one.
func (s *scheduler) free(c Client) {
	x := s.share(c)
	x.running--
	s.running--
	if len(s.waiting) > 0 {
		last := func(y *share) int {
			if y == x {
				return 1
			}
			return 0
		}
		s.start(slices.MinFunc(s.waiting, func(a, b *share) int { return cmp.Or(a.running-b.running, last(a)-last(b)) }))
	}
	s.settle(x)
}

// start runs the next request of a client, which then comes after its equals.
func (s *scheduler) start(x *share) {
	i := 0
	if len(x.lists[0]) == 0 || x.due && len(x.lists[1]) > 0 {
		i = 1
	}
	w := x.lists[i][0]
	x.lists[i] = slices.Delete(x.lists[i], 0, 1)
	x.due = i == 0 && len(x.lists[1]) > 0
	x.running++
	s.running++
	s.waiting = slices.DeleteFunc(s.waiting, func(y *share) bool { return y == x })
	if x.waits() > 0 {
		s.waiting = append(s.waiting, x)
	}
	close(w.ready)
}

// waits returns the number of a client's waiting requests.
func (x *share) waits() int { return len(x.lists[0]) + len(x.lists[1]) }

// longest returns the client with the most requests that wait and have not run yet, if they are more than those of client c by
// at least two: a request of c in their place makes the shares more even. It returns nil if there is none.
func (s *scheduler) longest(c Client) *share {
	if len(s.waiting) == 0 {
		return nil
	}
	x := slices.MaxFunc(s.waiting, func(a, b *share) int { return len(a.lists[0]) - len(b.lists[0]) })
	own := 0
	if y := s.clients[c]; y != nil {
		own = y.waits()
	}
	if len(x.lists[0]) < own+2 {
		return nil
	}
	return x
}

// preempts reports whether preempt would refuse a request.
func (s *scheduler) preempts(c Client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.longest(c) != nil
}

// preempt refuses the last request of the client with the most that wait, so that one of client c may wait. It returns false if c
// has about as many.
func (s *scheduler) preempt(c Client, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.longest(c)
	if x == nil {
		return false
	}
	last := len(x.lists[0]) - 1
	w := x.lists[0][last]
	x.lists[0] = x.lists[0][:last]
	w.err = err
	close(w.ready)
	return true
}
