package text

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/etrun-go/etrun"
)

// scripted is a model that continues the prompt of one token with the tokens of a script.
func scripted(script []int, vocabulary int) fake {
	f := fakeDefault()
	f.vocabulary, f.context, f.meta = vocabulary, len(script)+2, map[string]any{"get_eos_ids": 0}
	f.fault = func(text []int64, logits []float32) error {
		for i := range logits {
			logits[i] = -float32(i) / 8
		}
		if at := len(text) - 1; at < len(script) {
			logits[script[at]] = 10
		}
		return nil
	}
	return f
}

// spell returns the tokens of a text, one per byte.
func spell(text string) []int {
	ids, _ := new(byteTokenizer).Encode(text, false)
	return ids
}

// TestPieces checks stop strings and characters of several tokens, a byte per token.
func TestPieces(t *testing.T) {
	for _, c := range []struct {
		name, says string
		stop       []string
		want       string
		finish     Finish
		pieces     int // that are not empty; 0 for any number
	}{
		{"plain", "abc", nil, "abc", FinishStop, 3},
		{"two bytes a character", "aéb", nil, "aéb", FinishStop, 3},
		{"emoji", "😀😀", nil, "😀😀", FinishStop, 2},
		{"stop", "abcdef", []string{"cd"}, "ab", FinishStop, 2},
		{"stop at the beginning", "abc", []string{"ab"}, "", FinishStop, 0},
		{"nearly", "abab abc", []string{"abc"}, "abab ", FinishStop, 0},
		{"overlapping beginnings", "aaab", []string{"aab"}, "a", FinishStop, 0},
		{"the first of two", "abcdef", []string{"ef", "bc"}, "a", FinishStop, 0},
		{"the longer that begins earlier", "abcd", []string{"c", "abcd"}, "ab", FinishStop, 0},
		{"not reached", "abcab", []string{"abd"}, "abcab", FinishStop, 0},
		{"a character in a stop", "x é y", []string{"é"}, "x ", FinishStop, 0},
		{"invalid byte", "a\xffb", nil, "a\uFFFDb", FinishStop, 3},
		{"broken character", "a\xe2\x82b", nil, "a\uFFFDb", FinishStop, 0},
		{"two broken characters", "\xe2\xe2\x82", nil, "\uFFFD\uFFFD", FinishStop, 0},
		{"cut character", "ab\xf0\x9f\x98", nil, "ab\uFFFD", FinishStop, 0},
		{"surrogate", "\xed\xa0\x80.", nil, "\uFFFD\uFFFD\uFFFD.", FinishStop, 0},
		{"overlong", "\xc0\xaf", nil, "\uFFFD\uFFFD", FinishStop, 0},
		{"stop after a cut character", "\xe2\x82stop", []string{"stop"}, "\uFFFD", FinishStop, 0},
	} {
		f := scripted(append(spell(c.says), 0), 356)
		s := sessionOf(t, f.load(t, &byteTokenizer{controls: []string{"<eos>", "<bos>"}}))
		pieces, text, tokens := 0, "", 0
		var last Piece
		for p, err := range s.GenerateTokens(context.Background(), []int{1}, Options{Stop: c.stop}) {
			if err != nil || !utf8.ValidString(p.Text) {
				t.Errorf("%s: %q, %v", c.name, p.Text, err)
			}
			if p.Text != "" {
				pieces++
			}
			text, tokens, last = text+p.Text, tokens+len(p.Tokens), p
		}
		if text != c.want || last.Finish != c.finish || c.pieces != 0 && pieces != c.pieces || tokens != last.Stats.Generated {
			t.Errorf("%s: got %q in %d pieces of %d tokens, %q, want %q in %d pieces, %q, %d tokens", c.name, text, pieces, tokens, last.Finish,
				c.want, c.pieces, c.finish, last.Stats.Generated)
		}
	}
}

