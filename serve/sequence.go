package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/etrun-go/etrun"
)

// sequences are the requests of a version that keep state: each sequence has instances of
// its own, whose methods share their state.
type sequences struct {
	version *version
	limits  SequenceLimits

	mu     sync.Mutex
	live   map[string]*sequence
	bytes  int64       // of all instances
	expiry *time.Timer // nil without sequences
	ended  bool
}

// sequence is one of them. What follows busy belongs to who holds it.
type sequence struct {
	id   string
	busy chan struct{} // holds one element while a request uses it
	used time.Time     // guarded by sequences.mu, as is waiting
	// waiting are the requests that use it or wait for it.
	waiting int

	methods map[string]Instance
	first   Instance // whose state the others share
	bytes   int64
	dead    bool
}

func newSequences(v *version, limits SequenceLimits) *sequences {
	return &sequences{version: v, limits: limits, live: make(map[string]*sequence)}
}

// step is what a request does with its sequence.
type step struct {
	id         string
	start, end bool // begin with fresh state; end it after this
}

// run executes a call in a sequence. Requests of one sequence follow one another. An execute
// that fails leaves state that nobody can know, and ends the sequence.
func (l *sequences) run(ctx context.Context, c *call, s step) error {
	q, err := l.enter(ctx, s)
	if err != nil {
		return err
	}
	defer l.leave(q)
	if q.dead {
		return fmt.Errorf("sequence %q: %w", s.id, ErrEnded)
	}
	if s.start {
		err := q.reset()
		if errors.Is(err, ErrEnded) { // with its process: new instances are as good
			l.forget(q)
			err = nil
		}
		if err != nil {
			l.kill(q)
			return err
		}
	}
	end, err := c.endpoint.turn(ctx)
	if err != nil {
		return err
	}
	defer end()
	m, err := l.method(ctx, q, c.endpoint.method)
	if err != nil {
		return err
	}
	if err = c.execute(ctx, m); err != nil && !errors.Is(err, etrun.ErrInput) || s.end {
		l.kill(q)
	}
	return err
}

// enter finds the sequence, or begins it, and waits until nobody else uses it.
func (l *sequences) enter(ctx context.Context, s step) (*sequence, error) {
	l.mu.Lock()
	q := l.live[s.id]
	switch {
	case l.ended || q == nil && !s.start:
		l.mu.Unlock()
		return nil, fmt.Errorf("sequence %q: %w; begin it with sequence_start", s.id, ErrEnded)
	case q == nil && len(l.live) >= l.limits.Most:
		l.mu.Unlock()
		return nil, &busyError{fmt.Sprintf("%d sequences are open, no more are allowed", l.limits.Most), l.limits.Idle}
	case q == nil:
		q = &sequence{id: s.id, busy: make(chan struct{}, 1), methods: make(map[string]Instance)}
		l.live[s.id] = q
		l.watch()
	}
	q.waiting++
	l.mu.Unlock()
	select {
	case q.busy <- struct{}{}:
		return q, nil
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		q.waiting--
		return nil, context.Cause(ctx)
	}
}

// leave gives the sequence to the next request. One that nothing was executed in, or whose
// version is replaced, ends.
func (l *sequences) leave(q *sequence) {
	l.mu.Lock()
	q.waiting--
	q.used = time.Now()
	over := l.ended || len(q.methods) == 0 && q.waiting == 0
	if over && l.live[q.id] == q {
		delete(l.live, q.id)
	}
	l.mu.Unlock()
	if over {
		l.kill(q)
	}
	<-q.busy
}

// method is the sequence's instance of a method.
func (l *sequences) method(ctx context.Context, q *sequence, name string) (Instance, error) {
	if m := q.methods[name]; m != nil {
		return m, nil
	}
	m, err := l.version.program.Instance(ctx, name, q.first)
	if err != nil {
		return nil, err
	}
	size := m.Bytes()
	if err := l.take(size); err != nil {
		_ = m.Close()
		return nil, err
	}
	if q.first == nil {
		q.first = m
	}
	q.methods[name] = m
	q.bytes += size
	return m, nil
}

func (l *sequences) take(size int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes+size > l.limits.Bytes {
		return &busyError{fmt.Sprintf("sequences take %d bytes, this one %d more, want at most %d", l.bytes, size, l.limits.Bytes), l.limits.Idle}
	}
	l.bytes += size
	return nil
}

// reset gives the sequence fresh state.
func (q *sequence) reset() error {
	for _, m := range q.methods {
		if err := m.Reset(); err != nil {
			return err
		}
	}
	return nil
}

// kill ends a sequence that the caller holds.
func (l *sequences) kill(q *sequence) {
	if q.dead {
		return
	}
	q.dead = true
	l.forget(q)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live[q.id] == q {
		delete(l.live, q.id)
	}
}

// forget closes the instances of a sequence that the caller holds.
func (l *sequences) forget(q *sequence) {
	for _, m := range q.methods {
		if m != q.first {
			_ = m.Close()
		}
	}
	if q.first != nil {
		_ = q.first.Close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes -= q.bytes
	clear(q.methods)
	q.first, q.bytes = nil, 0
}

// watch ends idle sequences some time from now. l.mu is held.
func (l *sequences) watch() {
	if l.expiry == nil {
		l.expiry = time.AfterFunc(l.limits.Idle, l.expire)
	}
}

// expire ends sequences that nobody used for the time limit.
func (l *sequences) expire() {
	l.mu.Lock()
	l.expiry = nil
	idle := l.remove(func(q *sequence) bool { return time.Since(q.used) >= l.limits.Idle })
	if len(l.live) > 0 && !l.ended {
		l.expiry = time.AfterFunc(max(l.limits.Idle/4, time.Millisecond), l.expire)
	}
	l.mu.Unlock()
	for _, q := range idle {
		l.kill(q)
	}
}

// remove takes sequences out that are meant and that nobody uses. l.mu is held.
func (l *sequences) remove(meant func(*sequence) bool) (list []*sequence) {
	for id, q := range l.live {
		if q.waiting == 0 && meant(q) {
			delete(l.live, id)
			list = append(list, q)
		}
	}
	return list
}

// close ends all sequences: idle ones now, the others after the request that uses them.
func (l *sequences) close() {
	l.mu.Lock()
	l.ended = true
	if l.expiry != nil {
		l.expiry.Stop()
	}
	idle := l.remove(func(*sequence) bool { return true })
	l.mu.Unlock()
	for _, q := range idle {
		l.kill(q)
	}
}

// Sequences is how many sequences are open.
func (m *Model) Sequences() int {
	v, err := m.acquire()
	if err != nil {
		return 0
	}
	defer v.release()
	v.sequences.mu.Lock()
	defer v.sequences.mu.Unlock()
	return len(v.sequences.live)
}
