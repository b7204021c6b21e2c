package bench

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/etrun-go/etrun/text"
)

// texts are the sessions of clients that generate at the same time.
type texts []*text.Session

// openTexts opens n sessions. After an error some are open.
func openTexts(ctx context.Context, m *text.Model, n int) (list texts, err error) {
	for range n {
		s, err := m.NewSession(ctx)
		if err != nil {
			return list, err
		}
		list = append(list, s)
	}
	return list, nil
}

func (t texts) close() {
	for _, s := range t {
		_ = s.Close() // frees memory only
	}
}

// generate continues a prompt in all sessions, from empty ones, and returns the last piece of each.
func (t texts) generate(ctx context.Context, prompt []int, o text.Options) ([]text.Piece, error) {
	ends, errs := make([]text.Piece, len(t)), make([]error, len(t))
	var group sync.WaitGroup
	for i, s := range t {
		group.Go(func() {
			if errs[i] = s.Reset(); errs[i] == nil {
				ends[i], errs[i] = last(s.GenerateTokens(ctx, prompt, o))
			}
		})
	}
	group.Wait()
	return ends, errors.Join(errs...)
}

// last returns the last piece of a text.
func last(pieces iter.Seq2[text.Piece, error]) (end text.Piece, err error) {
	for end, err = range pieces {
	}
	return end, err
}
