package text

import (
	"context"
	"iter"
	"math"
	"slices"
)

// Score computes a text from its beginning and yields its tokens in parts, in order, each with its LogProb after those before it and,
// if top is not 0, the most likely tokens in its place. Nothing precedes the first token: its LogProb is NaN, and it has no Top. Tokens
// are valid until the next part. The session then has the text: a call of [Session.GenerateTokens] with it as the prompt continues it.
//
// A program that returns the logits of the last token of a call (Info.AllLogits is false) computes one token after the other, which
// takes as long as to generate them, or longer without a cache. Errors are *OptionError, *PromptError, *TokenError, *LogitsError, the
// cause of ctx and those of etrun.Method.Execute.
func (s *Session) Score(ctx context.Context, tokens []int, top int) iter.Seq2[[]Token, error] {
	return func(yield func([]Token, error) bool) {
		if err := s.enter(); err != nil {
			yield(nil, err)
			return
		}
		defer s.leave()
		if err := s.score(ctx, tokens, top, func(list []Token) bool { return yield(list, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

// score computes a text and yields the parts.
func (s *Session) score(ctx context.Context, tokens []int, top int, yield func([]Token) bool) error {
	switch {
	case s.model.exact():
		return &OptionError{Option: "score", Got: "a program that takes texts of one length and returns the logits of the last token",
			Want: "one that returns those of all tokens"}
	case top < 0 || top > maxTop:
		return &OptionError{Option: "top", Got: top, Want: "a number from 0 to " + decimal(maxTop)}
	}
	if err := s.model.CheckPrompt(tokens); err != nil {
		return err
	}
	defer s.model.batch.leave(&s.part)
	s.rewind(0)
	list := []Token{{ID: tokens[0], LogProb: float32(math.NaN())}}
	var best []Candidate
	step := 1
	if s.model.info.AllLogits {
		step = s.step()
	}
	for at := 0; at < len(tokens); {
		n := min(len(tokens)-at, step)
		var failed error
		read := func() {
			for next := at + 1; next < min(at+n+1, len(tokens)); next++ {
				if failed = context.Cause(ctx); failed != nil {
					return
				}
				logits := s.logitsAfter(next - 1)[:s.model.choices]
				if failed = s.checkLogits(logits, next-1); failed != nil {
					s.forget()
					return
				}
				list = append(list, scored(tokens[next], logits, top, &best))
			}
			s.keep()
		}
		if err := s.computePart(ctx, tokens[at:at+n], read); err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		if !yield(list) {
			return nil
		}
		list, best, at = list[:0], best[:0], at+n
	}
	return nil
}

// scored returns a token with its log-probability by the logits in its place, and the most likely ones, which are appended to best.
func scored(id int, logits []float32, top int, best *[]Candidate) Token {
	norm := logSum(logits)
	t := Token{ID: id, LogProb: float32(math.Inf(-1))}
	if id < len(logits) {
		t.LogProb = float32(float64(logits[id]) - norm)
	}
	if top > 0 {
		begin := len(*best)
		*best = candidates(*best, logits, norm, top)
		t.Top = slices.Clip((*best)[begin:])
	}
	return t
}
