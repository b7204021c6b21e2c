package text

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/etrun-go/etrun"
)

// defaultBatch is the largest number of texts that decode together without WithBatch.
const defaultBatch = 32

// batcher lets the sessions of a model compute their next tokens together. Those that generate text are its members.
// When all of them need a token, or those that do have waited long enough, one of them runs a round: the calls of all that
// wait. The others are never waited for again before they come back.
type batcher struct {
	most int // the largest number of texts in a round, at most 1 for no rounds

	mu       sync.Mutex
	sessions int            // open sessions of the model
	members  []*participant // those that generate
	waiting  []*participant // of these, in the order of their arrival
	running  bool           // a session runs a round, or has been told to
	batch    *etrun.Batch
	reason   error // why there is no batch, and will not be

	patience *time.Timer   // ends the wait for the other members
	took     time.Duration // of the last round

	round   []*participant // of the session that runs it
	methods []*etrun.Method
	errs    []error
}

// signal is what a waiting session does next.
type signal uint8

const (
	signalDone  signal = iota // its call has been made
	signalLead                // it runs the next round
	signalAlone               // it makes its call itself
)

// participant is a session's part of the batcher.
type participant struct {
	method *etrun.Method
	signal chan signal
	err    error // of the call
	missed bool  // a round has begun without it since its last call
	one    bool  // the last call was of one token that follows others
}

// runs reports whether there is a batch.
func (b *batcher) runs() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.batch != nil
}

// join makes a session a member, if it is none, and leave ends that.
func (b *batcher) join(s *participant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Contains(b.members, s) {
		return
	}
	if s.signal == nil {
		s.signal = make(chan signal, 1)
	}
	s.missed = false
	b.members = append(b.members, s)
}

func (b *batcher) leave(s *participant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.members, s); i >= 0 {
		b.members = slices.Delete(b.members, i, i+1)
		b.start()
	}
}

// ready reports whether a round should begin.
func (b *batcher) ready() bool {
	if b.running || len(b.waiting) == 0 {
		return false
	}
	expected := 0
	for _, s := range b.members {
		if !s.missed {
			expected++
		}
	}
	return len(b.waiting) >= min(expected, b.rows())
}

// rows returns the largest number of texts in a round.
func (b *batcher) rows() int {
	if b.batch != nil {
		return b.batch.Rows()
	}
	return b.most
}

// start lets the session that waits longest run a round if it is time.
func (b *batcher) start() {
	if b.ready() {
		b.lead()
	}
}

func (b *batcher) lead() {
	b.running = true
	if b.patience != nil {
		b.patience.Stop()
	}
	b.waiting[0].signal <- signalLead
}

// expire begins a round without the members that do not wait yet.
func (b *batcher) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running || len(b.waiting) == 0 {
		return
	}
	for _, s := range b.members {
		s.missed = !slices.Contains(b.waiting, s)
	}
	b.lead()
}

// execute makes the call of one token that a session has prepared, together with other sessions if there are any.
func (b *batcher) execute(ctx context.Context, s *participant) error {
	b.mu.Lock()
	if len(b.members) < 2 || b.reason != nil || !slices.Contains(b.members, s) || b.batch == nil && !s.one {
		b.mu.Unlock()
		return s.method.Execute(ctx)
	}
	s.missed = false
	b.waiting = append(b.waiting, s)
	if b.ready() {
		b.lead()
	} else if len(b.waiting) == 1 && !b.running {
		b.wait()
	}
	b.mu.Unlock()
	return b.await(ctx, s)
}

// wait bounds the wait for the other members by a part of the time that a round takes.
func (b *batcher) wait() {
	const part = 2
	if b.patience == nil {
		b.patience = time.AfterFunc(b.took/part, b.expire)
		return
	}
	b.patience.Reset(b.took / part)
}

// await waits for the session's signal.
func (b *batcher) await(ctx context.Context, s *participant) error {
	var next signal
	select {
	case next = <-s.signal:
	case <-ctx.Done():
		if b.withdraw(s) {
			return context.Cause(ctx)
		}
		next = <-s.signal // its call is part of a round
	}
	if next == signalLead {
		next = b.run(s)
	}
	if next == signalAlone || isMismatch(s.err) {
		return s.method.Execute(ctx)
	}
	return s.err
}

