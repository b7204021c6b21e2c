// Package embed (no compatibility promise) serves models that compute vectors of texts, for package openai.
package embed

import (
	"context"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Config configures a model that computes vectors of texts.
type Config struct {
	Tokenizer tokenizer.Tokenizer
	Options   text.EmbedOptions
	// Warn receives contradictions of the options and the program: see text.Embedder.Warnings. It may be nil.
	Warn func(warning string)
}

// Attach returns the function for serve.Config.Attach of a model that computes vectors of texts.
func Attach(c Config) func(ctx context.Context, p *etrun.Program) (serve.Attachment, error) {
	return func(ctx context.Context, p *etrun.Program) (serve.Attachment, error) {
		e, err := text.LoadEmbedder(ctx, p, c.Tokenizer, c.Options)
		if err != nil {
			return nil, err
		}
		for _, w := range e.Warnings() {
			if c.Warn != nil {
				c.Warn(w)
			}
		}
		return &Model{e}, nil
	}
}

// Model is the attachment: a model that computes vectors of texts.
type Model struct{ *text.Embedder }

// Try computes the vector of a text.
func (e *Model) Try(ctx context.Context) error {
	tokens := make([]int, 1)
	if i := e.Info(); i.Exact {
		tokens = make([]int, i.Context)
	}
	return e.EmbedTokens(ctx, [][]int{tokens}, func([]float32) error { return nil })
}

// Bounds returns the number of positions of the context, and that of tokens.
func (e *Model) Bounds() (context, vocabulary int) {
	i := e.Info()
	return i.Context, i.Vocabulary
}
