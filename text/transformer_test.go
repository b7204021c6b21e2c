package text

import (
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
	dynamic, err := newSession(t, openProgram(t, "testdata/dynamic.pte")).Footprint() // 120,320 bytes, mostly weights
	if dynamic.Weights < 30_000 || dynamic.Weights > 120_000 || dynamic.State == 0 || err != nil {
		t.Errorf("dynamic.pte: got %+v, %v", dynamic, err)
	}
}
