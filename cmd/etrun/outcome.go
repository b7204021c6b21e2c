package main

import (
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/duration"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// outcome writes the outputs of calls: to files, as entries for --json, or as text.
type outcome struct {
	*app
	dir, npz string           // from the command line, empty if not set
	targets  []*output.Target // of single outputs
	decoders []*output.Decoder
	drawing  string       // a file, empty for none
	drawn    *output.File // the first call's picture
	scores   output.Scores
	labels   string   // a file, empty for none
	symbols  []string // its lines, with the spaces that can be symbols of texts
	folder   *output.Folder
	archive  *output.Archive
	entries  [][]output.Entry // by call
	scored   bool             // an output had class scores
}

func (o *outcome) addTarget(text string) error {
	t, err := output.ParseTarget(text)
	o.targets = append(o.targets, t)
	return err
}

func (o *outcome) addDecoder(text string) error {
	d, err := output.ParseDecoder(text)
	o.decoders = append(o.decoders, d)
	return err
}

func (o *outcome) addFlags(flags *pflag.FlagSet) {
	flags.VarP(session.OnSet{Kind: "[N=]FILE", Act: o.addTarget}, "output", "o",
		"write output N, by default 0, as .npy, .json, .png, .wav or .bin; :npy etc. overrides the extension; may be repeated")
	flags.StringVar(&o.dir, "output-dir", "",
		"write out0.bin, out1.bin, … and outputs.json to `DIR`, those of further calls to DIR/call1, …")
	flags.StringVar(&o.npz, "output-npz", "", "write the outputs as NumPy arrays in logical order to `FILE`.npz")
	flags.Var(session.OnSet{Kind: "[N=]KIND", Act: o.addDecoder}, "decode", "read what output N, by default 0, means: as ctc (texts, with the symbols of --labels), spans, boxes or map; "+
		"may be repeated")
	flags.StringVar(&o.drawing, "draw", "", "draw the boxes of --decode on the picture, and write it to `FILE`.png")
	flags.IntVar(&o.scores.Top, "top-k", 0, "show the `K` largest elements of single-row outputs (default: 5 for logits)")
	flags.BoolVar(&o.scores.Softmax, "softmax", false, "show them as probabilities")
	flags.StringVar(&o.labels, "labels", "", "label them with the lines of `FILE`, one per class, or a JSON list")
}

// files returns all output paths, to find those that are standard output.
func (o *outcome) files() []string {
	paths := []string{o.npz, o.drawing}
	for _, t := range o.targets {
		paths = append(paths, t.Path)
	}
	return paths
}

// create creates temporary files for all outputs before anything runs, so that an
// unwritable path fails at once.
func (o *outcome) create(ctx context.Context) (err error) {
	for _, t := range o.targets {
		if err := t.Create(ctx); err != nil {
			return err
		}
	}
	if o.dir != "" {
		if o.folder, err = output.Open(ctx, o.dir); err != nil {
			return err
		}
	}
	if o.drawing != "" {
		if len(o.decoders) == 0 {
			return session.Usage("--draw draws what --decode finds; add --decode boxes or --decode map")
		}
		if o.drawn, err = output.CreateFile(ctx, o.drawing); err != nil {
			return err
		}
	}
	if o.npz != "" {
		o.archive, err = output.CreateArchive(ctx, o.npz)
	}
	return err
}

func (o *outcome) commit() error {
	for _, t := range o.targets {
		if err := t.Commit(); err != nil {
			return err
		}
	}
	if o.archive != nil {
		if err := o.archive.Commit(); err != nil {
			return err
		}
	}
	if o.drawn != nil {
		if err := o.drawn.Commit(); err != nil {
			return err
		}
	}
	if o.folder != nil {
		return o.folder.Commit()
	}
	return nil
}

// close removes uncommitted files.
func (o *outcome) close() {
	for _, t := range o.targets {
		t.Close()
	}
	if o.folder != nil {
		o.folder.Close()
	}
	if o.drawn != nil {
		o.drawn.Close()
	}
	if o.archive != nil {
		o.archive.Close()
	}
}

// keep copies the outputs of call k of a session while they are valid.
func (o *outcome) keep(ctx context.Context, s *session.Session, k int, st *session.Step) error {
	outputs, err := st.Outputs()
	if err != nil {
		return err
	}
	for _, t := range o.targets {
		if err := t.Add(k, outputs); err != nil {
			return err
		}
	}
	if o.archive != nil {
		if err := o.archive.Add(k, outputs); err != nil {
			return err
		}
	}
	o.scored = o.scored || len(o.decoders) > 0 || o.folder == nil && slices.ContainsFunc(outputs, o.scores.Shows)
	var entries []output.Entry
	switch {
	case o.folder != nil:
		entries, err = o.folder.Add(k, outputs)
	case o.JSON:
		entries, err = o.describe(outputs)
	default:
		fmt.Fprintf(o.Out, "%s%s  %s\n", s.CallName(k), cli.Printable(st.Name()), duration.Format(st.Took[0]))
		for i, v := range outputs {
			o.scores.Print(o.Out, i, v)
		}
	}
	if err == nil {
		err = o.decode(ctx, outputs, k, st, entries)
	}
	o.entries = append(o.entries, entries)
	return err
}

func (o *outcome) scene(st *session.Step) *output.Scene {
	return &output.Scene{Symbols: o.symbols, Labels: o.scores.Labels, Seconds: st.Seconds(), Place: st.Place()}
}

// decode shows what outputs mean, or adds it to their entries, and draws it on the picture of the first call.
func (o *outcome) decode(ctx context.Context, outputs []*tensor.Value, k int, st *session.Step, entries []output.Entry) (err error) {
	var m *image.NRGBA
	if o.drawn != nil && k == 0 {
		if m, err = st.Picture(ctx); err != nil {
			return err
		}
		if m == nil {
			return session.Usage("--draw is for calls with one picture among their inputs")
		}
	}
	for _, d := range o.decoders {
		found, err := d.Decode(outputs, o.scene(st))
		if err != nil {
			return err
		}
		if entries != nil {
			entries[d.Index].Decoded = found
		}
		if !o.JSON {
			d.Print(o.Out, found)
		}
		if m != nil {
			output.Draw(m, found)
		}
	}
	if m == nil {
		return nil
	}
	return png.Encode(o.drawn, m)
}

// warn reports flags without effect.
func (o *outcome) warn() {
	switch {
	case !o.scores.Asked() || o.scored:
	case o.folder != nil:
		o.Note("warning: --top-k, --softmax and --labels have no effect with --output-dir")
	default:
		o.Note("warning: --top-k, --softmax and --labels have no effect: no output is a single row of real numbers")
	}
}

// readLabels reads the names of classes.
func (o *outcome) readLabels(ctx context.Context) error {
	if o.labels == "" {
		return nil
	}
	const maxLabels = 16 << 20
	text, err := openfile.ReadFile(ctx, o.labels, openfile.Rules{Kinds: openfile.Pipes, Limit: maxLabels})
	if err != nil {
		return err
	}
	var list []string
	if err := json.Unmarshal(text, &list); err != nil {
		list = strings.Split(strings.TrimRight(string(text), "\r\n"), "\n")
	}
	for _, label := range list {
		o.symbols = append(o.symbols, strings.TrimRight(label, "\r"))
		o.scores.Labels = append(o.scores.Labels, cli.Printable(strings.TrimSpace(label)))
	}
	return nil
}

func (o *outcome) describe(outputs []*tensor.Value) ([]output.Entry, error) {
	entries := []output.Entry{}
	for i, v := range outputs {
		e, err := output.Describer{Summaries: true, Scores: o.scores}.Describe(i, v, "")
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}