// TestStream pushes texts in parts of random lengths: the pieces together are what the text is at
// once.
func TestStream(t *testing.T) {
	const text = "añ€😀 stop sto stopped \xff\xe2\x82 end"
	for length := 1; length < len(text); length++ {
		for _, c := range []struct {
			stops []string
			want  string
		}{
			{nil, "añ€😀 stop sto stopped \uFFFD\uFFFD end"},
			{[]string{"stopp"}, "añ€😀 stop sto "},
			{[]string{"\uFFFD"}, "añ€😀 stop sto stopped \uFFFD\uFFFD end"},
		} {
			var s stream
			s.start(c.stops)
			got, stopped := "", false
			for at := 0; at < len(text) && !stopped; at += length {
				var out []byte
				out, stopped = s.push([]byte(text[at:min(at+length, len(text))]))
				got += string(out)
			}
			if got += string(s.flush()); got != c.want {
				t.Errorf("parts of %d, stops %q: got %q, want %q", length, c.stops, got, c.want)
			}
		}
	}
}

// TestIgnoreEOS checks the tokens that end texts.
func TestIgnoreEOS(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
		end  Finish
	}{
		{Options{}, "ab", FinishStop},
		{Options{IgnoreEOS: true, MaxTokens: 5}, "abcd", FinishLength},
		{Options{IgnoreEOS: true, Ends: []int{firstByte + 'd'}}, "abc", FinishStop},
		{Options{MaxTokens: 1}, "a", FinishLength},
		{Options{IgnoreEOS: true}, "abcd", FinishContext},
	} {
		f := scripted([]int{firstByte + 'a', firstByte + 'b', 0, firstByte + 'c', firstByte + 'd'}, 356)
		f.context = 5
		s := sessionOf(t, f.load(t, &byteTokenizer{controls: []string{"<eos>"}}))
		_, text, last, err := collect(s.GenerateTokens(context.Background(), []int{1}, c.o))
		if text != c.want || last.Finish != c.end || err != nil {
			t.Errorf("%+v: got %q, %q, %v, want %q, %q", c.o, text, last.Finish, err, c.want, c.end)
		}
	}
}

// TestLogProbs compares log-probabilities with their definition.
func TestLogProbs(t *testing.T) {
	f := fakeDefault()
	s := sessionOf(t, f.load(t, nil))
	text := []int64{3, 4}
	for p, err := range s.GenerateTokens(context.Background(), []int{3, 4}, Options{MaxTokens: 6, LogProbs: true, Top: 5,
		Sampling: Sampling{Temperature: 2, Seed: 9, Bias: map[int]float32{1: 3}}}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range p.Tokens {
			logits := fakeLogits(text, 64)
			sum := 0.0
			for _, x := range logits {
				sum += math.Exp(float64(x))
			}
			prob := func(id int) float64 { return float64(logits[id]) - math.Log(sum) }
			if d := math.Abs(float64(token.LogProb) - prob(token.ID)); d > 1e-6 || len(token.Top) != 5 {
				t.Errorf("after %d: token %d has %v, want %v; %d candidates", text, token.ID, token.LogProb, prob(token.ID), len(token.Top))
			}
			order := make([]int, 64)
			for i := range order {
				order[i] = i
			}
			slices.SortStableFunc(order, func(a, b int) int { return int(16 * (logits[b] - logits[a])) })
			for i, top := range token.Top {
				if top.ID != order[i] || math.Abs(float64(top.LogProb)-prob(top.ID)) > 1e-6 {
					t.Errorf("after %d: candidate %d is %+v, want token %d", text, i, top, order[i])
				}
			}
			text = append(text, int64(token.ID))
		}
	}
	if len(text) != 8 {
		t.Errorf("got %d", text)
	}
}

