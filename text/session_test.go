package text

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/cases"
)

// generate returns the tokens that a session generates.
func generate(s *Session, prompt []int, o Options) ([]int, error) {
	ids, _, _, err := collect(s.GenerateTokens(context.Background(), prompt, o))
	return ids, err
}

// TestForkAndRewind checks that forks and their sources do not influence each other.
func TestForkAndRewind(t *testing.T) {
	ctx := context.Background()
	for _, c := range conventions {
		f := conventionOf(c.name)
		s := sessionOf(t, f.load(t, nil))
		checkGreedy(t, c.name, s, []int{1, 2, 3})
		fork, err := s.Fork(ctx)
		if err != nil {
			t.Fatal(err)
		}
		mine, _ := s.Tokens()
		if theirs, _ := fork.Tokens(); !slices.Equal(mine, theirs) || len(mine) != 6 {
			t.Errorf("%s: the session has %d, the fork %d", c.name, mine, theirs)
		}
		// The same text, of which the fork has the logits, then others.
		checkGreedy(t, c.name+", fork", fork, mine)
		checkGreedy(t, c.name, s, []int{1, 2, 4})
		checkGreedy(t, c.name+", fork", fork, append(slices.Clone(mine), 9))
		if err := s.Rewind(2); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := s.Rewind(7); !is[*OptionError](err) {
			t.Errorf("%s: rewound to 7: %v", c.name, err)
		}
		checkGreedy(t, c.name+", rewound", s, []int{1, 2, 5})
		again, err := s.Fork(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Reset(), fork.Close(), fork.Close()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if tokens, _ := s.Tokens(); len(tokens) != 0 {
			t.Errorf("%s: %d after a reset", c.name, tokens)
		}
		if _, err := generate(fork, []int{1}, Options{}); !errors.Is(err, etrun.ErrClosed) {
			t.Errorf("%s: closed: %v", c.name, err)
		}
		checkGreedy(t, c.name+", reset", s, []int{7})
		checkGreedy(t, c.name+", second fork", again, []int{1, 2, 5, 3})
		again.Close()
	}
}

// TestLogitsOfFork checks that a fork keeps the logits of its source, which goes on.
func TestLogitsOfFork(t *testing.T) {
	f := fakeDefault()
	s := sessionOf(t, f.load(t, nil))
	for range s.GenerateTokens(context.Background(), []int{1, 2}, Options{MaxTokens: 1}) {
	}
	fork, err := s.Fork(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer fork.Close()
	checkGreedy(t, "source", s, []int{9, 9, 9})
	_, _, last, err := collect(fork.GenerateTokens(context.Background(), []int{1, 2}, Options{MaxTokens: 1}))
	if last.Stats.Reused != 2 || err != nil {
		t.Errorf("the fork has computed %d tokens again, %v", 2-last.Stats.Reused, err)
	}
	checkGreedy(t, "fork", fork, []int{1, 2})
}

// wish is one call of a random session.
type wish struct {
	prompt []int
	o      Options
	want   []int
}

// TestSamePrompt checks that further texts of a prompt begin with the logits of the first one, with
// nothing computed again, also in a fork.
func TestSamePrompt(t *testing.T) {
	prompt := []int{7, 8, 9, 10}
	for _, name := range []string{"dynamic", "static", "dynamic, all logits", "static chunks"} {
		f := conventionOf(name)
		s := sessionOf(t, f.load(t, nil))
		want := fakeGreedy(prompt, 64, 5)
		for i := range 3 {
			got, _, last, err := collect(s.GenerateTokens(context.Background(), prompt, Options{MaxTokens: 5}))
			if reused := []int{0, 4, 4}[i]; !slices.Equal(got, want) || err != nil || last.Stats.Reused != reused {
				t.Errorf("%s, text %d: got %d, %v, %d tokens reused, want %d, %d", name, i, got, err, last.Stats.Reused, want, reused)
			}
			if i == 1 {
				fork, err := s.Fork(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { fork.Close() })
				s = fork
			}
		}
		checkGreedy(t, name, s, []int{7, 8, 9, 11})
		checkGreedy(t, name, s, prompt)
	}
}

// TestRandomSessions runs many sessions of one model at once, with prompts that share beginnings,
// forks, resets, cancellations and early ends: each text is the one that a session of its own has
// given.
func TestRandomSessions(t *testing.T) {
	sessions, calls := cases.Of(35, 100), 30
	if testing.Short() {
		sessions, calls = 20, 10
	}
	for _, p := range []struct {
		name  string
		model *Model
	}{
		{"hash", (&[]fake{fakeDefault()}[0]).load(t, nil)},
		{"counted hash", (&[]fake{conventionOf("counted")}[0]).load(t, nil)},
		{"exported", newSession(t, openProgram(t, "testdata/dynamic.pte"), WithChunk(1)).model},
	} {
		wishes := makeWishes(t, p.model)
		var group sync.WaitGroup
		for i := range sessions {
			group.Go(func() {
				if err := randomSession(p.model, wishes, rand.New(rand.NewPCG(uint64(i), 7)), calls); err != nil {
					t.Errorf("%s, session %d: %v", p.name, i, err)
				}
			})
		}
		group.Wait()
	}
}

// makeWishes returns calls with the results of sessions that make no other call.
func makeWishes(t *testing.T, m *Model) (list []wish) {
	r := rand.New(rand.NewPCG(3, 4))
	texts := [][]int{{1}}
	for range 40 {
		text := slices.Clone(texts[r.IntN(len(texts))])
		text = text[:1+r.IntN(len(text))]
		for range 1 + r.IntN(5) {
			text = append(text, r.IntN(m.info.Vocabulary))
		}
		text = text[:min(len(text), m.info.Context)]
		o := Options{MaxTokens: r.IntN(12)}
		if r.IntN(2) == 0 {
			o.Sampling = Sampling{Temperature: 1.5, TopK: 20, Seed: r.Uint64(), RepetitionPenalty: 1.2}
		}
		s := sessionOf(t, m)
		want, err := generate(s, text, o)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		whole := append(slices.Clone(text), want...)
		texts, list = append(texts, text, whole[:min(len(whole), m.info.Context)]), append(list, wish{text, o, want})
	}
	return list
}

func randomSession(m *Model, wishes []wish, r *rand.Rand, calls int) error {
	s, err := m.NewSession(context.Background())
	if err != nil {
		return err
	}
	defer func() { s.Close() }()
	for range calls {
		switch r.IntN(8) {
		case 0:
			if err := s.Reset(); err != nil {
				return err
			}
		case 1:
			fork, err := s.Fork(context.Background())
			if err != nil {
				return err
			}
			if r.IntN(2) == 0 {
				s, fork = fork, s
			}
			fork.Close()
		case 2:
			if err := s.Rewind(r.IntN(len(s.tokens) + 1)); err != nil {
				return err
			}
		}
		if err := randomCall(s, wishes[r.IntN(len(wishes))], r.IntN(20)); err != nil {
			return err
		}
	}
	return nil
}

// randomCall makes a call and ends it after stop tokens: by its context, if stop is odd.
func randomCall(s *Session, w wish, stop int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var got []int
	for p, err := range s.GenerateTokens(ctx, w.prompt, w.o) {
		if err != nil && p.Finish != FinishCancelled {
			return err
		}
		for _, token := range p.Tokens {
			got = append(got, token.ID)
		}
		if len(got) == stop && stop%2 == 1 {
			cancel()
		} else if len(got) == stop && stop > 0 {
			break
		}
	}
	want := w.want
	if stop > 0 {
		want = want[:min(stop, len(want))]
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("prompt %d, %+v, stopped at %d: got %d, want %d", w.prompt, w.o, stop, got, want)
	}
	return nil
}
