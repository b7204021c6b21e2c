package text

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Session holds one text: an instance of the program's method, with its cache. Only one goroutine
// may use it at a time: a call during another call returns etrun.ErrBusy and changes nothing.
type Session struct {
	model  *Model
	method *etrun.Method
	embed  *etrun.Method // makes rows of tokens; nil if method takes tokens
	life   atomic.Uint32

	tokens []int // computed, by position
	logits []float32
	used   int  // positions of the caches that texts have used
	begin  int  // position of the token whose logits are the first row
	dirty  bool // the state is undefined: it must be reset before the next call

	// The logits after the last prompt, so that another text of the same prompt begins with the same
	// numbers. Those of its last token alone can differ in the last bits.
	kept   []float32 // empty for none
	keptAt int       // position of the token that they follow

	in    inputs
	rowOf map[int][]float32 // of the parts of the current call
	part  participant       // in the rounds of the sessions that generate text
	rows  []float32         // logits converted to float32
	gen   generation        // of the current call of Generate; its memory is reused
}

// States of life.
const (
	idle    = iota
	running // in a call
	closing // in a call, and Close was called
	closed
)

// NewSession returns an empty session. Errors are those of etrun.Program.Load.
func (m *Model) NewSession(ctx context.Context) (*Session, error) {
	s := m.spare()
	if s == nil {
		var err error
		if s, err = m.open(ctx); err != nil {
			return nil, err
		}
	}
	m.batch.opened()
	return s, nil
}

// emptied returns another session with the instance and the memory of a closed one.
func (s *Session) emptied() *Session {
	e := &Session{model: s.model, method: s.method, embed: s.embed, part: participant{method: s.method}}
	e.tokens, e.kept, e.in, e.rows, e.gen = s.tokens[:0], s.kept[:0], s.in, s.rows, s.gen
	return e
}

// Model returns the model of the session.
func (s *Session) Model() *Model { return s.model }

// enter claims the session for one call; leave releases it, and frees it if it was closed in the meantime: the call reads the memory of
// the instance.
func (s *Session) enter() error {
	if s.life.CompareAndSwap(idle, running) {
		return nil
	}
	if s.life.Load() != running {
		return errClosed
	}
	return fmt.Errorf("text session: %w", etrun.ErrBusy)
}

var errClosed = fmt.Errorf("text session: %w", etrun.ErrClosed)

func (s *Session) leave() {
	if !s.life.CompareAndSwap(running, idle) {
		s.life.Store(closed)
		_ = s.free() // Close has returned
	}
}

// Tokens returns a copy of the tokens that have been computed. The last token of a generated text
// is computed only if another one follows.
func (s *Session) Tokens() ([]int, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return slices.Clone(s.tokens), nil
}

// Fork returns a new session with a copy of the text and of the cache.
func (s *Session) Fork(ctx context.Context) (*Session, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	fork, err := s.model.NewSession(ctx)
	if err != nil || s.dirty {
		return fork, err // a session whose state is undefined has no tokens
	}
	if err := fork.copyState(s); err != nil {
		return nil, errors.Join(err, fork.Close())
	}
	fork.tokens = slices.Clone(s.tokens)
	fork.logits, fork.begin = slices.Clone(s.logits), s.begin
	fork.kept, fork.keptAt = slices.Clone(s.kept), s.keptAt
	return fork, nil
}

// Reset empties the session.
func (s *Session) Reset() error { return s.Rewind(0) }

// Rewind drops all tokens but the first n. It costs nothing if the cache has a slot per position.
// If not, the next call computes the n tokens again, unless n is 0 or all tokens.
func (s *Session) Rewind(n int) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if n < 0 || n > len(s.tokens) {
		return &OptionError{Option: "tokens to keep", Got: n, Want: "at most the " + decimal(len(s.tokens)) + " of the session"}
	}
	s.rewind(n)
	return nil
}

// rewind drops all tokens but the first n, or all of them if the cache cannot drop only the others.
func (s *Session) rewind(n int) {
	if n == len(s.tokens) {
		return
	}
	if s.model.call.cache == CacheRecurrent {
		s.dirty, n = true, 0
	}
	s.tokens = s.tokens[:n]
	if n <= s.begin {
		s.logits = nil
	}
	if n <= s.keptAt {
		s.kept = s.kept[:0]
	}
}

