package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/evaluate"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/internal/duration"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// evalCommand runs a classifier on labelled samples.
type evalCommand struct {
	*app
	session.Options
	method, labels, recipe string
	classes                outcome // of --classes
	scores                 int     // index of the output

	later func(format string, args ...any) // receives notes of samples after the first
}

const evalHelp = `Run a classifier on labelled files, and count how often the class has the highest score
(top-1), or one of the five highest (top-5), with the accuracy of each class, the most
frequent confusions and the time.

The files are in a folder per class, FOLDER/CLASS/FILE, or listed in the rows "file,label"
of a CSV file (--labels), relative to FOLDER: pictures, .npy, .wav or raw elements. Labels
are the numbers or the names of classes. The names are in the order of the scores: the
lines of --classes; without it numbers stand for themselves, and names are in alphabetical
order. --options apply to each file, as after its name in --input.

With --decode ctc the labels are texts, the classes their symbols, and the result is the
character error rate. With --decode boxes or map FOLDER has pictures, and FILE.txt beside
each has the boxes of its objects as YOLO writes them, lines CLASS X Y WIDTH HEIGHT in
shares of the picture; the result is the average precision where half of the union of two
boxes is common.

Several models, such as one of floats and its quantized form, are compared in a table.
`

func newEval(a *app) *cobra.Command {
	e := &evalCommand{app: a, Options: session.Options{Say: a.NoteOnce(), Local: true}, classes: outcome{app: a}}
	c := &cobra.Command{
		Use:   "eval MODEL.pte... FOLDER",
		Short: "Measure the accuracy of a classifier on labelled files",
		Long:  evalHelp,
		Example: "  etrun eval testdata/digits/xnnpack.pte testdata/digits/samples\n" +
			"  etrun eval model.pte val --labels val.csv --classes names.txt \\\n" +
			"    --options resize=256,mean=imagenet,std=imagenet\n" +
			"  etrun eval model.pte model_q8.pte val\n" +
			"  etrun eval ocr.pte lines --labels texts.csv --decode ctc --classes symbols.txt\n" +
			"  etrun eval model.pte val --json | jq '.classes[] | select(.top1 < .samples)'",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return session.Usage("%s, want MODEL.pte... FOLDER; see %s --help", cli.Count(len(args), "argument", "arguments"), c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return e.run(c.Context(), args[:len(args)-1], args[len(args)-1])
		},
	}
	flags := c.Flags()
	flags.StringVar(&e.method, "method", "", `method to run (default "forward")`)
	flags.StringVar(&e.labels, "labels", "", "labels of the files in `FILE`.csv, with the columns file and label")
	flags.StringVar(&e.classes.labels, "classes", "", "names of the classes in the lines of `FILE`, or a JSON list")
	flags.StringVar(&e.recipe, "options", "", "options of each file `KEY=VALUE,…`, such as resize=256,mean=imagenet,std=imagenet")
	flags.Var(session.OnSet{Kind: "[N=]KIND", Act: e.classes.addDecoder}, "decode", "labels are texts, which output N, by default 0, has as ctc, or boxes, which it has as boxes or map")
	flags.IntVar(&e.scores, "scores", 0, "output `N` has the scores")
	e.AddFlags(flags)
	return c
}

func (e *evalCommand) run(ctx context.Context, paths []string, folder string) error {
	if len(e.classes.decoders) > 1 {
		return session.Usage("--decode twice, want one")
	}
	measure, err := e.measure(ctx, folder)
	if err != nil {
		return err
	}
	var list []evaluated
	for _, path := range paths {
		var r evaluated
		if r, err = e.model(ctx, path, measure); r != nil {
			list = append(list, r)
		}
		if err != nil {
			break
		}
	}
	if err != nil && !cli.Cancelled(err) || len(list) == 0 {
		return err
	}
	return errors.Join(err, e.report(list))
}

