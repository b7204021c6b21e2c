package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/layers"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/internal/duration"
	"github.com/spf13/cobra"
)

// runCommand is etrun MODEL: it runs calls and writes their outputs.
type runCommand struct {
	outcome
	session.Options
	profileFlags
	layers.Intermediates
	calls  session.Calls
	feed   []session.Fed
	repeat int
	lines  bool // inputs are lines of standard input
	reset  bool // between lines
}

const runExamples = `  etrun model.pte                               random inputs, output summary
  etrun model.pte -i x.bin --output-dir out     raw elements in and out
  etrun model.pte -i x.npy -i int:5             a NumPy array and a number
  etrun model.pte -i x.bin:float32:1x3x64x64    sizes of a dynamic input
  etrun model.pte -i cat.png:resize=256,mean=imagenet,std=imagenet \
    --labels classes.txt --softmax --top-k 3
  etrun model.pte -i speech.wav:resample=16000 -o y.json -o 1=y.png
  etrun kv.pte -i a.bin --next -i b.bin         two calls; state persists
  etrun vad.pte -i speech.wav:frame=576,hop=512,pad=64 --feed 1=1 --decode spans
  etrun ocr.pte -i line.png --decode ctc --labels symbols.txt
  etrun model.pte --jsonl < lines.jsonl         many inputs, a line each
  etrun model.pte --profile --trace trace.json  time by operator`

const runHelp = `Run an ExecuTorch program: a .pte file, or the program in a .bpte file.

Inputs are assigned in the order of the method, or by index or name (0=x.bin):
  x.bin                   raw little-endian elements in the memory order of
                          the model; x.bin:float32:1x3x64x64 sets type and
                          sizes ("scalar" for rank 0), required if more
                          than one size varies
  x.npy, x.npz            NumPy arrays; those of an archive by name or in order
  x.safetensors           tensors, likewise
  x.json json:[[1,2]]     lists of numbers, or an object of them by input
  x.png, x.jpg            an image, with :resize=256,crop=224,mean=…,std=…,
                          layout=nchw or nhwc or auto; turned upright by its
                          EXIF orientation, unless orientation=stored;
                          without a size: the nearest that the model accepts
  x.wav                   a recording, with :rate=16000 (reject others) or
                          resample=16000,channel=mix,length=fit; with
                          frame=512,hop=512 a run for each part, whose outputs
                          are those of all, along a new first dimension
  int:5 float:0.5 bool:true str:text none
  zeros ones rand         each also with :sizes or :dtype:sizes
The format is detected by content, then by extension. - is standard input.

With --jsonl each line of standard input is a run: a JSON text as after --input
("x.npy"), a list of them, or what json: accepts. The program is loaded once,
and its state goes on from line to line, unless --reset is set.
`

// newRun returns the command that runs a program; the root command is one, too.
func newRun(a *app) *cobra.Command {
	r := &runCommand{outcome: outcome{app: a}, Options: session.Options{Say: a.Note, Local: true}}
	c := &cobra.Command{
		Use:               "run MODEL.pte",
		Short:             "Run a program; same as etrun MODEL.pte",
		Long:              runHelp + "\nExit codes:\n" + exitHelp(),
		Example:           runExamples,
		Args:              cli.OneModel,
		ValidArgsFunction: cli.CompleteModel,
		RunE:              func(c *cobra.Command, args []string) error { return r.run(c.Context(), args[0]) },
	}
	flags := c.Flags()
	r.calls.AddFlags(flags)
	r.Options.AddFlags(flags)
	flags.Var(session.OnSet{Kind: "OUT=IN", Act: func(text string) error { return session.AddFeed(&r.feed, text) }}, "feed", "output OUT is input IN of the next frame or call; the input begins with zeros if it is not set; may be repeated")
	flags.StringVar(&r.ELF, "fvp-elf", "", "run the whole program on Arm's model, with the executor_runner `ELF` built for its board")
	r.outcome.addFlags(flags)
	flags.IntVarP(&r.repeat, "repeat", "n", 1, "run the calls `N` times, each from the initial state, and report latency")
	flags.BoolVar(&r.lines, "jsonl", false,
		"run once for each line of standard input, a JSON value with the inputs, and write a line of JSON for each")
	flags.BoolVar(&r.reset, "reset", false, "with --jsonl, run each line from the initial state")
	flags.BoolVar(&r.table, "profile", false, "print the time of each operator, and of each node inside delegates, to stderr")
	r.addFiles(flags)
	r.Intermediates.AddFlags(flags)
	return c
}

