// Package generate is the command generate, which continues texts.
package generate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
	"github.com/spf13/cobra"
)

// generateCommand continues a prompt with a language model.
type generateCommand struct {
	*cli.App
	session.Options
	session.LanguageModel
	samplingFlags
	chatFlags
	partFlags
	prompt string
	tokens []int
	echo   bool

	asked bool // the command line sets --prompt
	model *text.Model
	path  string
	load  time.Duration
}

const generateHelp = `Continue a prompt with a language model: a program whose method takes tokens, and
maybe a position, and returns logits. The text is written as it is generated,
statistics go to stderr. An interrupt ends the text and prints the statistics.

The tokenizer is a Hugging Face tokenizer.json, a SentencePiece model, a tiktoken
file or llama2.c's .bin. The beginning and end of texts and the context length
come from the program's metadata methods, then from the tokenizer. The prompt is
plain text: names of control tokens in it are not control tokens, unless --special
is set. Without --temperature the most likely token is chosen at each step.

Models that take pictures or sounds have them by --image and --audio: in the places
of <image> and <audio> in the prompt, or before it. Instruct models want --chat.
`

// New returns the command.
func New(a *cli.App) *cobra.Command {
	g := &generateCommand{App: a, Options: session.Options{Say: a.Note, Local: true}}
	c := &cobra.Command{
		Use:   "generate MODEL.pte",
		Short: "Generate text with a language model",
		Long:  generateHelp,
		Example: "  etrun generate model.pte --tokenizer tok.json --prompt \"Once upon a time\"\n" +
			"  etrun generate model.pte --tokenizer tok.json --prompt - < story.txt\n" +
			"  etrun generate model.pte --tokenizer tok.json --chat -t 0.8 --seed 7\n" +
			"  etrun generate folder/model.pte --image cat.jpg --chat -p \"What is this?\"\n" +
			"  etrun generate model.pte --tokens 1,403,407 --max-tokens 16    ids in and out",
		Args:              cli.OneModel,
		ValidArgsFunction: cli.CompleteModel,
		RunE: func(c *cobra.Command, args []string) error {
			g.asked = c.Flags().Changed("prompt")
			return session.OfFlag(g.run(c.Context(), args[0]), optionFlags)
		},
	}
	flags := c.Flags()
	// A TEXT may be empty, see session.RejectEmpty.
	flags.StringVarP(&g.prompt, "prompt", "p", "", "`TEXT` to continue; - reads it from standard input")
	flags.IntSliceVar(&g.tokens, "tokens", nil, "continue the tokens of this `LIST`, such as 1,403,407, instead of a text")
	flags.BoolVar(&g.echo, "echo", false, "write the prompt before the text")
	g.LanguageModel.AddFlags(flags)
	g.samplingFlags.addFlags(flags)
	g.chatFlags.addFlags(flags)
	g.partFlags.addFlags(flags)
	g.Options.AddFlags(flags)
	return c
}

// maxPrompt is the maximum length of a prompt in bytes.
const maxPrompt = 16 << 20

// check validates the flags before any file is opened.
func (g *generateCommand) check(path string) error {
	if g.tokens == nil && g.Tokenizer == "" {
		if folder := filepath.Dir(path); tokenizer.InFolder(folder) {
			g.Tokenizer = folder
		}
	}
	switch {
	case g.asked && g.tokens != nil:
		return session.Usage("--prompt and --tokens; choose one")
	case !g.asked && g.tokens == nil && !g.chat:
		return session.Usage("no prompt; give --prompt TEXT, --prompt - for standard input, --tokens LIST or --chat")
	case g.tokens == nil && g.Tokenizer == "":
		return session.Usage("text needs --tokenizer FILE: there is none in the folder of the program")
	case g.tokens != nil && (g.Any() || g.special):
		return session.Usage("--image, --audio and --special are for a prompt that is text, not for --tokens")
	case g.chat && g.special:
		return session.Usage("--special with --chat, whose control tokens come from the template")
	case g.echo && g.Any():
		return session.Usage("--echo with --image or --audio")
	case g.echo && (!g.asked || g.JSON):
		return session.Usage("--echo needs --prompt, and is not for --json, which has the prompt's tokens")
	case g.text.Top > 0 && !g.text.LogProbs:
		return session.Usage("--top-logprobs needs --logprobs")
	case g.text.LogProbs && !g.JSON:
		return session.Usage("--logprobs needs --json")
	}
	return g.checkChat()
}

