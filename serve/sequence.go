package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/etrun-go/etrun"
)

// sequences handles the requests of a version that keep state: each sequence has its own instances,
// one per method, which share their state.
type sequences struct {
	version *version
	limits  SequenceLimits

	mu     sync.Mutex
	live   map[sequenceKey]*sequence
	bytes  int64       // of all instances
	expiry *time.Timer // nil without sequences
	ended  bool
}

// sequenceKey identifies a sequence: clients that authenticate have their own.
type sequenceKey struct{ credential, id string }

// sequence is one sequence. The fields after waiting belong to the request that holds busy.
type sequence struct {
	key  sequenceKey
	busy chan struct{} // contains an element while a request uses the sequence
	used time.Time     // guarded by sequences.mu, like waiting
	// waiting counts the requests that use the sequence or wait for it.
	waiting int

	methods map[string]Instance
	first   Instance // the others share its state
	bytes   int64
	dead    bool
}

func newSequences(v *version, limits SequenceLimits) *sequences {
	return &sequences{version: v, limits: limits, live: make(map[sequenceKey]*sequence)}
}

// step is the sequence parameters of a request.
type step struct {
	id         string
	start, end bool // reset the state before the run; end the sequence after it
}

// run executes a call in a sequence. Requests of one sequence run one at a time. A failed run
// leaves undefined state, so it ends the sequence.
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
		if errors.Is(err, ErrEnded) { // its process ended: new instances are equivalent
			l.closeInstances(q)
			err = nil
		}
		if err != nil {
			l.kill(q)
			return err
		}
	}
	end, err := c.queued(ctx)
	if err != nil {
		return err
	}
	defer end()
	m, err := l.method(ctx, q, c.endpoint.method)
	if err != nil {
		return err
	}
	if err = c.serve(ctx, m, 1); err != nil && !errors.Is(err, etrun.ErrInput) || s.end {
		l.kill(q)
	}
	return err
}

// enter finds or starts the sequence, and waits until no other request uses it.
func (l *sequences) enter(ctx context.Context, s step) (*sequence, error) {
	q, err := l.join(sequenceKey{ClientOf(ctx).Credential, s.id}, s.start)
	if err != nil {
		return nil, err
	}
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

// join returns the sequence of a request, which then waits for its turn in it.
func (l *sequences) join(key sequenceKey, start bool) (*sequence, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.live[key]
	switch {
	case l.ended || q == nil && !start:
		return nil, fmt.Errorf("sequence %q: %w; start it with sequence_start", key.id, ErrEnded)
	case q == nil && len(l.live) >= l.limits.Max:
		return nil, &busyError{fmt.Sprintf("%d sequences are open, the maximum", l.limits.Max), l.limits.Idle}
	case q == nil:
		q = &sequence{key: key, busy: make(chan struct{}, 1), methods: make(map[string]Instance)}
		l.live[key] = q
		l.watch()
	}
	q.waiting++
	return q, nil
}

// leave passes the sequence on to the next request. It ends the sequence if nothing was run in it,
// or if its version was replaced.
func (l *sequences) leave(q *sequence) {
	defer func() { <-q.busy }()
	if l.endUse(q) {
		l.kill(q)
	}
}

// endUse counts the end of a request; over reports whether the sequence ends with it.
func (l *sequences) endUse(q *sequence) (over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q.waiting--
	q.used = time.Now()
	over = l.ended || len(q.methods) == 0 && q.waiting == 0
	if over && l.live[q.key] == q {
		delete(l.live, q.key)
	}
	return over
}

// method returns the sequence's instance of a method.
func (l *sequences) method(ctx context.Context, q *sequence, name string) (Instance, error) {
	if m := q.methods[name]; m != nil {
		return m, nil
	}
	m, err := l.version.program.Instance(ctx, name, q.first)
	if err != nil {
		return nil, err
	}
	size := m.Bytes()
	if err := l.reserve(size); err != nil {
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

func (l *sequences) reserve(size int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes+size > l.limits.Bytes {
		return &busyError{fmt.Sprintf("sequences use %d bytes, this one %d more, at most %d are allowed", l.bytes, size, l.limits.Bytes), l.limits.Idle}
	}
	l.bytes += size
	return nil
}

// reset restores the initial state of the sequence.
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
	l.closeInstances(q)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live[q.key] == q {
		delete(l.live, q.key)
	}
}

// closeInstances closes the instances of a sequence that the caller holds.
func (l *sequences) closeInstances(q *sequence) {
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

// watch schedules the end of idle sequences. l.mu is locked.
func (l *sequences) watch() {
	if l.expiry == nil {
		l.expiry = time.AfterFunc(l.limits.Idle, l.expire)
	}
}

// expire ends sequences that were idle for the time limit.
func (l *sequences) expire() {
	for _, q := range l.expired() {
		l.kill(q)
	}
}

// expired removes the sequences to end, and schedules the next look.
func (l *sequences) expired() (idle []*sequence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expiry = nil
	idle = l.remove(func(q *sequence) bool { return time.Since(q.used) >= l.limits.Idle })
	if len(l.live) > 0 && !l.ended {
		l.expiry = time.AfterFunc(max(l.limits.Idle/4, time.Millisecond), l.expire)
	}
	return idle
}

// remove removes the unused sequences for which meant returns true. l.mu is locked.
func (l *sequences) remove(meant func(*sequence) bool) (list []*sequence) {
	for key, q := range l.live {
		if q.waiting == 0 && meant(q) {
			delete(l.live, key)
			list = append(list, q)
		}
	}
	return list
}

// close ends all sequences: idle ones now, the others after the current request.
func (l *sequences) close() {
	for _, q := range l.end() {
		l.kill(q)
	}
}

// end removes the unused sequences; later requests are refused.
func (l *sequences) end() []*sequence {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.expiry != nil {
		l.expiry.Stop()
	}
	return l.remove(func(*sequence) bool { return true })
}

// count returns the number of open sequences.
func (l *sequences) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.live)
}

// Sequences returns the number of open sequences.
func (m *Model) Sequences() int {
	v, err := m.acquire()
	if err != nil {
		return 0
	}
	defer v.release()
	return v.sequences.count()
}
