package session

import (
	"context"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
)

// PrepareToFeed loads a method for a call whose inputs [Session.Feed] sets before each run.
func (s *Session) PrepareToFeed(ctx context.Context, method string) error {
	meta, err := s.meta(method)
	if err != nil {
		return err
	}
	m, err := s.load(ctx, meta)
	if err != nil {
		return err
	}
	s.methods[meta.Name] = m
	s.order, s.Steps = append(s.order, m), append(s.Steps, &Step{Callee: m})
	s.Loaded = time.Since(s.begun)
	s.Warn()
	return nil
}

// Feed sets the inputs of the call. Notes about how they were read go to say.
func (s *Session) Feed(ctx context.Context, specs []input.Spec, say func(format string, args ...any)) (err error) {
	st := s.Steps[0]
	meta, err := s.Meta(st.Name())
	if err != nil {
		return err
	}
	r := &input.Resolver{Seed: s.options.Seed, Limit: s.options.InputLimit(), Say: say, Attempt: st.attempt}
	values, err := r.Resolve(ctx, specs, meta.Inputs)
	st.keeps(r, values)
	return err
}
