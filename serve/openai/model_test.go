package openai

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// newGenerator returns an attachment of a model.
func newGenerator(t *testing.T, c Config) *generator {
	t.Helper()
	folder := filepath.Join("..", "..", "text", "testdata")
	p, err := etrun.OpenSource(t.Context(), etrun.File(filepath.Join(folder, "dynamic.pte")), etrun.WithDelegates(all.Backends()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if c.Tokenizer, err = tokenizer.Open(filepath.Join(folder, "bytes.json")); err != nil {
		t.Fatal(err)
	}
	a, err := Attach(c)(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a.(*generator)
}

// A session whose model failed, or whose use panicked, is not kept, and not counted; others are.
func TestFailedSessions(t *testing.T) {
	g := newGenerator(t, Config{Sessions: 4})
	for name, c := range map[string]struct {
		f    func(*text.Session) error
		kept int
	}{
		"an answer":       {func(*text.Session) error { return nil }, 1},
		"a refused call":  {func(*text.Session) error { return refused("max_tokens", "too few") }, 1},
		"an ended one":    {func(*text.Session) error { return context.Canceled }, 1},
		"a failed model":  {func(*text.Session) error { return &modelError{errors.New("no memory")} }, 0},
		"a panic":         {func(*text.Session) error { panic("a fault") }, 0},
		"a closed client": {func(*text.Session) error { return errors.New("the client is gone") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			func() {
				defer func() { _ = recover() }()
				_ = g.use(t.Context(), owner{}, []int{1}, c.f)
			}()
			if len(g.idle) != c.kept || g.all != c.kept {
				t.Errorf("%d sessions are idle, %d counted, want %d", len(g.idle), g.all, c.kept)
			}
			for _, h := range g.idle {
				_ = h.session.Close()
			}
			g.idle, g.all = nil, 0
		})
	}
}

// What sessions share counts toward their memory, and nothing is counted after the end.
func TestSharedMemory(t *testing.T) {
	var bytes int64
	g := newGenerator(t, Config{Sessions: 4, Observe: func(_ int, n int64) { bytes += n }})
	var began, group sync.WaitGroup
	began.Add(2)
	for i := range 2 {
		group.Go(func() {
			first := true
			err := g.use(t.Context(), owner{}, []int{i}, func(s *text.Session) error {
				for _, err := range s.GenerateTokens(t.Context(), []int{i, 3}, text.Options{MaxTokens: 20, IgnoreEOS: true}) {
					if first {
						first = false
						began.Done()
						began.Wait()
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	shared := g.model.SharedBytes()
	if shared <= 0 || bytes != int64(g.all)*g.size+shared {
		t.Errorf("%d bytes of %d sessions of %d, which share %d", bytes, g.all, g.size, shared)
	}
	if g.limit = shared + g.size + g.size/2; g.most() != 1 {
		t.Errorf("%d sessions within the memory of one", g.most())
	}
	if err := g.Close(); err != nil || bytes != 0 || g.model.SharedBytes() != 0 {
		t.Errorf("after the end: %v, %d bytes, %d shared", err, bytes, g.model.SharedBytes())
	}
}