// evaluated is the report of a model.
type evaluated interface {
	print(e *evalCommand) error
	table() (titles, row string) // of several models: columns behind tabs
}

// evaluation returns the report of a model. With an error it is that of a part of the samples, or nil.
type evaluation func(ctx context.Context, s *session.Session) (evaluated, error)

// measure returns what is measured on the samples of a folder.
func (e *evalCommand) measure(ctx context.Context, folder string) (evaluation, error) {
	boxes := len(e.classes.decoders) > 0 && e.classes.decoders[0].HasBoxes()
	var samples []evaluate.Sample
	var pictures []evaluate.Pictured
	var err error
	switch {
	case boxes && e.labels != "":
		return nil, session.Usage("--labels with boxes, which are in FILE.txt beside each picture")
	case boxes:
		pictures, err = evaluate.Pictures(ctx, folder)
	default:
		samples, err = e.samples(ctx, folder)
	}
	if err == nil {
		err = e.classes.readLabels(ctx)
	}
	switch {
	case err != nil:
		return nil, err
	case boxes:
		return func(ctx context.Context, s *session.Session) (evaluated, error) { return e.boxes(ctx, s, pictures) }, nil
	case len(e.classes.decoders) > 0:
		return func(ctx context.Context, s *session.Session) (evaluated, error) { return e.texts(ctx, s, samples) }, nil
	}
	names, err := evaluate.Classes(samples, e.classes.scores.Labels)
	return func(ctx context.Context, s *session.Session) (evaluated, error) { return e.all(ctx, s, samples, names) }, err
}

// model measures a model.
func (e *evalCommand) model(ctx context.Context, path string, measure evaluation) (evaluated, error) {
	s, err := session.Open(ctx, path, &e.Options)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.PrepareToFeed(ctx, e.method); err != nil {
		return nil, err
	}
	e.later = input.CutOnce(e.Say)
	return measure(ctx, s)
}

func (e *evalCommand) samples(ctx context.Context, folder string) ([]evaluate.Sample, error) {
	if e.labels != "" {
		return evaluate.Table(ctx, e.labels, folder)
	}
	return evaluate.Folder(ctx, folder)
}

// each runs samples, each from the initial state: n of them, which run names. The head is nil if no sample was run, or one failed.
func (e *evalCommand) each(s *session.Session, schema string, n int, run func(i int) (path string, err error)) (h *evalHead, err error) {
	h = &evalHead{Schema: schema, Model: s.Path, Threads: s.Threads()}
	begun := time.Now()
	for ; h.Samples < n; h.Samples++ {
		e.Progress.Say("file %d of %d", h.Samples+1, n)
		var path string
		if path, err = run(h.Samples); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
			break
		}
	}
	if h.Interrupted = err != nil; h.Interrupted && (!cli.Cancelled(err) || h.Samples == 0) {
		return nil, err
	}
	h.TotalMS, h.Latency = stats.MS(time.Since(begun)), stats.Of(s.Steps[0].Took)
	return h, err
}

// all counts the samples whose class has the highest scores.
func (e *evalCommand) all(ctx context.Context, s *session.Session, samples []evaluate.Sample, names []string) (evaluated, error) {
	t := evaluate.NewTally(len(names))
	h, err := e.each(s, "etrun.eval/1", len(samples), func(i int) (string, error) {
		return samples[i].Path, e.sample(ctx, s, i, &samples[i], t)
	})
	if h == nil {
		return nil, err
	}
	return newEvalReport(h, t, names), err
}

func (e *evalCommand) sample(ctx context.Context, s *session.Session, i int, of *evaluate.Sample, t *evaluate.Tally) error {
	return e.file(ctx, s, i, of.Path, func(st *session.Step) error {
		scores, err := e.scoresOf(st)
		switch {
		case err != nil:
			return err
		case of.Class >= len(scores):
			return fmt.Errorf("%w: label %.100q is class %d, output %d has %d scores", evaluate.ErrSamples, of.Label, of.Class, e.scores, len(scores))
		}
		t.Add(of.Class, scores)
		return nil
	})
}

