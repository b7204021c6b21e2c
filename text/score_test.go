package text

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
)

// TestScore compares the probabilities of texts with those of the fake's logits, for every convention, chunk and beginning of the session.
func TestScore(t *testing.T) {
	ctx := context.Background()
	long := append([]int{5}, fakeGreedy([]int{5}, 64, 23)...)
	for _, c := range conventions {
		for _, chunk := range []int{0, 1, 3} {
			f := conventionOf(c.name)
			s := sessionOf(t, f.load(t, nil, WithChunk(chunk)))
			for _, tokens := range [][]int{{1}, {1, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {1, 2, 9}, long, {1, 2, 9}} {
				var got []Token
				for list, err := range s.Score(ctx, tokens, 2) {
					if err != nil {
						t.Fatalf("%s, chunk %d: %v", c.name, chunk, err)
					}
					for _, x := range list {
						x.Top = slices.Clone(x.Top)
						got = append(got, x)
					}
				}
				if len(got) != len(tokens) || got[0].ID != tokens[0] || !math.IsNaN(float64(got[0].LogProb)) || got[0].Top != nil {
					t.Fatalf("%s, chunk %d, text %d: got %+v, want all tokens, the first one without a probability", c.name, chunk, tokens, got)
				}
				for i := 1; i < len(tokens); i++ {
					checkScored(t, c.name, tokens[:i], tokens[i], got[i])
				}
				if next, err := generate(s, tokens, Options{MaxTokens: 1}); err != nil || !slices.Equal(next, fakeGreedy(tokens, 64, 1)) {
					t.Errorf("%s, %d continues with %d, %v", c.name, tokens, next, err)
				}
			}
		}
	}
}

// checkScored compares the probability of a token after others with that of the fake.
func checkScored(t *testing.T, name string, before []int, id int, got Token) {
	t.Helper()
	var text []int64
	for _, x := range before {
		text = append(text, int64(x))
	}
	logits := fakeLogits(text, 64)
	norm := logSum(logits)
	want := float64(logits[id]) - norm
	best := argmax(logits)
	const tolerance = 0.05 // of the halves that some of the programs return
	if got.ID != id || math.Abs(float64(got.LogProb)-want) > tolerance || len(got.Top) != 2 ||
		math.Abs(float64(got.Top[0].LogProb)-float64(logits[best])+norm) > tolerance {
		t.Errorf("%s, %d after %d: got %+v, want %g and the best %d", name, id, before, got, want, best)
	}
}

// TestScoreErrors checks what a session refuses, and that it remains usable.
func TestScoreErrors(t *testing.T) {
	f := conventionOf("dynamic, all logits")
	fault := errors.New("a fault of the model")
	f.fault = func(text []int64, logits []float32) error {
		switch {
		case len(text) == 3 && text[2] == 60:
			logits[7] = float32(math.NaN())
		case len(text) == 3 && text[2] == 61:
			return fault
		}
		return nil
	}
	s := sessionOf(t, f.load(t, nil))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		tokens []int
		top    int
		want   func(error) bool
	}{
		"no tokens":       {nil, nil, 0, is[*PromptError]},
		"too many":        {nil, make([]int, 25), 0, is[*PromptError]},
		"no such token":   {nil, []int{1, 64}, 0, is[*TokenError]},
		"many best ones":  {nil, []int{1, 2}, maxTop + 1, is[*OptionError]},
		"negative":        {nil, []int{1, 2}, -1, is[*OptionError]},
		"NaN":             {nil, []int{1, 2, 60, 4}, 0, is[*LogitsError]},
		"a fault":         {nil, []int{1, 2, 61, 4}, 0, func(err error) bool { return errors.Is(err, fault) }},
		"a client leaves": {ended, []int{1, 2, 3}, 0, func(err error) bool { return errors.Is(err, context.Canceled) }},
	} {
		if c.ctx == nil {
			c.ctx = context.Background()
		}
		var got error
		for _, err := range s.Score(c.ctx, c.tokens, c.top) {
			got = err
		}
		if !c.want(got) {
			t.Errorf("%s: %v", name, got)
		}
		checkGreedy(t, name, s, []int{1, 2, 3})
	}
	for range s.Score(context.Background(), []int{1, 2, 3}, 0) {
		for _, err := range s.Score(context.Background(), []int{1}, 0) {
			if !errors.Is(err, etrun.ErrBusy) {
				t.Errorf("a call during another one: %v", err)
			}
		}
		break
	}
	checkGreedy(t, "after the end of an iteration", s, []int{1, 2, 3})
}
