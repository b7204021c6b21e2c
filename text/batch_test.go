package text

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/runtime/trace"
)

// together generates a text in each of several sessions at the same time: none goes on after its first piece before all have
// one. end ends some of them early.
func together(t *testing.T, m *Model, prompts [][]int, o Options, end func(i, tokens int) bool) [][]int {
	t.Helper()
	texts := make([][]int, len(prompts))
	var began, group sync.WaitGroup
	began.Add(len(prompts))
	for i, prompt := range prompts {
		s := sessionOf(t, m)
		group.Go(func() {
			first := true
			for p, err := range s.GenerateTokens(context.Background(), prompt, o) {
				if err != nil {
					t.Errorf("text %d: %v", i, err)
				}
				for _, token := range p.Tokens {
					texts[i] = append(texts[i], token.ID)
				}
				if first {
					first = false
					began.Done()
					began.Wait()
				}
				if end(i, len(texts[i])) {
					break
				}
			}
		})
	}
	group.Wait()
	return texts
}

func promptsOf(n, vocabulary int) (list [][]int) {
	for i := range n {
		var prompt []int
		for k := range 2 + i%3 {
			prompt = append(prompt, (7*i+13*k+1)%vocabulary)
		}
		list = append(list, prompt)
	}
	return list
}

// TestTogether requires that texts that are generated together, some of which end early, are those of sessions that are alone.
func TestTogether(t *testing.T) {
	wide := transformer{Layers: 3, Dim: 64, Heads: 4, Vocabulary: 96, Context: 40, Seed: 5}
	for _, p := range []struct {
		name string
		open func() *etrun.Program
	}{
		{"last logits", func() *etrun.Program { return openProgram(t, "testdata/dynamic.pte") }},
		{"all logits", func() *etrun.Program { return wide.program(t) }},
		{"observed", func() *etrun.Program {
			return wide.program(t, etrun.WithObserver(trace.Func{Kinds: trace.Executes | trace.Delegates, Do: func(*trace.Event) {}}))
		}},
		{"not lowered", func() *etrun.Program { return wide.program(t, etrun.WithLowering(etrun.LowerOff)) }},
	} {
		for _, most := range []int{2, 32} {
			alone, err := Load(context.Background(), p.open(), nil, WithBatch(1))
			if err != nil {
				t.Fatal(err)
			}
			defer alone.Close()
			m, err := Load(context.Background(), p.open(), nil, WithBatch(most))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			prompts, o := promptsOf(7, 90), Options{MaxTokens: 20, IgnoreEOS: true, Sampling: Sampling{Temperature: 1, Seed: 3}}
			end := func(i, tokens int) bool { return i%3 == 1 && tokens >= 3+i }
			got := together(t, m, prompts, o, end)
			if b := &m.batch; b.reason != nil || b.batch == nil || len(b.members) != 0 || len(b.waiting) != 0 {
				t.Errorf("%s: batch %v, reason %v, %d members, %d wait", p.name, b.batch, b.reason, len(b.members), len(b.waiting))
			}
			for i, prompt := range prompts {
				want := together(t, alone, [][]int{prompt}, o, func(_, tokens int) bool { return end(i, tokens) })[0]
				if !slices.Equal(got[i], want) {
					t.Errorf("%s, at most %d, text %d: got %d, want %d", p.name, most, i, got[i], want)
				}
			}
		}
	}
}

// TestNotTogether requires that texts of a program whose steps are not known to compute rows are those of a session that is alone,
// and that the reason is kept.
func TestNotTogether(t *testing.T) {
	f := fakeDefault()
	m := f.load(t, nil)
	prompts := promptsOf(4, 60)
	texts := together(t, m, prompts, Options{MaxTokens: 8}, func(int, int) bool { return false })
	for i, prompt := range prompts {
		if want := fakeGreedy(prompt, 64, 8); !slices.Equal(texts[i], want) {
			t.Errorf("text %d: got %d, want %d", i, texts[i], want)
		}
	}
	if e, ok := errors.AsType[*etrun.BatchError](m.batch.reason); !ok || !errors.Is(e, etrun.ErrUnsupported) {
		t.Errorf("reason: %v", m.batch.reason)
	}
}

// TestTogetherWithClosed closes a session, and cancels another one, while others generate.
func TestTogetherWithClosed(t *testing.T) {
	m, err := Load(context.Background(), openProgram(t, "testdata/dynamic.pte"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	prompts := promptsOf(5, 200)
	want := together(t, m, prompts[2:], Options{MaxTokens: 20, IgnoreEOS: true}, func(int, int) bool { return false })
	closed, cancelled := sessionOf(t, m), sessionOf(t, m)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() {
		n := 0
		var last error
		for p, err := range closed.GenerateTokens(context.Background(), prompts[0], Options{IgnoreEOS: true}) {
			if last, n = err, n+len(p.Tokens); n == 4 {
				closed.Close()
			}
		}
		if !errors.Is(last, etrun.ErrClosed) {
			t.Errorf("closed session: %v", last)
		}
	})
	group.Go(func() {
		n := 0
		var last Piece
		for p := range cancelled.GenerateTokens(ctx, prompts[1], Options{IgnoreEOS: true}) {
			if last, n = p, n+len(p.Tokens); n == 6 {
				cancel()
			}
		}
		if last.Finish != FinishCancelled {
			t.Errorf("cancelled session: finish %q", last.Finish)
		}
	})
	got := together(t, m, prompts[2:], Options{MaxTokens: 20, IgnoreEOS: true}, func(int, int) bool { return false })
	group.Wait()
	if !slices.EqualFunc(got, want, slices.Equal[[]int]) {
		t.Errorf("got %d, want %d", got, want)
	}
}

// TestBatchOption checks the number of texts.
func TestBatchOption(t *testing.T) {
	_, err := Load(context.Background(), openProgram(t, "testdata/dynamic.pte"), nil, WithBatch(0))
	if e, ok := errors.AsType[*OptionError](err); !ok || e.Option != "batch" {
		t.Errorf("got %v", err)
	}
}

// A session that is closed while it runs a round, as the last one, leaves no batch: it would keep the program open.
func TestClosedInRound(t *testing.T) {
	m, err := Load(context.Background(), openProgram(t, "testdata/dynamic.pte"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	prompts := promptsOf(2, 200)
	first, second := sessionOf(t, m), sessionOf(t, m)
	var group sync.WaitGroup
	for i, s := range []*Session{first, second} {
		group.Go(func() {
			for range s.GenerateTokens(context.Background(), prompts[i], Options{MaxTokens: 25, IgnoreEOS: true}) {
				continue
			}
		})
	}
	group.Wait()
	b := &m.batch
	if b.batch == nil {
		if b.batch, err = first.method.NewBatch(context.Background(), 2); err != nil { // both have never met
			t.Fatal(err)
		}
	}
	batch := b.batch
	b.mu.Lock()
	b.running = true
	b.mu.Unlock()
	first.Close()
	second.Close()
	if b.batch == nil {
		t.Error("the batch is closed in a round")
	}
	b.finish(&first.part, signalDone)
	if err := batch.Execute(context.Background(), nil, nil); b.bytes() != 0 || !errors.Is(err, etrun.ErrClosed) {
		t.Errorf("%d bytes are shared after the end: %v", b.bytes(), err)
	}
}
