package text

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/etrun-go/etrun"
)

// ConventionError reports a program that cannot be run as a language model, or as an encoder of texts.
type ConventionError struct {
	Kind   string // what it should be; empty for a language model
	Method string
	Got    string // the input, output or method that does not fit
	Want   string
}

func (e *ConventionError) Error() string {
	return fmt.Sprintf("method %q is not %s that this version can drive: got %s, want %s", e.Method, cmp.Or(e.Kind, "a language model"), e.Got,
		e.Want)
}

// Unwrap makes errors.Is(err, etrun.ErrUnsupported) true.
func (e *ConventionError) Unwrap() error { return etrun.ErrUnsupported }

// MetadataError reports a metadata method whose value is impossible, or contradicts the program's
// method "forward".
type MetadataError struct {
	Name string // such as "get_max_seq_len"
	Got  string
	Want string
}

func (e *MetadataError) Error() string {
	return fmt.Sprintf("metadata method %q: got %s, want %s", e.Name, e.Got, e.Want)
}

// Unwrap makes errors.Is(err, etrun.ErrFormat) true.
func (e *MetadataError) Unwrap() error { return etrun.ErrFormat }

// VocabularyError reports a tokenizer that does not belong to the program.
type VocabularyError struct {
	Program   int // logits of the program
	Tokenizer int // ids of the tokenizer
}

func (e *VocabularyError) Error() string {
	return fmt.Sprintf("the tokenizer has %d tokens, the program %d: they do not belong together", e.Tokenizer, e.Program)
}

// Unwrap makes errors.Is(err, etrun.ErrInput) true.
func (e *VocabularyError) Unwrap() error { return etrun.ErrInput }

// PromptError reports a prompt of a length that the model does not accept.
type PromptError struct {
	Tokens  int
	Context int  // maximum number of tokens
	Exact   bool // the model accepts only this number of tokens
}

func (e *PromptError) Error() string {
	switch {
	case e.Tokens == 0:
		return fmt.Sprintf("the prompt is empty, and the model names no first token; it takes 1 to %d tokens", e.Context)
	case e.Exact:
		return fmt.Sprintf("the prompt has %d tokens; the program takes exactly %d", e.Tokens, e.Context)
	}
	return fmt.Sprintf("the prompt has %d tokens, the context of the model %d", e.Tokens, e.Context)
}

// Unwrap makes errors.Is(err, etrun.ErrInput) true.
func (e *PromptError) Unwrap() error { return etrun.ErrInput }

// TokenError reports a token of a prompt that the program does not have.
type TokenError struct {
	ID, Index  int // the token, and its index in the prompt
	Vocabulary int // tokens of the program
}

func (e *TokenError) Error() string {
	return fmt.Sprintf("token %d of the prompt is %d, the program has tokens 0 to %d", e.Index, e.ID, e.Vocabulary-1)
}

// Unwrap makes errors.Is(err, etrun.ErrInput) true.
func (e *TokenError) Unwrap() error { return etrun.ErrInput }

// OptionError reports an option out of its range.
type OptionError struct {
	Option string
	Got    any
	Want   string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("option %s: got %v, want %s", e.Option, e.Got, e.Want)
}

// Unwrap makes errors.Is(err, etrun.ErrInput) true.
func (e *OptionError) Unwrap() error { return etrun.ErrInput }

func errNoTokenizer() error {
	return &OptionError{Option: "tokenizer", Got: "none", Want: "one, to turn text into tokens"}
}

// LogitsError reports logits from which no token can be chosen. The session computes its tokens
// again in the next call.
type LogitsError struct {
	Position int // of the token that the logits follow
	ID       int // the first token with such a logit
	Value    float32
}

func (e *LogitsError) Error() string {
	return fmt.Sprintf("the logit of token %d after position %d is %v", e.ID, e.Position, e.Value)
}

// Unwrap makes errors.Is(err, etrun.ErrExecute) true.
func (e *LogitsError) Unwrap() error { return etrun.ErrExecute }

// VectorError reports a vector of a text with a number that is not finite.
type VectorError struct {
	Dimension int
	Value     float64
}

func (e *VectorError) Error() string {
	return fmt.Sprintf("the vector of a text has %v in dimension %d", e.Value, e.Dimension)
}

// Unwrap makes errors.Is(err, etrun.ErrExecute) true.
func (e *VectorError) Unwrap() error { return etrun.ErrExecute }

func decimal(n int) string { return strconv.Itoa(n) }

// isCanceled reports whether err is the error of a context that ended.
func isCanceled(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err()))
}