// Close frees the session, at the end of a call. A call in progress, and later ones except Model, return etrun.ErrClosed. Closing
// twice is allowed.
func (s *Session) Close() error {
	for {
		switch s.life.Load() {
		case closing, closed:
			return nil
		case running:
			if s.life.CompareAndSwap(running, closing) {
				return nil
			}
		case idle:
			if s.life.CompareAndSwap(idle, closed) {
				return s.free()
			}
		}
	}
}

func (s *Session) free() error {
	defer s.model.batch.closed()
	if s.model.recycle(s) {
		return nil
	}
	return s.closeMethods()
}

func (s *Session) closeMethods() error {
	err := s.method.Close()
	if s.embed != nil {
		err = errors.Join(err, s.embed.Close())
	}
	return err
}

// last returns the logits after the last token, nil if they are not available.
func (s *Session) last() []float32 {
	return s.logitsAfter(len(s.tokens) - 1)
}

// logitsAfter returns the logits after the token at a position, nil if they are not available.
func (s *Session) logitsAfter(position int) []float32 {
	if len(s.kept) > 0 && position == s.keptAt {
		return s.kept
	}
	v := s.model.call.vocabulary
	at := (position - s.begin) * v
	if position < s.begin || position < 0 || at+v > len(s.logits) {
		return nil
	}
	return s.logits[at : at+v]
}

// extend makes the session's tokens those of a prompt and returns the number of tokens that it
// reused. Afterwards the logits after the last one are available.
func (s *Session) extend(ctx context.Context, prompt []int) (reused int, err error) {
	for reused < min(len(prompt), len(s.tokens)) && prompt[reused] == s.tokens[reused] {
		reused++
	}
	s.rewind(reused)
	if len(s.tokens) == len(prompt) && s.last() == nil {
		s.rewind(len(prompt) - 1)
	}
	if s.model.call.cache == CacheNone && len(s.tokens) < len(prompt) {
		s.rewind(0)
	}
	reused = len(s.tokens)
	for rest := prompt[reused:]; len(rest) > 0; {
		n := min(len(rest), s.step())
		if err := s.computePart(ctx, rest[:n], s.keep); err != nil {
			return reused, err
		}
		rest = rest[n:]
	}
	s.keep()
	return reused, nil
}

// keep keeps the logits after the last token.
func (s *Session) keep() {
	if last := len(s.tokens) - 1; len(s.kept) == 0 || s.keptAt != last {
		s.kept, s.keptAt = append(s.kept[:0], s.last()...), last
	}
}

// computePart computes a part of a prompt, after those of others that wait, and calls read, as long as all its logits are available. A
// single token is computed with those of texts that are being generated, where it takes less time. The session is then a member of the
// batch, which its caller has to leave.
func (s *Session) computePart(ctx context.Context, tokens []int, read func()) error {
	if len(tokens) == 1 && s.model.batch.runs() {
		s.model.batch.join(&s.part)
	} else if err := s.model.prompts.acquire(ctx); err != nil {
		return err
	} else {
		defer s.model.prompts.release()
	}
	if len(tokens) > 1 {
		s.model.lend(s)
		defer s.model.returnSession(s)
	}
	err := s.compute(ctx, tokens)
	if err == nil {
		read()
	}
	return err
}

// step returns the maximum number of tokens that the next call can add.
func (s *Session) step() int {
	c := &s.model.call
	if c.cache == CacheNone {
		return s.model.info.Context
	}
	return s.model.info.Chunk
}

// inputs holds the tokens and positions of a call.
type inputs struct {
	ints   []int64
	shorts []int32
	rows   []float32
	halves []uint16  // rows of another type
	made   []float32 // by the method token_embedding, of another type
}

// set copies numbers into input i of a method.
func (in *inputs) set(m *etrun.Method, i int, kind tensor.DType, n int, number func(int) int) error {
	if kind == tensor.Int32 {
		in.shorts = slices.Grow(in.shorts[:0], n)[:n]
		for k := range in.shorts {
			in.shorts[k] = int32(number(k))
		}
		return etrun.Set(m, i, in.shorts)
	}
	in.ints = slices.Grow(in.ints[:0], n)[:n]
	for k := range in.ints {
		in.ints[k] = int64(number(k))
	}
	return etrun.Set(m, i, in.ints)
}

