// Package tokenize is the command tokenize, which converts text to tokens.
package tokenize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// maxText is the maximum length of a text on standard input, in bytes.
const maxText = 16 << 20

// report is the JSON object of tokenize.
type report struct {
	Schema string  `json:"schema"`
	Text   string  `json:"text"`
	Count  int     `json:"count"`
	Tokens []token `json:"tokens"`
}

// token is a token of a text.
type token struct {
	ID   int    `json:"id"`
	Text string `json:"text"` // its bytes, in which those that are not UTF-8 are replaced; control tokens have none
}

// tokenizeCommand converts between text and tokens.
type tokenizeCommand struct {
	*cli.App
	decode, special, bos, pieces bool
}

// New returns the command.
func New(a *cli.App) *cobra.Command {
	t := &tokenizeCommand{App: a}
	c := &cobra.Command{
		Use:   "tokenize TOKENIZER [TEXT]",
		Short: "Convert text to tokens, or back",
		Long: "Convert a text to the tokens of a language model's tokenizer, or tokens to their text. Without TEXT, or if it is -, " +
			"standard input is read. Tokens are numbers between spaces, commas or brackets.",
		Example: "  etrun tokenize tokenizer.json \"Once upon a time\"\n  etrun tokenize tokenizer.json --pieces < story.txt\n" +
			"  etrun tokenize tokenizer.json --decode \"9038 2501\"",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return session.Usage("%s, want TOKENIZER and at most one TEXT; see %s --help",
					cli.Count(len(args), "argument", "arguments"), c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return t.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.BoolVarP(&t.decode, "decode", "d", false, "convert tokens to text")
	flags.BoolVar(&t.special, "special", false, "names of control tokens in the text are these tokens")
	flags.BoolVar(&t.bos, "bos", false, "begin with the tokenizer's first token")
	flags.BoolVar(&t.pieces, "pieces", false, "write a line for each token, with its text")
	return c
}

func (t *tokenizeCommand) run(ctx context.Context, args []string) error {
	if t.decode && (t.special || t.bos) {
		return session.Usage("--decode with --special or --bos, which are for texts")
	}
	tok, err := tokenizer.Open(args[0])
	if err != nil {
		return err
	}
	given := "-"
	if len(args) > 1 {
		given = args[1]
	}
	if given == "-" {
		if given, err = readStandardInput(ctx, t.In); err != nil {
			return err
		}
	}
	convert := t.encode
	if t.decode {
		convert = t.read
	}
	ids, err := convert(tok, given)
	if err != nil {
		return err
	}
	return t.write(tok, ids)
}

// readStandardInput reads a text from standard input.
func readStandardInput(ctx context.Context, in io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(in, maxText+1))
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("standard input: %w", err)
	case len(b) > maxText:
		return "", session.Usage("the text on standard input is longer than %d bytes", maxText)
	}
	return string(b), nil
}

// encode returns the tokens of a text.
func (t *tokenizeCommand) encode(tok tokenizer.Tokenizer, s string) ([]int, error) {
	ids, err := tok.Encode(s, t.special)
	if err != nil || !t.bos {
		return ids, err
	}
	first := tok.BOS()
	if first < 0 {
		return nil, session.Usage("--bos: the tokenizer names no first token")
	}
	return append([]int{first}, ids...), nil
}

// read reads tokens.
func (t *tokenizeCommand) read(_ tokenizer.Tokenizer, s string) ([]int, error) {
	fields := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n,[]", r) })
	ids := make([]int, len(fields))
	for i, f := range fields {
		var err error
		if ids[i], err = strconv.Atoi(f); err != nil {
			return nil, session.Usage("token %d: %.40q is not a number", i, f)
		}
	}
	return ids, nil
}

// write writes tokens, or their text.
func (t *tokenizeCommand) write(tok tokenizer.Tokenizer, ids []int) error {
	s, err := tokenizer.Decode(tok, ids)
	if err != nil {
		return err
	}
	result := report{Schema: "etrun.tokenize/1", Text: s, Count: len(ids), Tokens: []token{}}
	if t.JSON || t.pieces {
		if result.Tokens, err = pieces(tok, ids); err != nil {
			return err
		}
	}
	switch {
	case t.JSON:
		return t.WriteJSON(result)
	case t.pieces:
		for _, p := range result.Tokens {
			fmt.Fprintf(t.Out, "%d\t%q\n", p.ID, p.Text)
		}
	case t.decode:
		if t.ToTerminal() {
			s = strings.Map(cli.Harmless, s) + "\n"
		}
		_, _ = io.WriteString(t.Out, s) // results keeps the error
	default:
		fmt.Fprintln(t.Out, strings.Trim(fmt.Sprint(ids), "[]"))
	}
	return nil
}

// pieces returns the texts of tokens.
func pieces(tok tokenizer.Tokenizer, ids []int) ([]token, error) {
	list := make([]token, len(ids))
	var b []byte
	var errs []error
	for i, id := range ids {
		var err error
		b, err = tok.Append(b[:0], id)
		list[i], errs = token{id, strings.ToValidUTF8(string(b), "�")}, append(errs, err)
	}
	return list, errors.Join(errs...)
}
