package openai

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

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
		f, err := h.session.Footprint()
		if err != nil {
			t.Fatal(err)
		}
		kept += f.Memory
	}
	if shared <= 0 || len(g.idle) != g.all || bytes != kept+shared {
		t.Errorf("%d bytes of %d sessions, which keep %d and share %d", bytes, g.all, kept, shared)
	}
	if g.limit = shared + kept + g.bytesPerText()/2; g.most() != g.all {
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
	g.limit = g.bytesPerText() + g.bytesPerText()/2
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
	if _, err := g.acquire(ctx, owner{}, []int{2}); !errors.Is(err, context.Canceled) {
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

// Idle sessions return the memory of their calls after a while and, without requests for longer, all but the last are closed.
func TestIdleSessions(t *testing.T) {
	var bytes int64
	g := newGenerator(t, Config{Sessions: 4, Observe: func(_ int, n int64) { bytes += n }})
	generate := func(s *text.Session) error {
		for _, err := range s.GenerateTokens(t.Context(), []int{1, 2, 3}, text.Options{MaxTokens: 4, IgnoreEOS: true}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	var use func(n int) error
	use = func(n int) error { // n sessions in use at once
		return g.use(t.Context(), owner{}, []int{n}, func(s *text.Session) error {
			if n > 1 {
				return errors.Join(use(n-1), generate(s))
			}
			return generate(s)
		})
	}
	if err := use(3); err != nil {
		t.Fatal(err)
	}
	running, err := g.acquire(t.Context(), owner{}, []int{9, 9}) // puts the session back that it does not use
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, c := range []struct {
		name       string
		after      time.Duration
		end        bool // of the text in progress
		warm, kept int
		again      bool
	}{
		{"at once", -warmTime, false, 3, 3, true},
		{"after the time of calls", warmTime, false, 0, 3, false},
		{"while a text is in progress", keepTime, false, 0, 3, false},
		{"at its end", 0, true, 1, 4, true},
		{"before the time of texts", keepTime / 2, false, 0, 4, true},
		{"without requests", 2 * keepTime, false, 0, 1, false},
	} {
		if c.end {
			g.put(running, owner{})
		}
		g.mu.Lock()
		next := g.settle(began.Add(c.after))
		g.report()
		warm, sum := 0, g.model.SharedBytes()
		for _, h := range g.idle {
			f, err := h.session.Footprint()
			if err != nil {
				t.Fatal(err)
			}
			sum += f.Memory
			if h.warm {
				warm++
			}
		}
		if sum += int64(g.all-len(g.idle)) * g.bytesPerText(); warm != c.warm || len(g.idle) != c.kept || next > 0 != c.again || bytes != sum {
			t.Errorf("%s: %d of %d sessions with the memory of a call, again after %v, %d bytes of %d; want %d of %d, again %v", c.name, warm,
				len(g.idle), next, bytes, sum, c.warm, c.kept, c.again)
		}
		g.mu.Unlock()
	}
	h := g.idle[0] // of a small model: its text is soon computed again
	f, err := h.session.Footprint()
	tokens, err2 := h.session.Tokens()
	if err := errors.Join(err, err2); len(tokens) > 0 || len(h.tokens) > 0 || h.owner != (owner{}) || err != nil {
		t.Errorf("the last session has %d tokens, %d bytes beside weights of %d, %v; want it empty", len(tokens), f.Memory, f.Weights, err)
	}
}
