package text

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestLookup checks that drafts change the number of calls only.
func TestLookup(t *testing.T) {
	script := []int{7, 8, 9, 10, 11, 12, 7, 8, 9, 10, 30, 12, 7, 8, 9, 10, 11, 12, 13, 14, 7, 8, 9, 10, 11, 12}
	for _, c := range conventions {
		for _, o := range []Options{{}, {MaxTokens: 9}, {Sampling: Sampling{Temperature: 1, Seed: 4}},
			{Sampling: Sampling{RepetitionPenalty: 1.1}, LogProbs: true}} {
			run := func(lookup int) (ids []int, last Piece, calls int64, left []int) {
				f := conventionOf(c.name)
				f.fault = scripted(script, 64).fault
				f.context, f.meta = 28, map[string]any{"get_max_seq_len": 28}
				if f.cache == "" {
					f.width = 28
				}
				s := sessionOf(t, f.load(t, nil))
				o := o
				o.Lookup = lookup
				ids, _, last, err := collect(s.GenerateTokens(context.Background(), []int{1}, o))
				if err != nil {
					t.Fatal(err)
				}
				calls, left = f.calls.Load(), slices.Clone(s.tokens)
				f.fault = nil
				checkGreedy(t, c.name, s, []int{2, 3})
				return ids, last, calls, left
			}
			want, plain, most, tokens := run(0)
			for _, lookup := range []int{1, 3, 10} {
				got, last, calls, left := run(lookup)
				if !slices.Equal(got, want) || last.Finish != plain.Finish || !slices.Equal(left, tokens) {
					t.Errorf("%s, %+v, drafts of %d: got %d, %q, want %d, %q", c.name, o, lookup, got, last.Finish, want, plain.Finish)
				}
				drafts := conventionOf(c.name).all && c.cache != CacheRecurrent
				if (last.Stats.Drafted > 0) && !drafts || last.Stats.Accepted > last.Stats.Drafted || calls != most-int64(last.Stats.Accepted) {
					t.Errorf("%s, drafts of %d: %d calls instead of %d, %+v", c.name, lookup, calls, most, last.Stats)
				}
				if drafts && o.MaxTokens == 0 && o.Temperature == 0 && last.Stats.Accepted < 5 {
					t.Errorf("%s, drafts of %d: %+v", c.name, lookup, last.Stats)
				}
			}
		}
	}
}

// TestLookupFails makes a call with a draft fail, and ends texts in the middle of one.
func TestLookupFails(t *testing.T) {
	f := conventionOf("dynamic, all logits")
	repeat := scripted([]int{5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8}, 64).fault
	for failing := range 24 {
		n := 0
		f.fault = func(text []int64, logits []float32) error {
			if n++; n == failing {
				return errors.New("planted")
			}
			return repeat(text, logits)
		}
		s := sessionOf(t, f.load(t, nil))
		for p, err := range s.GenerateTokens(context.Background(), []int{1}, Options{Lookup: 6, MaxTokens: 12}) {
			if err == nil && p.Finish == "" && failing%5 == 0 && len(s.tokens) > 8 {
				break
			}
		}
		if s.gen.ahead != 0 {
			t.Errorf("call %d failed: a draft of %d is left", failing, s.gen.ahead)
		}
		f.fault = nil
		checkGreedy(t, "after a draft", s, []int{9, 5})
	}
}

// TestLookupProgram compares texts with and without drafts of a program that computes.
func TestLookupProgram(t *testing.T) {
	for seed := range uint64(4) {
		p := transformer{Layers: 2, Dim: 32, Heads: 2, Vocabulary: 96, Context: 192, Seed: seed}.program(t)
		s := newSession(t, p)
		if info := s.Model().Info(); !info.AllLogits || info.Cache != CachePositions || info.Chunk != 192 {
			t.Fatalf("got %+v", info)
		}
		prompt := []int{5, 6, 7, 8, 9, 10, 11, 5, 6, 7}
		for _, o := range []Options{{MaxTokens: 150}, {MaxTokens: 60, Sampling: Sampling{Temperature: 0.5, Seed: seed}}} {
			want, _, plain, err := collect(newSession(t, p).GenerateTokens(context.Background(), prompt, o))
			if len(want) != o.MaxTokens || err != nil {
				t.Fatalf("seed %d: %d tokens, %v", seed, len(want), err)
			}
			for _, lookup := range []int{1, 4, 16} {
				o := o
				o.Lookup = lookup
				got, _, last, err := collect(s.GenerateTokens(context.Background(), prompt, o))
				if !slices.Equal(got, want) || last.Finish != plain.Finish || err != nil {
					t.Errorf("seed %d, drafts of %d: got %d, %q, %v, want %d", seed, lookup, got, last.Finish, err, want)
				}
				if o.Temperature == 0 && last.Stats.Accepted == 0 {
					t.Errorf("seed %d, drafts of %d: %+v", seed, lookup, last.Stats)
				}
			}
		}
	}
}

// BenchmarkLookup measures a program of 8 MB whose text repeats itself.
func BenchmarkLookup(b *testing.B) {
	p := transformer{Layers: 2, Dim: 256, Heads: 4, Vocabulary: 4096, Context: 320, Seed: 1}.program(b)
	for _, lookup := range []int{0, 2, 4, 8, 16} {
		b.Run(fmt.Sprint("drafts of ", lookup), func(b *testing.B) {
			benchmarkLookup(b, newSession(b, p), []int{1, 2, 3, 4, 5, 6, 7, 8}, Options{MaxTokens: 256, Lookup: lookup, IgnoreEOS: true})
		})
	}
}

// benchmarkLookup generates texts from an empty session.
func benchmarkLookup(b *testing.B, s *Session, prompt []int, o Options) {
	var sum Stats
	for b.Loop() {
		s.Reset()
		_, _, last, err := collect(s.GenerateTokens(context.Background(), prompt, o))
		if err != nil {
			b.Fatal(err)
		}
		sum.Generated, sum.Decode = sum.Generated+last.Stats.Generated-1, sum.Decode+last.Stats.Decode
		sum.Drafted, sum.Accepted = sum.Drafted+last.Stats.Drafted, sum.Accepted+last.Stats.Accepted
	}
	b.ReportMetric(float64(sum.Generated)/sum.Decode.Seconds(), "tokens/s")
	b.ReportMetric(float64(sum.Accepted)/float64(max(sum.Drafted, 1)), "accepted/drafted")
	b.ReportMetric(float64(sum.Accepted)/float64(sum.Generated), "accepted/token")
}