// TestCallErrors checks what calls of Generate reject, and that the session then works.
func TestCallErrors(t *testing.T) {
	f := fakeDefault()
	s := sessionOf(t, f.load(t, nil))
	nan := float32(math.NaN())
	for _, c := range []struct {
		name   string
		prompt []int
		o      Options
		is     func(error) bool
	}{
		{"empty prompt", nil, Options{}, is[*PromptError]},
		{"long prompt", make([]int, 25), Options{}, is[*PromptError]},
		{"negative token", []int{1, -1}, Options{}, is[*TokenError]},
		{"large token", []int{64}, Options{}, is[*TokenError]},
		{"max tokens", []int{1}, Options{MaxTokens: -1}, is[*OptionError]},
		{"top", []int{1}, Options{Top: 101}, is[*OptionError]},
		{"empty stop", []int{1}, Options{Stop: []string{""}}, is[*OptionError]},
		{"stop without a tokenizer", []int{1}, Options{Stop: []string{"a"}}, is[*OptionError]},
		{"temperature", []int{1}, Options{Sampling: Sampling{Temperature: math.NaN()}}, is[*OptionError]},
		{"negative temperature", []int{1}, Options{Sampling: Sampling{Temperature: -1}}, is[*OptionError]},
		{"top-k", []int{1}, Options{Sampling: Sampling{TopK: -1}}, is[*OptionError]},
		{"top-p", []int{1}, Options{Sampling: Sampling{TopP: 1.5}}, is[*OptionError]},
		{"min-p", []int{1}, Options{Sampling: Sampling{MinP: -0.5}}, is[*OptionError]},
		{"penalty", []int{1}, Options{Sampling: Sampling{RepetitionPenalty: math.Inf(1)}}, is[*OptionError]},
		{"penalty window", []int{1}, Options{Sampling: Sampling{PenaltyWindow: -1}}, is[*OptionError]},
		{"bias of no token", []int{1}, Options{Sampling: Sampling{Bias: map[int]float32{64: 1}}}, is[*OptionError]},
		{"bias", []int{1}, Options{Sampling: Sampling{Bias: map[int]float32{1: nan}}}, is[*OptionError]},
	} {
		ids, _, last, err := collect(s.GenerateTokens(context.Background(), c.prompt, c.o))
		if !c.is(err) || !errors.Is(err, etrun.ErrInput) || len(ids) > 0 || last.Finish != "" {
			t.Errorf("%s: got %d, %q, %v", c.name, ids, last.Finish, err)
		}
	}
	if _, _, _, err := collect(s.Generate(context.Background(), "text", Options{})); !is[*OptionError](err) {
		t.Errorf("text without a tokenizer: %v", err)
	}
	_, _, _, err := collect(s.GenerateTokens(context.Background(), make([]int, 25), Options{}))
	if e, ok := errors.AsType[*PromptError](err); !ok || !strings.Contains(e.Error(), "25") || !strings.Contains(e.Error(), "24") {
		t.Errorf("a long prompt: %v", err)
	}
	checkGreedy(t, "after errors", s, []int{1, 2})
}

// checkGreedy checks a short text of a session.
func checkGreedy(t *testing.T, name string, s *Session, prompt []int) {
	t.Helper()
	got, _, _, err := collect(s.GenerateTokens(context.Background(), prompt, Options{MaxTokens: 4, IgnoreEOS: true}))
	if want := fakeGreedy(prompt, s.model.info.Vocabulary, 4); !slices.Equal(got, want) || err != nil {
		t.Errorf("%s, prompt %d: got %d, %v, want %d", name, prompt, got, err, want)
	}
}

// TestLogitsErrors checks logits that no token can be chosen from, and the text after them.
func TestLogitsErrors(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, value := range []float32{float32(math.NaN()), inf, -inf} {
		for _, convention := range []string{"dynamic", "dynamic, all logits", "counted", "no cache, all logits"} {
			f := conventionOf(convention)
			bad := true
			f.fault = func(text []int64, logits []float32) error {
				if bad && len(text) == 5 {
					for i := range logits {
						if i >= 3 || value == -inf {
							logits[i] = value
						}
					}
				}
				return nil
			}
			s := sessionOf(t, f.load(t, nil))
			ids, _, _, err := collect(s.GenerateTokens(context.Background(), []int{1, 2, 3}, Options{}))
			e, ok := errors.AsType[*LogitsError](err)
			if !ok || !errors.Is(err, etrun.ErrExecute) || e.Position != 4 || e.ID != 3 && value != -inf || len(ids) != 2 {
				t.Errorf("%s, %v: got %d, %v", convention, value, ids, err)
			}
			bad = false
			checkGreedy(t, convention, s, []int{1, 2, 3})
		}
	}
	f := fakeDefault()
	s := sessionOf(t, f.load(t, nil))
	none := make(map[int]float32)
	for id := range 64 {
		none[id] = -inf
	}
	if _, err := generate(s, []int{1}, Options{Sampling: Sampling{Bias: none}}); !is[*OptionError](err) {
		t.Errorf("a bias that excludes all tokens: %v", err)
	}
}

