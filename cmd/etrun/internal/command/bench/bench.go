// Package bench is the command bench, which measures programs.
package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bench"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/hal/cpu"
)

// benchCommand measures one program, or compares several.
type benchCommand struct {
	*cli.App
	session.Options
	plan    bench.Plan
	calls   session.Calls
	vs      string
	threads []int
	format  string

	language languageBench
	audio    string // recording for a model of speech

	report *report
}

const benchHelp = `Measure a program: the stages of its load, the first run, and the steady state. Two
programs, or one with two sets of flags (--vs) or several thread counts, are
measured together, in blocks of ABBA. The ratio is the median over blocks, with a
99 % confidence interval that is bootstrapped over blocks. No measurement is
dropped; outliers are counted. An interrupt ends the measurement and prints the
figures so far.
`

// New returns the command.
func New(a *cli.App) *cobra.Command {
	b := &benchCommand{App: a, Options: session.Options{Say: a.NoteOnce(), Local: true}}
	c := &cobra.Command{
		Use:   "bench A.pte [B.pte]",
		Short: "Measure load, latency and memory; compare two programs",
		Long:  benchHelp,
		Example: "  etrun bench model.pte\n  etrun bench old.pte new.pte --duration 10s\n" +
			"  etrun bench model.pte --vs \"--xnnpack go\"\n  etrun bench model.pte --threads 1,2 --json\n" +
			"  etrun bench whisper/model.pte --audio talk.wav\n  etrun bench model.pte --format benchstat > before.txt",
		Args:              cli.OneOrTwo,
		ValidArgsFunction: cli.CompletePrograms,
		RunE:              func(c *cobra.Command, args []string) error { return b.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.DurationVar(&b.plan.Duration, "duration", 3*time.Second, "measure the steady state for `TIME` in total")
	flags.Float64Var(&b.plan.Rate, "rate", 0, "start `RUNS` per second (default: back to back)")
	flags.IntSliceVar(&b.threads, "threads", nil, "thread counts to measure, a `LIST` such as 1,2 (default: the available processors)")
	flags.StringVar(&b.vs, "vs", "", "also measure the last program with `FLAGS`, such as \"--xnnpack go\"")
	flags.StringVar(&b.format, "format", "table", "output `FORMAT`: table, json or benchstat")
	flags.BoolVar(&b.language.text, "text", false, "measure a language model: prefill and decode by the length of the prompt")
	flags.IntSliceVar(&b.language.lengths, "lengths", nil, "with --text: prompts of these lengths, a `LIST` such as 16,256")
	flags.IntVar(&b.language.decode, "decode", 16, "with --text: decode `N` tokens after the first one")
	flags.IntVar(&b.language.clients, "clients", 1, "with --text: generate `N` texts at the same time")
	b.language.PartFiles.AddFlags(flags, ", with --text: before each prompt; a recording without it is for a model of speech")
	flags.StringVar(&b.language.Tokenizer, "tokenizer", "",
		"with --audio: `FILE` with the tokenizer, or a folder with the files of the model (default: the folder of the program)")
	b.calls.AddFlags(flags)
	b.AddFlags(flags)
	return c
}

// check validates the flags before any program is opened.
func (b *benchCommand) check() error {
	if b.JSON {
		b.format = "json"
	}
	if b.format != "json" && b.format != "table" && b.format != "benchstat" {
		return session.Usage("--format %q, want one of table, json, benchstat", b.format)
	}
	b.JSON = b.format == "json"
	if b.plan.Duration <= 0 || b.plan.Duration > 24*time.Hour {
		return session.Usage("--duration %v, want more than 0 and at most a day", b.plan.Duration)
	}
	if sounds := b.language.Sounds(); !b.language.text && b.language.Any() {
		if len(sounds) != 1 || b.language.Pictures() {
			return session.Usage("--image and several --audio need --text; one recording is for a model of speech")
		}
		b.audio = sounds[0]
	}
	if !(b.plan.Rate >= 0 && b.plan.Rate <= 1e9) {
		return session.Usage("--rate %v, want 0 or more", b.plan.Rate)
	}
	if len(b.threads) == 0 {
		b.threads = []int{0}
	}
	if slices.Min(b.threads) < 0 || slices.Max(b.threads) > cpu.MaxThreads || len(b.threads) > 16 {
		return session.Usage("--threads %v, want at most 16 numbers, each 0 to %d", b.threads, cpu.MaxThreads)
	}
	return nil
}

// groups returns the arms that are measured together: all arms of one program without
// --vs, else a pair for each number of threads.
func (b *benchCommand) groups(paths []string) (groups [][]*arm, err error) {
	var vs []string
	if b.vs != "" {
		vs = strings.Fields(b.vs)
	}
	var alone []*arm
	for _, n := range b.threads {
		o := b.Options
		o.Threads = n
		a := &arm{Model: paths[0], options: &o}
		if len(paths) == 1 && b.vs == "" {
			alone = append(alone, a)
			continue
		}
		with, err := o.With(vs)
		if err != nil {
			return nil, session.Usage("--vs: %w", err)
		}
		groups = append(groups, []*arm{a, {Model: paths[len(paths)-1], Flags: b.vs, options: with}})
	}
	if alone != nil {
		groups = append(groups, alone)
	}
	for _, g := range groups {
		for i, a := range g {
			a.Name = string(rune('A' + i))
		}
	}
	return groups, nil
}

func (b *benchCommand) run(ctx context.Context, paths []string) error {
	if err := b.check(); err != nil {
		return err
	}
	if b.language.text {
		if err := b.language.check(b, paths); err != nil {
			return err
		}
		return b.measureText(ctx, paths[0])
	}
	if b.audio != "" {
		if len(paths) != 1 || b.vs != "" || len(b.calls) > 1 || len(b.calls[0].Inputs) > 0 || b.plan.Rate != 0 || b.format == "benchstat" {
			return session.Usage("--audio measures one program on a recording, without --vs, --input, --next, --rate or --format benchstat")
		}
		return b.measureSpeech(ctx, paths[0])
	}
	groups, err := b.groups(paths)
	if err != nil {
		return err
	}
	b.report = newBenchReport(b.Version, b.plan)
	for _, g := range groups {
		if err = b.measure(ctx, g); err != nil {
			break
		}
	}
	b.report.finish(err)
	if err != nil && (ctx.Err() == nil || !b.report.measured()) {
		return err
	}
	return errors.Join(err, b.write())
}

// measure opens the arms of a group, measures them and closes them.
func (b *benchCommand) measure(ctx context.Context, group []*arm) error {
	var arms []*bench.Arm
	for _, a := range group {
		if err := a.open(ctx, b.calls); err != nil {
			return err
		}
		defer a.close()
		b.report.Arms = append(b.report.Arms, a)
		arms = append(arms, &a.measured)
	}
	b.Progress.During(b.plan.Duration, "working")
	err := b.plan.Measure(ctx, arms)
	b.report.Process.GoHeap = max(b.report.Process.GoHeap, liveHeap())
	for i, a := range group {
		a.finish(ctx, b.plan)
		if i > 0 {
			b.report.compare(group[0], a)
		}
	}
	return err
}

// write writes the report in the selected format.
func (b *benchCommand) write() error {
	switch b.format {
	case "json":
		return b.WriteJSON(b.report)
	case "benchstat":
		return b.report.writeBenchstat(b.Out)
	}
	b.report.print(b.Out)
	return nil
}