// compute adds tokens, at most step of them, to the session. It sets rows to the logits after the
// last token or, if the program returns those of all tokens, after each one. A failed call adds
// nothing.
func (s *Session) compute(ctx context.Context, tokens []int) error {
	before := len(s.tokens)
	s.tokens = append(s.tokens, tokens...)
	s.used = max(s.used, len(s.tokens))
	err := s.execute(ctx, before)
	if err != nil {
		s.tokens = s.tokens[:before]
		if s.model.call.cache == CacheRecurrent {
			s.forget()
		}
	}
	return err
}

// forget drops all tokens: the state is undefined.
func (s *Session) forget() {
	s.tokens, s.logits, s.kept, s.dirty = s.tokens[:0], nil, s.kept[:0], true
}

// execute runs the method for the tokens from position before on.
func (s *Session) execute(ctx context.Context, before int) error {
	s.logits = nil
	if s.life.Load() == closing {
		return errClosed
	}
	c := &s.model.call
	if s.dirty || c.cache == CacheNone && len(s.method.StateTensors()) > 0 {
		if err := s.method.Reset(); err != nil {
			return err
		}
		s.dirty = false
	}
	first, n := s.window(before)
	if err := s.setInputs(ctx, first, n); err != nil {
		return err
	}
	if err := s.callMethod(ctx, n == 1 && c.cache == CachePositions); err != nil {
		return err
	}
	s.part.one = n == 1 && before > 0
	return s.readLogits(first, n)
}

// callMethod executes the method. A call of one token may be made together with those of other sessions.
func (s *Session) callMethod(ctx context.Context, one bool) error {
	if one && !s.model.call.fixed {
		return s.model.batch.execute(ctx, &s.part)
	}
	return s.method.Execute(ctx)
}

// window returns the position of the first token of a call, and the number of tokens. Calls with a
// fixed number of tokens end with padding, or begin with tokens that are computed again.
func (s *Session) window(before int) (first, n int) {
	c := &s.model.call
	if c.cache == CacheNone {
		first, n = 0, len(s.tokens)
	} else {
		first, n = before, len(s.tokens)-before
	}
	if c.fixed {
		first, n = max(0, min(first, s.model.info.Context-c.width)), c.width
	}
	return first, n
}

func (s *Session) setInputs(ctx context.Context, first, n int) error {
	c := &s.model.call
	var err error
	if c.rows > 0 {
		err = s.setRows(ctx, first, n)
	} else {
		err = s.in.set(s.method, 0, c.tokens, n, func(k int) int { return s.tokenAt(first + k) })
	}
	if err != nil || c.positions == 0 {
		return err
	}
	places := n
	if c.positions == 1 {
		places = 1
	}
	return s.in.set(s.method, 1, c.position, places, func(k int) int { return first + k })
}

// tokenAt returns the token at a position, or padding after the text.
func (s *Session) tokenAt(position int) int {
	if position < len(s.tokens) {
		return s.tokens[position]
	}
	return 0
}

// readLogits copies the logits of a call: of its last token, or of all tokens.
func (s *Session) readLogits(first, n int) error {
	v, err := s.method.Output(0)
	if err != nil {
		return err
	}
	t := v.Tensor
	rows := 1
	if s.model.call.all {
		rows = n
	}
	if t.Numel() != rows*s.model.call.vocabulary || !t.IsContiguous() {
		return s.model.call.reject(fmt.Sprintf("%v %s for %d tokens", t.DType, tensor.FormatSizes(t.Sizes), n), wantLogits)
	}
	s.begin = first + n - rows
	if s.logits = float32s(t, s.rows); t.DType != tensor.Float32 {
		s.rows = s.logits
	}
	if s.last() == nil {
		return s.model.call.reject(fmt.Sprintf("logits of %d of %d tokens", rows, n), wantLogits)
	}
	return nil
}

// float32s returns the elements of a contiguous tensor of float32, which it shares, or of 16-bit floats, converted into buf.
func float32s(t *tensor.Tensor, buf []float32) []float32 {
	if t.DType == tensor.Float32 {
		return tensor.Data[float32](t)
	}
	float := tensor.BFloatToFloat
	if t.DType == tensor.Float16 {
		float = tensor.HalfToFloat
	}
	from := tensor.Data[uint16](t)
	buf = slices.Grow(buf[:0], len(from))[:len(from)]
	for i, x := range from {
		buf[i] = float(x)
	}
	return buf
}
