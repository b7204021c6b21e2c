package text

import "cmp"

// Options configures one call of [Session.Generate].
type Options struct {
	Sampling
	MaxTokens int      // maximum number of generated tokens; 0 means up to the end of the context
	Stop      []string // the text ends before the first of these
	Ends      []int    // tokens that end the text, in addition to the model's
	IgnoreEOS bool     // the model's end tokens do not end the text
	// Form prescribes the form of the text, nil for none. Of the tokens only those are chosen with which the text can go on, and
	// end within the tokens that are left: a text with a form always has it, whatever the model.
	Form *Form
	// Shown are control tokens that have a text here, such as the beginning of a call of a tool.
	Shown map[int]string
	// Lookup is the maximum length of a draft in tokens, 0 for no drafts. A draft is a copy of the
	// tokens that followed an earlier occurrence of the last tokens. It is computed together with the
	// last token, and tokens that are not chosen are dropped. Texts that repeat their prompt need
	// fewer calls. Lookup has no effect unless the program takes several tokens and returns the
	// logits of all of them, and there is no cache, or one with a slot per position.
	Lookup   int
	LogProbs bool // return the LogProb of each token and, if Top is not 0, the most likely candidates
	Top      int  // number of candidates, at most 100
	// Parts are those of the prompt: see [Part]. Their order does not matter.
	Parts []*Part
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

// Token is a generated token.
type Token struct {
	ID int
	// LogProb is the natural logarithm of the token's probability by the program's logits, before
	// any step of Sampling. Top lists the most likely tokens. Both are set only with Options.LogProbs.
	LogProb float32
	Top     []Candidate
}

// Piece is a part of a generated text.
type Piece struct {
	Text string // valid UTF-8; empty only in the last piece, without a tokenizer, or if many tokens have no text yet
	// Tokens are those generated since the last piece, valid until the next one. Their text can
	// begin before the piece's or end after it, if a character consists of several tokens or the
	// text may be the beginning of a stop string.
	Tokens []Token
	Finish Finish // why the text ended; empty except in the last piece
	Stats  Stats  // of the last piece only
}

// CheckPrompt reports whether a session can continue a prompt with its parts: the error is a *PromptError, a
// *TokenError or an *OptionError.
func (m *Model) CheckPrompt(prompt []int, parts ...*Part) error {
	return cmp.Or(m.checkParts(parts), m.checkPrompt(prompt, rowsOf(parts)))
}

func (m *Model) checkPrompt(prompt []int, rowOf map[int][]float32) error {
	info := &m.info
	exact := m.exact()
	if n := len(prompt); n == 0 || n > info.Context || exact && n != info.Context {
		return &PromptError{Tokens: n, Context: info.Context, Exact: exact}
	}
	for i, id := range prompt {
		if id < 0 && rowOf[id] != nil {
			continue
		}
		if id < 0 || id >= info.Vocabulary {
			return &TokenError{ID: id, Index: i, Vocabulary: info.Vocabulary}
		}
	}
	return nil
}

// checkCall checks the arguments of a call.
func (s *Session) checkCall(prompt []int, o *Options) error {
	s.rowOf = rowsOf(o.Parts)
	if err := cmp.Or(s.model.checkParts(o.Parts), s.model.checkPrompt(prompt, s.rowOf)); err != nil {
		return err
	}
	if len(o.Stop) > 0 && s.model.tok == nil {
		return &OptionError{Option: "stop", Got: "strings", Want: "none without a tokenizer"}
	}
	return o.check(s.model.info.Vocabulary)
}
