package main

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/internal/collect"
	"github.com/etrun-go/etrun/runtime/compile"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

const quantizeHelp = `Write a program with quantized layers, without the model's source, Python or PyTorch. The
program is lowered first, as by etrun lower --all; parts that an exporter lowered to XNNPACK
in floats are quantized, too.

Schemes:
  dq8     8-bit weights with a scale per channel. Inputs of layers are quantized
          at run time.
  8da4w   4-bit weights with a scale per group of input channels; inputs as with
          dq8. Tables of embeddings have 8 bits, which needs ExecuTorch's
          quantized kernels.
  q8      8-bit weights and values. The ranges of values are observed on the
          files of --calibrate, which should be like the application's inputs.
  w8      8-bit weights of linear layers alone.
  auto    Each layer has the fastest of q8, dq8, 8da4w and floats with which the
          outputs keep --budget, by default 30dB. Observers of ranges and the
          correction of biases are those with the least noise.

The files of --calibrate are inputs, each of one call: .npz archives for methods with several
inputs, else what --input reads. They may be in a folder. If the program has state, the files of
a folder are the calls of one sequence, in the order of their names, and so are a file and those
of --next behind it: ranges and errors are those of all calls, not of first ones. Other schemes
need no files, but use them to measure errors; without any, inputs are random.

The command prints the ten layers with the lowest ratio of signal to noise, each measured on
inputs of floats, and the ratio of the outputs. Layers are named METHOD:DELEGATE:NODE:TYPE.
`

// quantizeCommand writes programs with quantized layers.
type quantizeCommand struct {
	*app
	session.Options
	output    string
	scheme    string
	observer  string
	group     int
	calibrate []calibration
	recipe    string
	skip      []string
	all       bool
	budget    string
	method    string
	target    string
	verify    bool
	changed   func(flag string) bool
}

func newQuantize(a *app) *cobra.Command {
	q := &quantizeCommand{app: a, Options: session.Options{Say: a.NoteOnce(), Lower: string(etrun.LowerOff), Constants: true}}
	c := &cobra.Command{
		Use:   "quantize IN.pte -o OUT.pte",
		Short: "Write a program with quantized layers",
		Long:  quantizeHelp,
		Example: "  etrun quantize model.pte -o model_dq8.pte\n  etrun quantize model.pte -o model_q8.pte --scheme q8 --calibrate pictures \\\n" +
			"    --options resize=256,mean=imagenet,std=imagenet --budget 30dB\n  etrun quantize llm.pte -o llm_4bit.pte --scheme 8da4w --group 128",
		Args:              cli.OneTo(&q.output),
		ValidArgsFunction: cli.CompleteModel,
		RunE:              func(c *cobra.Command, args []string) error { return q.run(c.Context(), args[0]) },
	}
	flags := c.Flags()
	q.changed = flags.Changed
	flags.StringVarP(&q.output, "output", "o", "", "write the program to `FILE`, - for standard output")
	flags.StringVar(&q.scheme, "scheme", string(lowering.Dynamic8), "`SCHEME`: "+names(lowering.SchemeNames))
	flags.IntVar(&q.group, "group", 32, "with 8da4w and auto: `N` input channels that share a scale: 32, 64, 128 or 256")
	flags.StringVar(&q.observer, "observer", string(lowering.ObserveMSE), "with q8: `OBSERVER` of ranges: "+names(lowering.Observers))
	q.addCalibrate(flags)
	flags.StringVar(&q.recipe, "options", "", "options of each file `KEY=VALUE,…`, such as resize=256,mean=imagenet,std=imagenet")
	flags.Var(session.Texts(&q.skip), "skip", "leave layers as they are whose name matches `PATTERN`, "+
		"such as '*:Conv2d' or 'forward:0:3:*'; may be repeated")
	flags.BoolVar(&q.all, "all", false, "with dq8 and auto: quantize recurrent layers, and convolutions of one dimension or followed by a relu, too,"+
		" which lose more than others")
	flags.StringVar(&q.budget, "budget", "", "leave the layers with the most noise as they are, with auto also with another scheme, "+
		"until all outputs have this `RATIO` of signal to noise, such as 40dB")
	addTarget(flags, &q.target)
	flags.StringVar(&q.method, "method", "", "quantize only the method `NAME`; "+
		"with several methods, the one that runs to calibrate and to measure")
	flags.BoolVar(&q.verify, "verify", true, "run both programs and measure errors")
	flags.Uint64Var(&q.Seed, "seed", 0, "seed `N` for random inputs")
	q.AddFileFlags(flags)
	cli.Hide(flags, "strict-plan", "repair", "qparams", "mmap")
	return c
}

func names[T ~string](list []T) string {
	var all []string
	for _, x := range list {
		all = append(all, string(x))
	}
	return strings.Join(all, ", ")
}

// schemeFlags are the flags of one scheme.
var schemeFlags = []struct {
	name string
	of   []lowering.SchemeName
}{{"group", []lowering.SchemeName{lowering.Dynamic4, lowering.Auto}}, {"observer", []lowering.SchemeName{lowering.Static8}},
	{"all", []lowering.SchemeName{lowering.Dynamic8, lowering.Auto}}}

// calibrated are the schemes that observe the ranges of values.
var calibrated = []lowering.SchemeName{lowering.Static8, lowering.Auto}

// autoBudget is that of auto, if there is none in the command line.
const autoBudget = 30

