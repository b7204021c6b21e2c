// Package embed is the command embed, which computes vectors of texts.
package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// maxText is the maximum length of the texts on standard input, in bytes.
const maxText = 16 << 20

// report is the JSON object of embed.
type report struct {
	Schema     string       `json:"schema"`
	Dimensions int          `json:"dimensions"`
	Pooling    string       `json:"pooling"` // mean, cls, last or none
	Normalized bool         `json:"normalized"`
	Vectors    []textVector `json:"vectors"`
}

// textVector is the vector of a text.
type textVector struct {
	Text   string    `json:"text"`
	Tokens int       `json:"tokens"` // with control tokens
	Vector []float32 `json:"vector"`
}

// embedCommand computes vectors of texts.
type embedCommand struct {
	*cli.App
	session.Options
	session.Embedding
	tokenizer, method string
	context           int
	truncate          bool
}

const embedHelp = `Compute vectors of texts with an encoder such as BERT: a program whose method takes
tokens, and maybe an attention mask and token types, and returns a vector of each
token or of each text. Each vector is written as a line with a JSON list. Without
TEXT, or if it is -, the texts are the lines of standard input.

The tokenizer is a Hugging Face tokenizer.json or BERT's vocab.txt. If it is given as
a folder of sentence-transformers, the files beside it say how vectors are computed.
`

// New returns the command.
func New(a *cli.App) *cobra.Command {
	e := &embedCommand{App: a, Options: session.Options{Say: a.Note, Local: true}}
	c := &cobra.Command{
		Use:   "embed MODEL.pte [TEXT...]",
		Short: "Compute vectors of texts",
		Long:  embedHelp,
		Example: "  etrun embed model.pte --tokenizer folder \"a text\" \"another text\"\n" +
			"  etrun embed model.pte --tokenizer tok.json --pooling mean < lines.txt",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 1 {
				return session.Usage("no MODEL.pte; see %s --help", c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: cli.CompleteModel,
		RunE: func(c *cobra.Command, args []string) error {
			return session.OfFlag(e.run(c.Context(), args[0], args[1:]), optionFlags)
		},
	}
	flags := c.Flags()
	flags.StringVar(&e.tokenizer, "tokenizer", "", "`FILE` with the tokenizer of the model, or its folder")
	flags.StringVar(&e.method, "method", "forward", "method `NAME` that takes tokens and returns vectors")
	flags.IntVar(&e.context, "context", 0, "accept `N` tokens of a text at most (default: those of the program)")
	flags.BoolVar(&e.truncate, "truncate", false, "use the beginning of texts that are too long, instead of an error")
	e.Embedding.AddFlags(flags)
	e.Options.AddFlags(flags)
	return c
}

// optionFlags are the flags of the options that package text checks.
var optionFlags = map[string]string{"pooling": "pooling", "context": "context", "tokenizer": "tokenizer"}

func (e *embedCommand) run(ctx context.Context, path string, texts []string) error {
	if e.tokenizer == "" {
		return session.Usage("texts need --tokenizer FILE")
	}
	if err := e.Embedding.Check(); err != nil {
		return err
	}
	tok, err := tokenizer.OpenChecked(ctx, e.tokenizer, nil)
	if err != nil {
		return err
	}
	o, _, err := e.Embedding.Options(ctx, e.tokenizer, nil)
	if err != nil {
		return err
	}
	if o.Method = e.method; e.context != 0 {
		o.Context = e.context
	}
	s, err := session.Open(ctx, path, &e.Options)
	if err != nil {
		return err
	}
	defer s.Close()
	model, err := text.LoadEmbedder(ctx, s.Program, tok, o)
	if _, ok := errors.AsType[*text.ConventionError](err); ok && text.Generates(s.Program, e.method) {
		err = fmt.Errorf("%w; if the program generates texts, want etrun generate", err)
	}
	if err != nil {
		return session.WithHint(err)
	}
	defer model.Close()
	s.Warn()
	for _, w := range model.Warnings() {
		e.Note("%s", w)
	}
	if len(texts) == 0 || len(texts) == 1 && texts[0] == "-" {
		if texts, err = readLines(ctx, e.In); err != nil {
			return err
		}
	}
	return e.embed(ctx, model, texts)
}

// readLines reads the lines of standard input.
func readLines(ctx context.Context, in io.Reader) ([]string, error) {
	b, err := io.ReadAll(io.LimitReader(in, maxText+1))
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("standard input: %w", err)
	case len(b) > maxText:
		return nil, session.Usage("the text on standard input is longer than %d bytes", maxText)
	case len(b) == 0:
		return nil, nil
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for i, s := range lines {
		lines[i] = strings.TrimSuffix(s, "\r")
	}
	return lines, nil
}

// encode returns the tokens of a text.
func (e *embedCommand) encode(model *text.Embedder, s string) ([]int, error) {
	if e.truncate {
		return model.EncodeUpTo(s, model.Info().Context)
	}
	return model.Encode(s)
}

// embed computes the vectors and writes them.
func (e *embedCommand) embed(ctx context.Context, model *text.Embedder, texts []string) error {
	info := model.Info()
	result := report{Schema: "etrun.embed/1", Dimensions: info.Dimensions,
		Pooling: string(info.Pooling), Normalized: info.Normalize, Vectors: []textVector{}}
	for i, s := range texts {
		tokens, err := e.encode(model, s)
		if err == nil {
			err = model.EmbedTokens(ctx, [][]int{tokens}, func(vector []float32) error {
				if e.JSON {
					result.Vectors = append(result.Vectors, textVector{s, len(tokens), append([]float32{}, vector...)})
					return nil
				}
				line, err := json.Marshal(vector)
				fmt.Fprintf(e.Out, "%s\n", line) // results keeps the error
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("text %d: %w", i, err)
		}
	}
	if e.JSON {
		return e.WriteJSON(result)
	}
	return nil
}
