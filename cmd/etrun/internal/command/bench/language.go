package bench

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/internal/duration"
	"github.com/etrun-go/etrun/text"
)

// languageBench is bench --text: it measures a language model by the length of the prompt.
type languageBench struct {
	session.LanguageModel
	text    bool
	lengths []int
	decode  int
	clients int
	session.PartFiles
}

// textReport is the JSON object of bench --text.
type textReport struct {
	modelHead
	Context int            `json:"context"`         // positions
	Chunk   int            `json:"chunk"`           // maximum number of tokens per call of the program
	Media   []mediaRuns    `json:"media,omitempty"` // what precedes the prompts
	Runs    []languageRuns `json:"runs"`
}

// languageRuns are the measurements with one number of threads and one length of the prompt.
type languageRuns struct {
	Threads     int           `json:"threads"`
	Clients     int           `json:"clients"` // texts that are generated at the same time
	Prompt      int           `json:"prompt_tokens"`
	Generated   int           `json:"generated_tokens"` // in each run
	Prefill     stats.Summary `json:"prefill_ms"`
	First       stats.Summary `json:"first_token_ms"`
	PerToken    stats.Summary `json:"decode_ms_per_token"`  // after the first one
	PrefillRate float64       `json:"prefill_tokens_per_s"` // of each text
	DecodeRate  float64       `json:"decode_tokens_per_s"`  // of all texts together
	TokenBytes  int64         `json:"bytes_per_token"`      // weights, read once for all clients, and the cache up to the middle of the generated tokens
	ReadRate    float64       `json:"decode_bytes_per_s"`   // that many for each token
	Bandwidth   float64       `json:"memory_bytes_per_s"`   // measured: the threads read memory; 0 if too little is left
	Share       float64       `json:"bandwidth_share"`      // of the two
}

// mediaRuns are the measurements of the encoder of a picture or a sound.
type mediaRuns struct {
	Threads int           `json:"threads"`
	File    string        `json:"file"`
	Tokens  int           `json:"tokens"`
	Encode  stats.Summary `json:"encode_ms"` // from the file to rows
}

// Bounds of --lengths and --clients.
const (
	maxLengths = 64
	maxClients = 1024
)

// check validates the flags.
func (l *languageBench) check(b *benchCommand, paths []string) error {
	switch {
	case len(paths) != 1 || b.vs != "":
		return session.Usage("--text measures one program, without --vs")
	case len(b.calls) > 1 || len(b.calls[0].Inputs) > 0:
		return session.Usage("--text with --input or --next; the prompts are random tokens")
	case b.plan.Rate != 0:
		return session.Usage("--text with --rate; texts are generated back to back")
	case b.format == "benchstat":
		return session.Usage("--text writes --format table or json")
	case len(l.lengths) > maxLengths || slices.ContainsFunc(l.lengths, func(n int) bool { return n < 1 }):
		return session.Usage("--lengths %v, want at most %d positive numbers", l.lengths, maxLengths)
	case l.clients < 1 || l.clients > maxClients:
		return session.Usage("--clients %d, want 1 to %d", l.clients, maxClients)
	case l.decode < 1:
		return session.Usage("--decode %d, want 1 or more", l.decode)
	}
	return nil
}

// measureText measures a language model with each number of threads.
func (b *benchCommand) measureText(ctx context.Context, path string) error {
	b.language.Method = b.calls[0].Method
	r := &textReport{modelHead: b.head("etrun.bench.text/1", path)}
	err := b.eachThreads(&r.modelHead, func(o *session.Options) error { return b.language.measure(ctx, b, o, r) })
	return b.writeRuns(ctx, err, len(r.Runs), r)
}