// withdraw removes a session from those that wait, unless its signal has come.
func (b *batcher) withdraw(s *participant) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, s)
	if i < 0 || i == 0 && b.running && len(s.signal) > 0 {
		return false
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return true
}

// run runs a round, and returns the signal of the session that runs it.
func (b *batcher) run(s *participant) (next signal) {
	b.mu.Lock()
	n := min(len(b.waiting), b.rows())
	b.round = append(b.round[:0], b.waiting[:n]...)
	b.waiting = slices.Delete(b.waiting, 0, n)
	b.mu.Unlock()
	next = signalAlone // if the round panics
	defer func() { b.finish(s, next) }()
	return b.compute()
}

// finish ends the round of a session, and lets the next one begin. The others get their signal.
func (b *batcher) finish(s *participant, next signal) {
	defer b.free()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, other := range b.round {
		if other != s {
			other.signal <- next
		}
	}
	clear(b.round)
	clear(b.methods)
	b.round, b.methods = b.round[:0], b.methods[:0]
	if b.running = false; b.ready() {
		b.lead()
	} else if len(b.waiting) > 0 {
		b.wait()
	}
}

// compute makes the calls of a round.
func (b *batcher) compute() signal {
	start := time.Now()
	batch := b.open(b.round[0])
	if batch == nil {
		return signalAlone
	}
	b.methods, b.errs = b.methods[:0], slices.Grow(b.errs[:0], len(b.round))[:len(b.round)]
	for _, s := range b.round {
		b.methods = append(b.methods, s.method)
	}
	// Not the context of any of them: each call ends with the round, which is short.
	if err := batch.Execute(context.Background(), b.methods, b.errs); err != nil {
		b.end(err)
		return signalAlone
	}
	for i, s := range b.round {
		if s.err = b.errs[i]; isMismatch(s.err) {
			b.end(s.err)
		}
	}
	b.mu.Lock()
	b.took = time.Since(start)
	b.mu.Unlock()
	return signalDone
}

// isMismatch reports whether a call failed only because it was made with others. It may be repeated: the caches have a slot
// per position.
func isMismatch(err error) bool {
	_, ok := errors.AsType[*etrun.BatchError](err)
	return ok
}

// open returns the batch, which it makes from the method of a session if there is none yet; nil if there cannot be one.
func (b *batcher) open(s *participant) *etrun.Batch {
	b.mu.Lock()
	batch := b.batch
	b.mu.Unlock()
	if batch != nil {
		return batch
	}
	batch, err := s.method.NewBatch(context.Background(), b.most)
	if err != nil {
		if !errors.Is(err, etrun.ErrClosed) && !errors.Is(err, etrun.ErrBusy) { // only this session is closed
			b.end(err)
		}
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions == 0 {
		batch.Close()
		return nil
	}
	b.batch = batch
	return batch
}

// end ends all rounds, for a reason.
func (b *batcher) end(reason error) {
	b.mu.Lock()
	batch := b.batch
	b.batch, b.reason = nil, reason
	b.mu.Unlock()
	if batch != nil {
		batch.Close()
	}
}

// opened counts a session of the model. The batch is closed with the last one.
func (b *batcher) opened() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions++
}

func (b *batcher) closed() {
	b.mu.Lock()
	b.sessions--
	b.mu.Unlock()
	b.free()
}

// free closes the batch if there is no session, shrink if none generates text.
func (b *batcher) free() { b.closeIf(func() bool { return b.sessions == 0 }) }

func (b *batcher) shrink() { b.closeIf(func() bool { return len(b.members) == 0 }) }

func (b *batcher) closeIf(unused func() bool) {
	b.mu.Lock()
	var batch *etrun.Batch
	if !b.running && unused() {
		batch, b.batch = b.batch, nil
	}
	b.mu.Unlock()
	if batch != nil {
		batch.Close()
	}
}

// bytes returns the memory of the batch.
func (b *batcher) bytes() int64 {
	b.mu.Lock()
	batch := b.batch
	b.mu.Unlock()
	if batch == nil {
		return 0
	}
	return batch.Bytes()
}
