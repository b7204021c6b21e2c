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
	scratch := s.method.Memory().Scratch
	if n := used.Memory - empty.Memory - scratch; n < caches*95/100 || n > caches*105/100 || scratch > caches/10 || err != nil {
		t.Errorf("%d positions: %d bytes, and %d of scratch, %v, want those of the caches, %d, within 5 %%", positions, n, scratch, err, caches)
	}
	dynamic, err := newSession(t, openProgram(t, "testdata/dynamic.pte")).Footprint() // 120,320 bytes, mostly weights
	if dynamic.Weights < 30_000 || dynamic.Weights > 120_000 || dynamic.State == 0 || err != nil {
		t.Errorf("dynamic.pte: got %+v, %v", dynamic, err)
	}
}

// Texts and their continuations do not depend on the memory of values, which the prompts of all sessions of a model use one after the
// other, and which an idle model returns.
func TestPromptsShareMemory(t *testing.T) {
	c := transformer{Layers: 2, Dim: 128, Heads: 2, Vocabulary: 96, Context: 512}
	generate := func(s *Session, prompt ...int) []int {
		ids, _, _, err := collect(s.GenerateTokens(t.Context(), prompt, Options{MaxTokens: 5, IgnoreEOS: true}))
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	long := make([]int, 400) // in two parts
	for i := range long {
		long[i] = i * i % 96
	}
	prompts := [][]int{long, {3, 1, 4}, long[:300], {3, 1, 4, 1, 5}, long, {7}}
	model := newSession(t, c.program(t)).model
	var list [3]*Session
	for i := range list {
		var err error
		if list[i], err = model.NewSession(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer list[i].Close()
	}
	for i, prompt := range prompts {
		got, want := generate(list[i%3], prompt...), generate(newSession(t, c.program(t)), prompt...)
		if !slices.Equal(got, want) {
			t.Errorf("prompt %d of %d tokens: got %v, want %v", i, len(prompt), got, want)
		}
		if got = generate(list[i%3], prompt...); !slices.Equal(got, want) { // from the logits that are kept
			t.Errorf("prompt %d again: got %v, want %v", i, got, want)
		}
	}
	if len(model.arenas) == 0 {
		t.Skip("the system does not move memory")
	}
	f, err := list[0].Footprint()
	caches := int64(c.Layers*2*c.Context*c.Dim) * 4
	if shared := model.SharedBytes(); len(model.arenas) != 1 || shared < 500_000 || f.Memory > caches+200_000 || err != nil {
		t.Errorf("%d times the memory of values, %d bytes; a session has %d, its caches %d; %v", len(model.arenas), shared, f.Memory, caches, err)
	}
	fork, err := list[0].Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer fork.Close()
	if got, want := generate(fork, append(prompts[3], 7, 8)...), generate(list[1], append(prompts[3], 7, 8)...); !slices.Equal(got, want) {
		t.Errorf("a copy: got %v, want %v", got, want)
	}
	if err := model.Shrink(); err != nil || model.SharedBytes() != 0 {
		t.Errorf("after Shrink: %v, %d bytes", err, model.SharedBytes())
	}
}
