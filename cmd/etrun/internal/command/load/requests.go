package load

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/load"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// requests are the flags of what is sent.
type requests struct {
	model, version string
	tensors        string
	inputs         session.Calls
	seed           uint64

	text      bool
	prompts   []string
	promptsIn string
	maxTokens int
	chat      bool
	ignoreEOS bool

	unlisted bool // by the server, among the models that generate texts
}

func (r *requests) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&r.model, "model", "", "`NAME` of the model (default: the only one of the server)")
	flags.StringVar(&r.version, "model-version", "",
		"`NAME` of the version, which is a method of etrun's models (default: the server's choice)")
	flags.StringVar(&r.tensors, "tensors", "binary", "`FORM` of tensors in requests and answers: binary or json")
	r.inputs.AddInputFlags(flags, "start the inputs of another request; requests are sent in turn")
	flags.Uint64Var(&r.seed, "seed", 0, "seed `N` of random inputs and intervals")
	flags.BoolVar(&r.text, "text", false, "request texts of a language model, as streams: times to the first token and between tokens")
	flags.Var(session.Texts(&r.prompts), "prompt", "with --text: `TEXT` to continue; may be repeated, then they are sent in turn")
	flags.StringVar(&r.promptsIn, "prompts", "", "with --text: `FILE` with a prompt per line")
	flags.IntVar(&r.maxTokens, "max-tokens", 64, "with --text: maximum number of tokens of a text, `N`")
	flags.BoolVar(&r.chat, "chat", false, "with --text: send prompts as messages of a chat")
	flags.BoolVar(&r.ignoreEOS, "ignore-eos", false, "with --text: ask for texts that do not end before --max-tokens")
}

// maxPrompts bounds the file of prompts.
const maxPrompts = 64 << 20

// maxInputs bounds the bytes of all inputs.
const maxInputs = 1 << 30

func (r *requests) check() error {
	switch {
	case r.tensors != "binary" && r.tensors != "json":
		return session.Usage("--tensors %q, want binary or json", r.tensors)
	case r.text && (r.maxTokens < 1 || r.maxTokens > 1<<20):
		return session.Usage("--max-tokens %d, want 1 to %d", r.maxTokens, 1<<20)
	}
	return nil
}

// checkProtocol returns an error if the protocol lacks what is wanted.
func (r *requests) checkProtocol(c *load.Client) error {
	switch {
	case c.IsRPC() && r.text:
		return session.Usage("--text with gRPC, want http://HOST:PORT or https://HOST:PORT: texts are those of OpenAI's API")
	case c.IsRPC() && r.tensors == "json":
		return session.Usage("--tensors json with gRPC, whose tensors are binary")
	}
	return nil
}

// sender returns the sender of the requests, and describes them in the report.
func (r *requests) sender(ctx context.Context, c *load.Client, report *load.Report, say func(string, ...any)) (load.Sender, error) {
	var err error
	if report.Model, err = r.choose(ctx, c); err != nil {
		return nil, err
	}
	if r.text {
		return r.texts(ctx, c, report)
	}
	return r.infer(ctx, c, report, say)
}

func (r *requests) texts(ctx context.Context, c *load.Client, report *load.Report) (load.Sender, error) {
	prompts := slices.Clone(r.prompts)
	if r.promptsIn != "" {
		text, err := openfile.ReadFile(ctx, r.promptsIn, openfile.Rules{Limit: maxPrompts})
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(text) {
			if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
				prompts = append(prompts, strings.ToValidUTF8(string(line), "�"))
			}
		}
	}
	if len(prompts) == 0 {
		prompts = []string{"Once upon a time"}
	}
	s, err := c.NewTexts(prompts, load.TextOptions{Model: report.Model, MaxTokens: r.maxTokens, Chat: r.chat, IgnoreEOS: r.ignoreEOS})
	if err != nil {
		return nil, err
	}
	if err := r.try(ctx, c, s); err != nil {
		return nil, err
	}
	report.Kind, report.Bytes, report.Requests = load.KindTexts, s.Bytes(), len(prompts)
	return s, nil
}

func (r *requests) infer(ctx context.Context, c *load.Client, report *load.Report, say func(string, ...any)) (load.Sender, error) {
	m, err := c.Describe(ctx, report.Model, r.version)
	if err != nil {
		return nil, r.unknown(ctx, c, report.Model, err)
	}
	if len(m.Inputs)+len(m.Outputs) == 0 {
		return nil, withoutTensors(ctx, c, report.Model)
	}
	slots, err := m.Slots()
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", cli.Printable(report.Model), err)
	}
	resolver := &input.Resolver{Limit: maxInputs, Say: say}
	var calls [][]tensor.Value
	for i, call := range r.inputs {
		specs := call.Inputs
		if len(specs) == 0 {
			specs = input.Random(slots)
		}
		resolver.Seed = r.seed + uint64(i)
		values, err := resolver.Resolve(ctx, specs, slots)
		if err != nil {
			return nil, err
		}
		calls = append(calls, values)
	}
	s, err := c.NewInfer(m, slots, calls, r.tensors == "binary")
	if err != nil {
		return nil, session.Usage("%w; with --tensors binary elements of all types can be sent", err)
	}
	report.Kind, report.Method, report.Tensors = load.KindInfer, r.version, r.tensors
	report.Bytes, report.Requests = s.Bytes(), len(calls)
	return s, nil
}
