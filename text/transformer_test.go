package text

import (
	"errors"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// transformer is a program with random weights.
type transformer ptetest.Transformer

// program opens it.
func (c transformer) program(t testing.TB, options ...etrun.Option) *etrun.Program {
	t.Helper()
	p, err := etrun.Parse(ptetest.Transformer(c).File(), append(options, etrun.WithDelegates(all.Backends()...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// TestFootprint compares the sizes of a program with its description.
func TestFootprint(t *testing.T) {
	c := transformer{Layers: 3, Dim: 32, Heads: 2, Vocabulary: 96, Context: 48}
	s := newSession(t, c.program(t, etrun.WithLowering(etrun.LowerOff))) // lowering adds packed weights
	got, err := s.Footprint()
	const float = 4
	weights := int64(c.Layers*(4+2+2)*c.Dim*c.Dim+c.Dim*c.Vocabulary+2*c.Dim) * float
	state := int64(c.Layers*2*c.Context*c.Dim) * float
	if got.Weights != weights || got.State != state || got.Memory > state/2 || err != nil {
		t.Errorf("got %+v, %v, want weights of %d and state of %d bytes, most of it not used", got, err, weights, state)
	}
	if _, _, _, err := collect(s.GenerateTokens(t.Context(), []int{1}, Options{MaxTokens: 3, Sampling: Sampling{Temperature: 1, TopP: 0.5}})); err != nil {
		t.Fatal(err)
	}
	if used, err := s.Footprint(); used.Memory <= got.Memory || err != nil {
		t.Errorf("after a text: %+v, %v, want more memory than %d", used, err, got.Memory)
	}
	c = transformer{Layers: 2, Dim: 128, Heads: 2, Vocabulary: 96, Context: 4096} // caches of many pages
	s = newSession(t, c.program(t))
	empty, err := s.Footprint()
	const positions = 1500
	_, _, _, err2 := collect(s.GenerateTokens(t.Context(), make([]int, positions), Options{MaxTokens: 1}))
	if err := errors.Join(err, err2, s.Shrink()); err != nil {
		t.Fatal(err)
	}
	used, err := s.Footprint()
	caches := int64(c.Layers*2*positions*c.Dim) * float
	if n := used.Memory - empty.Memory; n < caches*95/100 || n > caches*105/100 || err != nil {
		t.Errorf("%d positions: %d bytes, %v, want those of the caches, %d, within 5 %%", positions, n, err, caches)
	}
	dynamic, err := newSession(t, openProgram(t, "testdata/dynamic.pte")).Footprint() // 120,320 bytes, mostly weights
	if dynamic.Weights < 30_000 || dynamic.Weights > 120_000 || dynamic.State == 0 || err != nil {
		t.Errorf("dynamic.pte: got %+v, %v", dynamic, err)
	}
}

// Texts, their continuations and scores do not depend on whether the memory of a prompt's values is returned before the answer.
func TestReturnedMemory(t *testing.T) {
	c := transformer{Layers: 2, Dim: 32, Heads: 2, Vocabulary: 96, Context: 64}
	prompt := []int{3, 1, 4, 1, 5, 9, 2, 6}
	var want [][]int
	for _, returned := range []bool{false, true} {
		s := newSession(t, c.program(t))
		s.model.size.returned = returned
		var got [][]int
		generate := func(s *Session, prompt []int) {
			ids, _, _, err := collect(s.GenerateTokens(t.Context(), prompt, Options{MaxTokens: 5, IgnoreEOS: true}))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, ids)
		}
		generate(s, prompt)
		generate(s, prompt) // from the logits that are kept
		fork, err := s.Fork(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer fork.Close()
		generate(fork, append(slices.Clone(prompt), 7, 8))
		generate(s, prompt[:5])
		if returned && !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("got %v, want %v", got, want)
		}
		want = got
	}
}