// file runs the method on the file of sample i, and calls f.
func (e *evalCommand) file(ctx context.Context, s *session.Session, i int, path string, f func(st *session.Step) error) error {
	spec, err := input.ParseFile(path, e.recipe)
	if err != nil {
		return err
	}
	if err := s.Feed(ctx, []input.Spec{spec}, e.say(i)); err != nil {
		return err
	}
	return s.Once(ctx, func(_ int, st *session.Step) error { return f(st) })
}

// say returns the notes of a sample: only the first one explains how files are read, and one warns of what is cut off.
func (e *evalCommand) say(sample int) func(string, ...any) {
	if sample == 0 {
		return e.Say
	}
	return e.later
}

// scoresOf returns the elements of the output with the scores.
func (e *evalCommand) scoresOf(st *session.Step) ([]float64, error) {
	outputs, err := st.Outputs()
	if err != nil {
		return nil, err
	}
	if e.scores < 0 || e.scores >= len(outputs) {
		return nil, session.Usage("--scores %d, the method has %s", e.scores, cli.Count(len(outputs), "output", "outputs"))
	}
	v := outputs[e.scores]
	if v.Kind != tensor.KindTensor || tensor.Loader[float64](v.Tensor.DType) == nil || v.Tensor.Numel() == 0 {
		return nil, session.Usage("output %d is %s, want a tensor of scores; choose another one with --scores", e.scores, typeOf(v))
	}
	if rows := v.Tensor.Sizes; len(rows) > 0 && v.Tensor.Numel() != largest(rows) {
		return nil, session.Usage("output %d is %s, want one row of scores; choose another one with --scores", e.scores, typeOf(v))
	}
	scores := make([]float64, v.Tensor.Numel())
	tensor.Loader[float64](v.Tensor.DType)(scores, v.Tensor.Logical())
	return scores, nil
}

func typeOf(v *tensor.Value) string {
	if v.Kind == tensor.KindTensor {
		return v.Tensor.String()
	}
	return v.Kind.String()
}

func largest(sizes []int) (most int) {
	for _, n := range sizes {
		most = max(most, n)
	}
	return most
}

// evalHead is what all reports of eval have.
type evalHead struct {
	Schema      string        `json:"schema"`
	Model       string        `json:"model"`
	Threads     int           `json:"threads"`
	Samples     int           `json:"samples"`
	TotalMS     float64       `json:"total_ms"`
	Latency     stats.Summary `json:"latency_ms"`            // of runs, without reading the files
	Interrupted bool          `json:"interrupted,omitempty"` // by a signal or the time limit; the rest was not run
}

// evalReport is the JSON object of eval.
type evalReport struct {
	evalHead
	Top1       int             `json:"top1"`       // samples whose class has the highest score
	Top5       int             `json:"top5"`       // samples whose class has one of the five highest scores
	Invalid    int             `json:"invalid"`    // samples with a score that is NaN; they count as wrong
	Classes    []evalClass     `json:"classes"`    // those with samples, or with the highest score of any
	Confusions []evalConfusion `json:"confusions"` // wrong results by class, the most frequent first
	// Matrix has a row for each class and a column for each class with the highest score; absent for more than 100 classes.
	Matrix [][]int `json:"matrix,omitempty"`
}

type evalClass struct {
	Class     int    `json:"class"`
	Name      string `json:"name"`
	Samples   int    `json:"samples"`
	Top1      int    `json:"top1"`
	Top5      int    `json:"top5"`
	Predicted int    `json:"predicted"` // samples of all classes with the highest score for this one
}

type evalConfusion struct {
	Class     int    `json:"class"`
	Name      string `json:"name"`
	Predicted int    `json:"predicted"`
	As        string `json:"as"` // name of the predicted class, its number if it has none
	Samples   int    `json:"samples"`
}

