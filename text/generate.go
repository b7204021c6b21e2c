package text

import (
	"context"
	"iter"
	"strconv"
)

// Options configures one call of [Session.Generate].
type Options struct {
	Sampling
	MaxTokens int      // most tokens of the text; 0 means as many as the context takes
	Stop      []string // the text ends before the first of these
	Ends      []int    // tokens that end the text, besides those of the model
	IgnoreEOS bool     // the model's tokens that end texts are part of the text
	// Lookup is the most tokens of a draft, 0 for no drafts. A draft is what followed the last tokens
	// of the text where they occurred before; it is computed together with the last token, and the
	// tokens that are not chosen are dropped. Texts that repeat their prompt take fewer calls. It has
	// no effect unless the program takes several tokens and returns the logits of all of them, and
	// the cache has a place for each position, or there is none.
	Lookup   int
	LogProbs bool // each token has its LogProb and, if Top is not 0, the most likely candidates
	Top      int  // number of candidates, at most 100
}

const (
	maxTop       = 100
	maxStops     = 64
	maxStopBytes = 4096
)

func (o *Options) check(vocabulary int) error {
	switch {
	case o.MaxTokens < 0:
		return &OptionError{Option: "max tokens", Got: o.MaxTokens, Want: "0 (no limit) or a positive number"}
	case o.Lookup < 0:
		return &OptionError{Option: "lookup", Got: o.Lookup, Want: "0 (no drafts) or a positive number"}
	case o.Top < 0 || o.Top > maxTop:
		return &OptionError{Option: "top", Got: o.Top, Want: "a number from 0 to " + decimal(maxTop)}
	case len(o.Stop) > maxStops:
		return &OptionError{Option: "stop", Got: len(o.Stop), Want: "at most " + decimal(maxStops) + " strings"}
	}
	for _, s := range o.Stop {
		if s == "" || len(s) > maxStopBytes {
			return &OptionError{Option: "stop", Got: decimal(len(s)) + " bytes", Want: "strings of 1 to " + decimal(maxStopBytes) + " bytes"}
		}
	}
	return o.Sampling.check(vocabulary)
}

func decimal(n int) string { return strconv.Itoa(n) }

// Token is a generated token.
type Token struct {
	ID int
	// LogProb is the natural logarithm of the token's probability by the program's logits, before
	// all steps of Sampling; Top are the most likely tokens. Both only with Options.LogProbs.
	LogProb float32
	Top     []Candidate
}

// Piece is a part of a generated text.
type Piece struct {
	Text string // valid UTF-8; empty only in the last piece, or without a tokenizer
	// Tokens are those generated since the last piece. They are valid until the next one. Their
	// text can begin before the piece's, or end after it, where a character consists of several
	// tokens, or while it may be the beginning of a stop string.
	Tokens []Token
	Finish Finish // why the text ended; empty except in the last piece
	Stats  Stats  // of the last piece only
}

// Generate continues a text and yields it in pieces. The prompt is the whole text from its
// beginning: it is turned into tokens as [Model.Encode] does, and then as in
// [Session.GenerateTokens].
func (s *Session) Generate(ctx context.Context, prompt string, o Options) iter.Seq2[Piece, error] {
	ids, err := s.model.Encode(prompt)
	if err != nil {
		return func(yield func(Piece, error) bool) { yield(Piece{}, err) }
	}
	return s.GenerateTokens(ctx, ids, o)
}

// GenerateTokens continues the text of the given tokens and yields it in pieces. Tokens at the
// beginning that the session has computed are not computed again; others that it has are dropped.
//
// The last piece has Finish and Stats. If ctx ends, this is FinishCancelled, and the error is the
// context's cause. All other errors come with an empty piece, and nothing follows them: they are
// *PromptError, *TokenError, *OptionError, *LogitsError, those of the tokenizer, and those of
// etrun.Method.Execute. A caller can end the iteration at any piece. After all of these the session
// is usable, and has the tokens that were computed.
func (s *Session) GenerateTokens(ctx context.Context, prompt []int, o Options) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		if err := s.enter(); err != nil {
			yield(Piece{}, err)
			return
		}
		defer s.leave()
		g := s.start(o, yield)
		err := s.checkCall(prompt, &o)
		if err == nil {
			err = g.run(ctx, prompt)
		}
		switch {
		case g.left:
		case err != nil && isCanceled(ctx, err):
			g.finish = FinishCancelled
			g.end(context.Cause(ctx))
		case err != nil:
			yield(Piece{}, err)
		default:
			g.end(nil)
		}
	}
}

// checkCall checks what the caller gives.
func (s *Session) checkCall(prompt []int, o *Options) error {
	info := &s.model.info
	exact := s.model.exact()
	if n := len(prompt); n == 0 || n > info.Context || exact && n != info.Context {
		return &PromptError{Tokens: n, Context: info.Context, Exact: exact}
	}
	for i, id := range prompt {
		if id < 0 || id >= info.Vocabulary {
			return &TokenError{ID: id, Index: i, Vocabulary: info.Vocabulary}
		}
	}
	if len(o.Stop) > 0 && s.model.tok == nil {
		return &OptionError{Option: "stop", Got: "strings", Want: "none without a tokenizer"}
	}
	return o.check(info.Vocabulary)
}
