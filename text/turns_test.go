package text

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// Those that wait take turns in order, also those that come back for another part.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions, parts = 4, 3
		turn, order, began := make(turns, 1), []int{}, make(chan int)
		if err := turn.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range sessions {
			go func() {
				for range parts {
					if err := turn.take(t.Context()); err != nil {
						t.Error(err)
						return
					}
					began <- i
					turn.end()
				}
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- turn.take(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("a wait that was canceled: %v", err)
		}
		turn.end()
		for range sessions * parts {
			synctest.Wait() // the others wait for their turn
			order = append(order, <-began)
		}
		if want := []int{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}; !slices.Equal(order, want) {
			t.Errorf("got %d, want %d", order, want)
		}
	})
}

// Texts that are generated do not wait for prompts. A prompt waits for others no longer than its context.
func TestTextsBesidePrompts(t *testing.T) {
	m, err := Load(context.Background(), openProgram(t, "testdata/dynamic.pte"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	prompts := promptsOf(3, 200)
	o := Options{MaxTokens: 20, IgnoreEOS: true}
	want := together(t, m, prompts, o, func(int, int) bool { return false })
	ctx, cancel := context.WithCancel(context.Background())
	waits := sessionOf(t, m)
	ended := make(chan error, 1)
	taken := false
	got := together(t, m, prompts[:2], o, func(i, tokens int) bool {
		if i == 0 && tokens > 1 && !taken { // all have their prompts
			for range cap(m.turns) {
				if err := m.turns.take(context.Background()); err != nil {
					t.Error(err)
				}
			}
			taken = true
			go func() {
				var last error
				for p, err := range waits.GenerateTokens(ctx, prompts[2], o) {
					if last = err; len(p.Tokens) > 0 {
						t.Error("a prompt without its turn is computed")
					}
				}
				ended <- last
			}()
		}
		return false
	})
	if !slices.EqualFunc(got, want[:2], slices.Equal[[]int]) {
		t.Errorf("got %d, want %d", got, want[:2])
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a prompt whose context has ended: %v", err)
	}
	for range cap(m.turns) {
		m.turns.end()
	}
	if text := together(t, m, prompts[2:], o, func(int, int) bool { return false }); !slices.Equal(text[0], want[2]) {
		t.Errorf("after that: got %d, want %d", text[0], want[2])
	}
}