// maxMatrix is the maximum number of classes of a matrix in the report.
const maxMatrix = 100

func newEvalReport(h *evalHead, t *evaluate.Tally, names []string) *evalReport {
	r := &evalReport{evalHead: *h, Top1: t.Top1, Top5: t.Top5, Invalid: t.Invalid, Classes: []evalClass{}, Confusions: []evalConfusion{}}
	for i, c := range t.Classes {
		if c.Samples > 0 || c.Predicted > 0 {
			r.Classes = append(r.Classes, evalClass{i, names[i], c.Samples, c.Top1, c.Top5, c.Predicted})
		}
	}
	for _, c := range t.Confusions() {
		as := fmt.Sprint(c.Predicted)
		if c.Predicted < len(names) {
			as = names[c.Predicted]
		}
		r.Confusions = append(r.Confusions, evalConfusion{c.Class, names[c.Class], c.Predicted, as, c.Samples})
	}
	if len(names) <= maxMatrix {
		r.Matrix = t.Matrix(len(names))
	}
	return r
}

// evalsReport is the JSON object of eval for several models.
type evalsReport struct {
	Schema string      `json:"schema"`
	Models []evaluated `json:"models"` // as for one model
}

// report prints a report, or a table of several.
func (e *evalCommand) report(list []evaluated) error {
	switch {
	case e.JSON && len(list) == 1:
		return e.WriteJSON(list[0])
	case e.JSON:
		return e.WriteJSON(&evalsReport{"etrun.eval.models/1", list})
	case len(list) == 1:
		return list[0].print(e)
	}
	t := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	for i, r := range list {
		titles, row := r.table()
		if i == 0 {
			fmt.Fprintln(t, titles)
		}
		fmt.Fprintln(t, row)
	}
	return t.Flush()
}

// tableRow is a row of a table: the model, a run, and others.
func tableRow(model string, latency stats.Summary, columns ...any) string {
	row := cli.Printable(model) + "\t" + duration.FormatMS(latency.P50)
	for _, c := range columns {
		row += fmt.Sprint("\t", c)
	}
	return row
}

func (r *evalReport) table() (titles, row string) {
	return "model\ta run\tsamples\ttop-1\ttop-5", tableRow(r.Model, r.Latency, r.Samples, share(r.Top1, r.Samples), share(r.Top5, r.Samples))
}

func (r *evalReport) print(e *evalCommand) error {
	fmt.Fprintf(e.Out, "%s: top-1 %s, top-5 %s; a run %s (median), all %s on %s\n", cli.Count(r.Samples, "sample", "samples"),
		share(r.Top1, r.Samples), share(r.Top5, r.Samples), duration.FormatMS(r.Latency.P50), duration.FormatMS(r.TotalMS),
		cli.Count(r.Threads, "thread", "threads"))
	if r.Invalid > 0 {
		fmt.Fprintf(e.Out, "%s: NaN\n", cli.Count(r.Invalid, "sample has a score that is no number", "samples have scores that are no numbers"))
	}
	t := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "class\tsamples\ttop-1\ttop-5\tpredicted")
	for _, c := range r.Classes {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%d\n", cli.Printable(c.Name), c.Samples, share(c.Top1, c.Samples), share(c.Top5, c.Samples), c.Predicted)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return e.printConfusions(r)
}

// maxConfusions is the number of confusions that are printed.
const maxConfusions = 10

func (e *evalCommand) printConfusions(r *evalReport) error {
	if len(r.Confusions) > 0 {
		fmt.Fprintln(e.Out, "confusions")
	}
	for i, c := range r.Confusions {
		if i == maxConfusions {
			fmt.Fprintf(e.Out, "  … %d more, see --json\n", len(r.Confusions)-i)
			break
		}
		fmt.Fprintf(e.Out, "  %s as %s: %d\n", cli.Printable(c.Name), cli.Printable(c.As), c.Samples)
	}
	return nil
}

// share formats a part of a number in percent.
func share(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}