// maxRepeat bounds the memory of the times: 8 bytes for each run of each call.
const maxRepeat = 10_000_000

func checkRepeat(n int) error {
	if n < 1 || n > maxRepeat {
		return session.Usage("--repeat %d, want 1 to %d", n, maxRepeat)
	}
	return nil
}

func (r *runCommand) run(ctx context.Context, path string) error {
	if err := checkRepeat(r.repeat); err != nil {
		return err
	}
	if r.lines {
		return r.runLines(ctx, path)
	}
	if r.reset {
		return session.Usage("--reset is for the lines of --jsonl; calls after --next continue with the state, and each --repeat begins again")
	}
	if r.repeat > 1 && r.Dump != "" {
		return session.Usage("--repeat %d with --dump-intermediates, which records one run", r.repeat)
	}
	if r.ELF != "" && (r.profileFlags.wanted() || r.Intermediates.Wanted()) {
		return session.Usage("--fvp-elf with a profile or intermediate values: the program on the model cannot be observed")
	}
	if err := r.LeaveStdout(append(append(r.paths[:], r.outcome.files()...), r.Dump)...); err != nil {
		return err
	}
	if r.scores.Top < 0 {
		return session.Usage("--top-k %d", r.scores.Top)
	}
	if err := r.readLabels(ctx); err != nil {
		return err
	}
	r.Progress.Say("loading %s", cli.Printable(path))
	if err := r.showValues(&r.Options); err != nil {
		return err
	}
	ctx, w, err := r.Begin(ctx, &r.Options, r.Dump)
	if err != nil {
		return err
	}
	defer w.Close()
	s, err := session.Open(ctx, path, &r.Options, append(w.Observers, r.profileFlags.options()...)...)
	if err != nil {
		return err
	}
	defer s.Close()
	s.Fed = r.feed
	if err := s.Prepare(ctx, r.calls); err != nil {
		return err
	}
	return w.End(r.rounds(ctx, s))
}

// rounds runs the calls as often as requested, and keeps the outputs of the first round.
func (r *runCommand) rounds(ctx context.Context, s *session.Session) error {
	r.Progress.Say("first run of %d", r.repeat)
	defer r.outcome.close()
	defer r.profileFlags.close()
	if err := r.outcome.create(ctx); err != nil {
		return err
	}
	if err := r.profileFlags.create(ctx); err != nil {
		return err
	}
	if err := s.Once(ctx, func(k int, st *session.Step) error {
		r.sayDistances(st.Callee)
		return r.keep(ctx, s, k, st)
	}); err != nil {
		return errors.Join(err, r.profileSoFar(err))
	}
	r.outcome.warn()
	r.firstRunEnded()
	if done, err := r.repeatCalls(ctx, s); err != nil {
		return r.interrupted(s, done, err)
	}
	if err := r.commit(); err != nil {
		return err
	}
	if err := r.profileFlags.write(r.app); err != nil {
		return err
	}
	return r.report(s)
}

// repeatCalls runs the calls for all rounds after the first. It returns the number of complete
// rounds, including the first.
func (r *runCommand) repeatCalls(ctx context.Context, s *session.Session) (done int, err error) {
	for done = 1; done < r.repeat; done++ {
		r.Progress.Say("run %d of %d", done+1, r.repeat)
		if err := s.Once(ctx, nil); err != nil {
			return done, err
		}
	}
	return done, nil
}

