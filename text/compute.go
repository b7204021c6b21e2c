package text

import (
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// inputs holds the tokens and positions of a call.
type inputs struct {
	ints   []int64
	shorts []int32
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
	c := &s.model.call
	if s.dirty || c.cache == CacheNone && len(s.method.StateTensors()) > 0 {
		if err := s.method.Reset(); err != nil {
			return err
		}
		s.dirty = false
	}
	first, n := s.window(before)
	if err := s.setInputs(first, n); err != nil {
		return err
	}
	if err := s.method.Execute(ctx); err != nil {
		return err
	}
	return s.readLogits(first, n)
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

func (s *Session) setInputs(first, n int) error {
	c := &s.model.call
	err := s.in.set(s.method, 0, c.tokens, n, func(k int) int {
		if first+k < len(s.tokens) {
			return s.tokens[first+k]
		}
		return 0
	})
	if err != nil || c.places == 0 {
		return err
	}
	places := n
	if c.places == 1 {
		places = 1
	}
	return s.in.set(s.method, 1, c.position, places, func(k int) int { return first + k })
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
	switch t.DType {
	case tensor.Float32:
		s.logits = tensor.Data[float32](t)
	case tensor.Float16:
		s.convert(t, tensor.HalfToFloat)
	default:
		s.convert(t, tensor.BFloatToFloat)
	}
	if s.last() == nil {
		return s.model.call.reject(fmt.Sprintf("logits of %d of %d tokens", rows, n), wantLogits)
	}
	return nil
}

func (s *Session) convert(t *tensor.Tensor, float func(uint16) float32) {
	from := tensor.Data[uint16](t)
	s.rows = slices.Grow(s.rows[:0], len(from))[:len(from)]
	for i, x := range from {
		s.rows[i] = float(x)
	}
	s.logits = s.rows
}