// checked returns the scheme and the budget of the command line.
func (q *quantizeCommand) checked() (s lowering.Scheme, budget float64, err error) {
	s = lowering.Scheme{Name: lowering.SchemeName(q.scheme), All: q.all, Group: q.group, Observer: lowering.Observer(q.observer)}
	switch {
	case !slices.Contains(lowering.SchemeNames, s.Name):
		return s, 0, session.Usage("--scheme %.100q, want one of %s", q.scheme, names(lowering.SchemeNames))
	case !slices.Contains(lowering.Observers, s.Observer):
		return s, 0, session.Usage("--observer %.100q, want one of %s", q.observer, names(lowering.Observers))
	case !slices.Contains([]int{32, 64, 128, 256}, q.group):
		return s, 0, session.Usage("--group %d, want 32, 64, 128 or 256", q.group)
	case slices.Contains(calibrated, s.Name) && len(q.calibrate) == 0:
		return s, 0, session.Usage("--scheme %s needs inputs like those of the application: --calibrate FOLDER or FILE; dq8 needs none", s.Name)
	case s.Name == lowering.Auto && !q.verify:
		return s, 0, session.Usage("--scheme auto needs runs of both programs: not with --verify=false")
	case s.Name != lowering.Static8 && len(q.calibrate) > 0 && !q.verify:
		return s, 0, session.Usage("--calibrate with --scheme %s is only to measure errors: not with --verify=false", s.Name)
	case q.changed("options") && len(q.calibrate) == 0:
		return s, 0, session.Usage("--options is for the files of --calibrate, and there are none")
	}
	for _, f := range schemeFlags {
		if q.changed(f.name) && !slices.Contains(f.of, s.Name) {
			return s, 0, session.Usage("--%s is for --scheme %s, not for %s", f.name, strings.ReplaceAll(names(f.of), ", ", " and "), s.Name)
		}
	}
	for _, p := range q.skip {
		if _, err := path.Match(p, ""); err != nil {
			return s, 0, session.Usage("--skip %.100q: %v", p, err)
		}
	}
	if s.Name == lowering.Auto {
		budget = autoBudget
	}
	if q.budget != "" {
		number := strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(q.budget, "dB"), "db"))
		if budget, err = strconv.ParseFloat(number, 64); err != nil || !(budget > 0) || budget > 200 {
			return s, 0, session.Usage("--budget %.100q, want decibels up to 200, such as 40dB", q.budget)
		}
		if !q.verify {
			return s, 0, session.Usage("--budget needs runs of both programs: not with --verify=false")
		}
	}
	return s, budget, nil
}

func (q *quantizeCommand) run(ctx context.Context, from string) error {
	scheme, budget, err := q.checked()
	if err != nil {
		return err
	}
	by, err := writerFor(q.target)
	if err != nil {
		return err
	}
	if err := q.LeaveStdout(q.output); err != nil {
		return err
	}
	samples, err := q.samples(ctx)
	if err != nil {
		return err
	}
	name := input.Stdin(from)
	defer collect.Often(append(q.DataFiles(), name)...)()
	size, file, changes, err := q.readRepaired(ctx, name, q.output, q.Options, q.method != "")
	defer file.close()
	if err != nil {
		return err
	}
	inner, wrap, err := unbundled(file.data())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	program := file
	if len(inner) < len(file.data()) { // of a bundle
		if program, err = store(q.output, tree.Pieces{inner}); err != nil {
			return err
		}
		defer program.close()
	}
	w := &quantizing{quantizeCommand: q, by: by, name: name, samples: samples, scheme: scheme, budget: budget, warn: input.CutOnce(q.Say)}
	result, err := w.quantize(ctx, program)
	if err != nil {
		return err
	}
	defer result.close()
	data := wrap(tree.Pieces{result.data()})
	if err := output.WriteAll(ctx, output.Content{Path: q.output, From: data}); err != nil {
		return err
	}
	w.report.Model, w.report.Output, w.report.Bytes, w.report.OutputBytes = from, q.output, size, data.Size()
	w.report.Repairs = changes
	w.warnOfNoise()
	if q.JSON {
		return q.WriteJSON(&w.report)
	}
	w.report.print(q.app)
	return nil
}

// unbundled returns the program of a file, and a function that returns the file with another program.
func unbundled(file []byte) (program []byte, wrap func(tree.Pieces) tree.Pieces, err error) {
	if pte.Sniff(file) != pte.FormatBPTE {
		return file, func(p tree.Pieces) tree.Pieces { return p }, nil
	}
	bundle, err := tree.Decode(file)
	if err != nil {
		return nil, nil, err
	}
	if len(bundle.Unknown) > 0 {
		return nil, nil, fmt.Errorf("the bundle has a field that this version does not know: %s: %w", bundle.Unknown[0], compile.ErrUnsupported)
	}
	program, _ = bundle.Root.Fields["program"].([]byte)
	return program, func(p tree.Pieces) tree.Pieces {
		bundle.Root.With("program", p.Bytes())
		return bundle.Pieces()
	}, nil
}

// lower writes the program with all parts lowered that XNNPACK runs, in floats.
func (w *quantizing) lower(ctx context.Context, s *session.Session, program *stored) error {
	o := compile.Options{Backends: w.backends(), Writers: []lowering.Writer{w.by}, Operators: etrun.DefaultOperators(),
		Named: s.Named, FileBytes: s.FileBytes(), Methods: w.methods(), All: true, Planned: math.MaxInt64}
	if limit := w.MaxMemory(); limit > 0 {
		o.Planned = limit
	}
	low, err := compile.Lower(ctx, program.data(), o)
	if err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	w.report.NotLowered = notLowered(low)
	if err := loads(ctx, s, low); err != nil {
		return err
	}
	if w.float, err = store(w.output, low.Data); err == nil {
		program.release()
	}
	return err
}
