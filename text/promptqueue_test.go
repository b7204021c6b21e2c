package text

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// Parts are computed in order, also those of sessions that come back for another one.
func TestPromptQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions, parts = 4, 3
		q, order, began := make(promptQueue, 1), []int{}, make(chan int)
		if err := q.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range sessions {
			go func() {
				for range parts {
					if err := q.acquire(t.Context()); err != nil {
						t.Error(err)
						return
					}
					began <- i
					q.release()
				}
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- q.acquire(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("a wait that was canceled: %v", err)
		}
		q.release()
		for range sessions * parts {
			synctest.Wait() // the others wait
			order = append(order, <-began)
		}
		if want := []int{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}; !slices.Equal(order, want) {
			t.Errorf("got %d, want %d", order, want)
		}
	})
}

// Texts that are generated do not wait for prompts, nor does a prompt of one token. A longer one waits for others no longer than its
// context.
func TestTextsBesidePrompts(t *testing.T) {
	m, err := Load(context.Background(), openProgram(t, "testdata/dynamic.pte"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	prompts := append(promptsOf(3, 200), []int{5})
	o := Options{MaxTokens: 20, IgnoreEOS: true}
	want := together(t, m, prompts, o, func(int, int) bool { return false })
	ctx, cancel := context.WithCancel(context.Background())
	waits, short := sessionOf(t, m), sessionOf(t, m)
	ended, one := make(chan error, 1), make(chan []int, 1)
	taken := false
	got := together(t, m, prompts[:2], o, func(i, tokens int) bool {
		if i == 0 && tokens > 1 && !taken { // all have their prompts
			for range cap(m.prompts) {
				if err := m.prompts.acquire(context.Background()); err != nil {
					t.Error(err)
				}
			}
			taken = true
			go func() {
				var last error
				for p, err := range waits.GenerateTokens(ctx, prompts[2], o) {
					if last = err; len(p.Tokens) > 0 {
						t.Error("a prompt that has to wait is computed")
					}
				}
				ended <- last
			}()
			go func() {
				text, _, _, err := collect(short.GenerateTokens(context.Background(), prompts[3], o))
				if err != nil {
					t.Error(err)
				}
				one <- text
			}()
		}
		return false
	})
	if !slices.EqualFunc(got, want[:2], slices.Equal[[]int]) {
		t.Errorf("got %d, want %d", got, want[:2])
	}
	if text := <-one; !slices.Equal(text, want[3]) {
		t.Errorf("a prompt of one token: got %d, want %d", text, want[3])
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a prompt whose context has ended: %v", err)
	}
	for range cap(m.prompts) {
		m.prompts.release()
	}
	if text := together(t, m, prompts[2:3], o, func(int, int) bool { return false }); !slices.Equal(text[0], want[2]) {
		t.Errorf("after that: got %d, want %d", text[0], want[2])
	}
}
