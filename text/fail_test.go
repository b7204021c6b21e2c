package text

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// TestTextBeforeAnError checks that what was generated before a run failed is yielded with the error, also if a stop string
// withheld it, after any number of tokens.
func TestTextBeforeAnError(t *testing.T) {
	row, _, _, err := etrun.DefaultOperators().Lookup("llama::update_cache.out")
	if err != nil {
		t.Fatal(err)
	}
	planted, left := errors.New("planted"), math.MaxInt
	op := *row
	op.Func = func(c *kernels.Ctx, a kernels.Args) error {
		if left--; left < 0 {
			return planted
		}
		return row.Func(c, a)
	}
	tok, err := tokenizer.Open("testdata/bytes.json")
	if err != nil {
		t.Fatal(err)
	}
	p := openProgram(t, "testdata/dynamic.pte", etrun.WithOperators(op))
	m, err := Load(t.Context(), p, tok)
	if err != nil {
		t.Fatal(err)
	}
	s := sessionOf(t, m)
	_, whole, _, err := collect(s.Generate(t.Context(), "hi|", Options{MaxTokens: 9}))
	if err != nil {
		t.Fatal(err)
	}
	for steps := range 8 {
		for _, stop := range [][]string{nil, {whole[:2] + "..."}, {whole[:1] + "..."}} {
			if err := s.Reset(); err != nil {
				t.Fatal(err)
			}
			left = 4 + 4*steps // four caches
			ids, got, last, err := collect(s.Generate(t.Context(), "hi|", Options{MaxTokens: 9, Stop: stop}))
			if !errors.Is(err, planted) || len(ids) != steps+1 || last.Stats.Generated != steps+1 || last.Finish != "" {
				t.Errorf("%d steps, stop %q: got %d tokens, %+v, %v", steps, stop, len(ids), last.Stats, err)
			}
			if got == "" || !strings.HasPrefix(strings.ToValidUTF8(whole, ""), strings.ToValidUTF8(got, "")) && !strings.Contains(got, "\uFFFD") {
				t.Errorf("%d steps, stop %q: got %q, want the beginning of %q", steps, stop, got, whole)
			}
		}
	}
}