func (g *generateCommand) run(ctx context.Context, path string) error {
	if err := g.check(path); err != nil {
		return err
	}
	if err := g.readPrompt(); err != nil {
		return err
	}
	begun := time.Now()
	g.Progress.Say("loading %s", cli.Printable(path))
	s, model, err := g.Open(ctx, path, &g.Options)
	if err != nil {
		return err
	}
	defer s.Close()
	defer model.Close()
	if g.text.Lookup > 0 && !model.Info().TakesDrafts() {
		return session.Usage("--lookup needs a program that takes several tokens and returns the logits of all of them")
	}
	g.path, g.model, g.load = s.Path, model, time.Since(begun)
	if err := g.encode(ctx, g.App, model, g.MaxMemory()); err != nil {
		return session.WithHint(err)
	}
	memory, err := model.NewSession(ctx)
	if err != nil {
		return session.WithHint(err)
	}
	defer memory.Close()
	if !g.chat {
		return g.generate(ctx, memory)
	}
	d, err := g.newConversation(ctx, memory)
	switch {
	case err != nil:
		return err
	case g.asked:
		return d.answer(ctx, g.prompt)
	}
	return d.converse(ctx)
}

// readPrompt reads the prompt if it is standard input.
func (g *generateCommand) readPrompt() error {
	if !g.asked || g.prompt != "-" {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(g.In, maxPrompt+1))
	if err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	if len(b) > maxPrompt {
		return session.Usage("the prompt on standard input is longer than %d bytes", maxPrompt)
	}
	g.prompt = string(b)
	return nil
}

// generate writes the text of one prompt.
func (g *generateCommand) generate(ctx context.Context, s *text.Session) error {
	tokens := g.tokens
	if g.asked {
		var err error
		if tokens, err = g.encodePrompt(); err != nil {
			return err
		}
	}
	o, err := g.sampling(g.Seed)
	if err != nil {
		return err
	}
	o.Parts = g.parts
	w := &textWriter{App: g.App, ids: g.model.Tokenizer() == nil, collect: g.JSON, logProbs: o.LogProbs}
	if g.echo {
		w.write(g.prompt)
	}
	g.Progress.Say("computing the prompt of %d tokens", len(tokens))
	end, err := w.copy(s.GenerateTokens(ctx, tokens, o))
	if end.Finish == "" && end.Stats.Generated == 0 {
		return err
	}
	return g.report(w, tokens, end, err)
}

// encodePrompt returns the tokens of the prompt with its parts.
func (g *generateCommand) encodePrompt() ([]int, error) {
	if len(g.parts) > 0 || g.special {
		return g.model.EncodeParts(g.prompt, g.parts, g.special)
	}
	return g.model.Encode(g.prompt)
}

// report prints the statistics of a text that ended with err.
func (g *generateCommand) report(w *textWriter, prompt []int, end text.Piece, err error) error {
	w.finish()
	end.Finish = cmp.Or(end.Finish, finishError)
	g.Note("%s", statistics(&end, g.model.Info().Context))
	if !g.JSON {
		return err
	}
	r := newGenerateReport(g, w, prompt, end)
	if e := g.WriteJSON(r); e != nil {
		return e
	}
	return err
}

func newGenerateReport(g *generateCommand, w *textWriter, prompt []int, end text.Piece) *report {
	r := &report{Schema: "etrun.generate/1", Model: g.path, Tokenizer: g.Tokenizer, Seed: g.Seed, Threads: g.model.Program().Threads(),
		Context: g.model.Info().Context, LoadMS: stats.MS(g.load), Prompt: text.WithoutDigests(prompt), Text: w.text.String(), Tokens: w.tokens,
		Finish: end.Finish, Stats: newTextStats(&end.Stats)}
	if r.Tokens == nil {
		r.Tokens = []tokenReport{}
	}
	return r
}