// measure measures all lengths with one number of threads.
func (l *languageBench) measure(ctx context.Context, b *benchCommand, o *session.Options, r *textReport) error {
	s, model, err := l.Open(ctx, r.Model, o)
	if err != nil {
		return err
	}
	defer s.Close()
	defer model.Close()
	info := model.Info()
	r.Context, r.Chunk = info.Context, info.Chunk
	parts, err := l.encode(ctx, b, model, s.Threads(), r)
	if err != nil {
		return session.WithHint(err)
	}
	before := 0
	for _, p := range parts {
		before += len(p.Tokens())
	}
	lengths, err := l.within(info.Context - before)
	if err != nil {
		return err
	}
	texts, err := openTexts(ctx, model, l.clients)
	defer texts.close()
	if err != nil {
		return session.WithHint(err)
	}
	share := b.plan.Duration / time.Duration(len(lengths)*len(b.threads))
	b.Progress.Say("reading memory")
	bandwidth := readBandwidth(ctx, s.Threads())
	for _, n := range lengths {
		b.Progress.During(share, "prompts of %d tokens", n)
		runs, err := l.repeat(ctx, texts, l.prompt(n, info.Vocabulary, o.Seed), parts, share)
		if runs.Prefill.N > 0 {
			runs.Threads, runs.Clients, runs.Bandwidth = s.Threads(), l.clients, bandwidth
			if err := runs.addBytes(texts[0]); err != nil {
				return err
			}
			r.Runs = append(r.Runs, runs)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// encodings is the number of times that a file is encoded; the first one is not counted.
const encodings = 6

// encode measures the encoders with the files of the flags.
func (l *languageBench) encode(ctx context.Context, b *benchCommand, model *text.Model, threads int, r *textReport) (parts []*text.Part, err error) {
	files, err := l.Read(ctx, b.MaxMemory())
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		var p *text.Part
		var times []time.Duration
		for range encodings {
			if err := model.Shrink(); err != nil { // what is kept would not be encoded again
				return nil, err
			}
			begun := time.Now()
			if p, err = f.Encode(ctx, model); err != nil {
				return nil, err
			}
			times = append(times, time.Since(begun))
		}
		parts = append(parts, p)
		r.Media = append(r.Media, mediaRuns{threads, f.Name, len(p.Tokens()), stats.Of(times[1:])})
	}
	return parts, nil
}

// addBytes compares what the tokens after the first one have read with what memory delivers.
func (r *languageRuns) addBytes(s *text.Session) error {
	f, err := s.Footprint()
	if err != nil {
		return err
	}
	info := s.Model().Info()
	positions := info.Context // of a cache whose use is not known
	if info.Cache == text.CachePositions {
		positions = r.Prompt + r.Generated/2
	}
	r.TokenBytes = f.Weights/int64(r.Clients) + f.State*int64(positions)/int64(info.Context)
	r.ReadRate = float64(r.TokenBytes) * r.DecodeRate
	if r.Bandwidth > 0 {
		r.Share = r.ReadRate / r.Bandwidth
	}
	return nil
}

// within returns the lengths to measure: those of the command line, or powers of 4 within the context.
func (l *languageBench) within(context int) ([]int, error) {
	if l.lengths != nil {
		if n := slices.Max(l.lengths); n >= context {
			return nil, session.Usage("--lengths %d, the model has %d positions", n, context)
		}
		return l.lengths, nil
	}
	list := []int{1}
	for n := 16; n < context; n *= 4 {
		list = append(list, n)
	}
	return list, nil
}

// prompt returns random tokens.
func (l *languageBench) prompt(n, vocabulary int, seed uint64) []int {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	ids := make([]int, n)
	for i := range ids {
		ids[i] = r.IntN(vocabulary)
	}
	return ids
}

// minTexts is the minimum number of texts of each length.
const minTexts = 3

// repeat generates texts for a time, each from an empty session, in all sessions at once. The first ones are not counted.
func (l *languageBench) repeat(ctx context.Context, texts texts, prompt []int, parts []*text.Part, d time.Duration) (r languageRuns, err error) {
	var prefill, first, perToken []time.Duration
	o := text.Options{MaxTokens: l.decode + 1, IgnoreEOS: true, Parts: parts}
	for _, p := range slices.Backward(parts) {
		prompt = append(p.Tokens(), prompt...)
	}
	begun := time.Now()
	for n := 0; n <= minTexts || time.Since(begun) < d; n++ {
		var ends []text.Piece
		if ends, err = texts.generate(ctx, prompt, o); err != nil {
			break
		}
		if n == 0 {
			r.Prompt, r.Generated = len(prompt), ends[0].Stats.Generated
			continue
		}
		for _, end := range ends {
			prefill, first = append(prefill, end.Stats.Prefill), append(first, end.Stats.FirstToken)
			if after := end.Stats.Generated - 1; after > 0 {
				perToken = append(perToken, end.Stats.Decode/time.Duration(after))
			}
		}
	}
	if len(prefill) == 0 {
		return r, err
	}
	r.Prefill, r.First = stats.Of(prefill), stats.Of(first)
	r.PrefillRate = float64(r.Prompt) / r.Prefill.P50 * 1e3
	if len(perToken) > 0 {
		r.PerToken = stats.Of(perToken)
		r.DecodeRate = float64(len(texts)) * 1e3 / r.PerToken.P50
	}
	return r, err
}

func (r *textReport) print(b *benchCommand) {
	e := &r.Environment
	fmt.Fprintf(b.Out, "%s; %s, %s; load average %.2f\n", e.Version, cmp.Or(e.CPU, "–"), cli.Count(e.Processors, "processor", "processors"), e.LoadBefore)
	fmt.Fprintf(b.Out, "%s: %s, at most %s a call; medians\n", cli.Printable(r.Model), cli.Count(r.Context, "position", "positions"), cli.Count(r.Chunk, "token", "tokens"))
	switch {
	case len(r.Runs) == 0:
	case r.Runs[0].Bandwidth == 0:
		fmt.Fprintln(b.Out, "memory: its rate is not known, too little is left to measure it")
	default:
		fmt.Fprintf(b.Out, "memory: %.4g GB/s read by %s\n", r.Runs[0].Bandwidth/1e9, cli.Count(r.Runs[0].Threads, "thread", "threads"))
	}
	for _, m := range r.Media {
		fmt.Fprintf(b.Out, "%s: encoded in %s (%s), %s before each prompt\n", cli.Printable(m.File), duration.FormatMS(m.Encode.P50),
			cli.Count(m.Threads, "thread", "threads"), cli.Count(m.Tokens, "token", "tokens"))
	}
	fmt.Fprintf(b.Out, "%8s %8s %8s %14s %12s %14s %12s %10s %8s %6s %6s\n", "threads", "clients", "prompt", "prefill tok/s", "first", "decode tok/s",
		"per token",
		"MB/token", "GB/s", "share", "texts")
	for i := range r.Runs {
		run, share := &r.Runs[i], "–"
		if run.Bandwidth > 0 {
			share = fmt.Sprintf("%.0f%%", 100*run.Share)
		}
		fmt.Fprintf(b.Out, "%8d %8d %8d %14.4g %12s %14.4g %12s %10.4g %8.3g %6s %6d\n", run.Threads, run.Clients, run.Prompt, run.PrefillRate,
			duration.FormatMS(run.First.P50), run.DecodeRate, duration.FormatMS(run.PerToken.P50), float64(run.TokenBytes)/1e6, run.ReadRate/1e9,
			share, run.Prefill.N)
	}
}