// TestFailedCalls makes the program fail at each of its calls: the session continues as if the call
// had not been made.
func TestFailedCalls(t *testing.T) {
	for _, c := range conventions {
		for failing := range 12 {
			f := conventionOf(c.name)
			calls := 0
			f.fault = func([]int64, []float32) error {
				if calls++; calls == failing {
					return errors.New("planted")
				}
				return nil
			}
			s := sessionOf(t, f.load(t, nil))
			_, _, _, err := collect(s.GenerateTokens(context.Background(), []int{1, 2, 3}, Options{MaxTokens: 4}))
			if err != nil && !strings.Contains(err.Error(), "planted") {
				t.Errorf("%s: %v", c.name, err)
			}
			calls = 100
			checkGreedy(t, fmt.Sprintf("%s, call %d failed", c.name, failing), s, []int{1, 2, 3, 4})
		}
	}
}

// TestCancel ends the context in the middle of a call, between two pieces, and before the call.
func TestCancel(t *testing.T) {
	cause := errors.New("enough")
	for _, c := range conventions {
		for at := range 6 {
			f := conventionOf(c.name)
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			s := sessionOf(t, f.load(t, nil))
			var got []int
			var last Piece
			var end error
			if at == 0 {
				cancel(cause)
			}
			for p, err := range s.GenerateTokens(ctx, []int{1, 2, 3}, Options{}) {
				for _, token := range p.Tokens {
					got = append(got, token.ID)
				}
				if last, end = p, err; len(got) == at {
					cancel(cause)
				}
			}
			want := fakeGreedy([]int{1, 2, 3}, 64, at)
			if !slices.Equal(got, want) || last.Finish != FinishCancelled || !errors.Is(end, cause) || last.Stats.Generated != at {
				t.Errorf("%s: got %d, %q, %v, want %d", c.name, got, last.Finish, end, want)
			}
			checkGreedy(t, c.name, s, []int{1, 2, 3, 4})
		}
	}
}

// TestLeave ends the iteration early.
func TestLeave(t *testing.T) {
	f := fakeDefault()
	s := sessionOf(t, f.load(t, nil))
	for range 3 {
		n := 0
		for range s.GenerateTokens(context.Background(), []int{1, 2}, Options{}) {
			if n++; n == 3 {
				break
			}
		}
		if tokens, err := s.Tokens(); len(tokens) != 4 || err != nil {
			t.Errorf("got %d, %v", tokens, err)
		}
	}
	checkGreedy(t, "after an early end", s, []int{1, 2})
}

// TestBusy uses a session during a call.
func TestBusy(t *testing.T) {
	f := fakeDefault()
	s := sessionOf(t, f.load(t, nil))
	for range s.GenerateTokens(context.Background(), []int{1, 2}, Options{MaxTokens: 1}) {
		_, tokens := s.Tokens()
		_, fork := s.Fork(context.Background())
		_, _, _, generate := collect(s.GenerateTokens(context.Background(), []int{1}, Options{}))
		for name, err := range map[string]error{"Tokens": tokens, "Fork": fork, "Reset": s.Reset(), "Rewind": s.Rewind(1), "Generate": generate} {
			if !errors.Is(err, etrun.ErrBusy) {
				t.Errorf("%s during a call: %v", name, err)
			}
		}
	}
	checkGreedy(t, "after busy calls", s, []int{1, 2})
}