// interrupted reports the latency of the complete rounds if an interrupt or the time limit
// ended the run. No outputs are written. It returns err.
func (r *runCommand) interrupted(s *session.Session, done int, err error) error {
	if !cli.Cancelled(err) {
		return err
	}
	for _, st := range s.Steps {
		st.Took = st.Took[:done]
	}
	report := newRunReport(s, &r.outcome, r.Seed)
	report.Interrupted, report.OutputDir = true, ""
	for k := range report.Calls {
		report.Calls[k].Outputs = []output.Entry{}
	}
	return errors.Join(err, r.profileSoFar(err), r.print(s, report))
}

// profileSoFar prints and writes the profiles after a run that an interrupt or the time limit ended.
func (r *runCommand) profileSoFar(err error) error {
	if !cli.Cancelled(err) {
		return nil
	}
	return r.profileFlags.write(r.app)
}

// runReport is the JSON object of a run.
type runReport struct {
	Schema      string       `json:"schema"`
	Model       string       `json:"model"`
	Seed        uint64       `json:"seed"`
	Threads     int          `json:"threads"`
	Repeat      int          `json:"repeat"`
	LoadMS      float64      `json:"load_ms"`
	OutputDir   string       `json:"output_dir,omitempty"` // of --output-dir; files of outputs are relative to it
	Calls       []callReport `json:"calls"`
	Interrupted bool         `json:"interrupted,omitempty"` // by a signal or the time limit; only complete runs count, and no outputs were written
}

// callReport is the report of one call. The latency is that of the runs after the first,
// if there are any.
type callReport struct {
	Method  string         `json:"method"`
	FirstMS float64        `json:"first_run_ms"`
	Latency stats.Summary  `json:"latency_ms"`
	Outputs []output.Entry `json:"outputs"`
}

func newRunReport(s *session.Session, o *outcome, seed uint64) *runReport {
	report := &runReport{"etrun.run/1", s.Path, seed, s.Threads(), len(s.Steps[0].Took), stats.MS(s.Loaded), o.dir, nil, false}
	for k, st := range s.Steps {
		later := st.Took[min(1, len(st.Took)-1):]
		report.Calls = append(report.Calls, callReport{st.Name(), stats.MS(st.Took[0]), stats.Of(later), o.entries[k]})
	}
	return report
}

// report prints the times; without --json only those of repeated runs.
func (r *runCommand) report(s *session.Session) error {
	report := newRunReport(s, &r.outcome, r.Seed)
	if r.repeat == 1 && !r.JSON {
		return nil
	}
	return r.print(s, report)
}

func (r *runCommand) print(s *session.Session, report *runReport) error {
	if r.JSON {
		return r.WriteJSON(report)
	}
	fmt.Fprintf(r.Out, "load %v, %s on %s\n", duration.Format(s.Loaded), cli.Count(report.Repeat, "run", "runs"),
		cli.Count(s.Threads(), "thread", "threads"))
	ms := duration.FormatMS
	for k, c := range report.Calls {
		fmt.Fprintf(r.Out, "%s%s  first %s, then min %-7s  p50 %-7s  p90 %-7s  max %s\n", s.CallName(k), cli.Printable(c.Method),
			ms(c.FirstMS), ms(c.Latency.Min), ms(c.Latency.P50), ms(c.Latency.P90), ms(c.Latency.Max))
	}
	return nil
}

// sayDistances reports how far lowering moved the outputs of a call, with --lower=verify.
func (a *app) sayDistances(c session.Callee) {
	m, ok := c.(*etrun.Method)
	if !ok {
		return
	}
	for _, d := range m.Report().Distances {
		if d.Index < 0 && d.Absolute == 0 {
			a.Note("lowering: output %d is identical", d.Output)
			continue
		}
		a.Note("lowering: output %d differs by at most %.3g, relative %.3g (index %d)", d.Output, d.Absolute, d.Relative, d.Index)
	}
}

// exitHelp formats the table of exit codes for --help.
func exitHelp() string {
	var b strings.Builder
	for code := range exits { // they are numbered without gaps
		i := slices.IndexFunc(exits, func(e exit) bool { return e.code == code })
		fmt.Fprintf(&b, "  %d  %s\n", code, exits[i].help)
	}
	return b.String()
}
