package openai

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
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
		"a refused call":  {func(*text.Session) error { return fault.Refused("max_tokens", "too few") }, 1},
		"an ended one":    {func(*text.Session) error { return context.Canceled }, 1},
		"a failed model":  {func(*text.Session) error { return &fault.Failure{Err: errors.New("no memory")} }, 0},
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
	shared, kept := g.model.SharedBytes(), int64(0)
	for _, h := range g.idle {
		kept += h.bytes
	}
	if shared <= 0 || len(g.idle) != g.all || bytes != kept+shared {
		t.Errorf("%d bytes of %d sessions, which keep %d and share %d", bytes, g.all, kept, shared)
	}
	if g.limit = shared + kept + g.each()/2; g.most() != g.all {
		t.Errorf("%d sessions, with memory for no more than the %d that there are", g.most(), g.all)
	}
	if err := g.Close(); err != nil || bytes != 0 || g.model.SharedBytes() != 0 {
		t.Errorf("after the end: %v, %d bytes, %d shared", err, bytes, g.model.SharedBytes())
	}
}

// A text for which there is no memory waits for another one, which is dropped when it is kept; alone it is never refused. What the
// models may not use is refused.
func TestTextsWaitForMemory(t *testing.T) {
	g := newGenerator(t, Config{Sessions: 4})
	g.limit = g.each() + g.each()/2
	running, end := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		err := g.use(t.Context(), owner{}, []int{1}, func(*text.Session) error {
			close(running)
			<-end
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-running
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.take(ctx, owner{}, []int{2}); !errors.Is(err, context.Canceled) {
		t.Errorf("beside another text: %v, want a wait", err)
	}
	group.Go(func() {
		if err := g.use(t.Context(), owner{}, []int{2}, func(*text.Session) error { return nil }); err != nil {
			t.Errorf("after the wait: %v", err)
		}
	})
	close(end)
	group.Wait()
	for len(g.idle) > 0 {
		g.drop(0)
	}
	g.left = func() int64 { return 1 }
	if err := g.use(t.Context(), owner{}, []int{3}, func(*text.Session) error { return nil }); !errors.Is(err, serve.ErrNoRoom) {
		t.Errorf("without memory of the models: got %v, want ErrNoRoom", err)
	}
	if g.all != len(g.idle) {
		t.Errorf("%d sessions, %d idle", g.all, len(g.idle))
	}
}
