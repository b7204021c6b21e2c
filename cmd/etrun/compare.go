package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/diff"
	"github.com/etrun-go/etrun/cmd/etrun/internal/layers"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// compareCommand runs the same calls twice, or once beside kept outputs, and measures how
// far the outputs are apart.
type compareCommand struct {
	*app
	session.Options
	intermediates
	calls       session.Calls
	vs, against string
	layer       bool
	tolerance   kernels.Tolerance
}

const compareHelp = `Run the same calls on two programs, or on one with two sets of flags (--vs), or on one
whose outputs are to be those of an archive (--against), and measure how far the
outputs of the second are from those of the first, or from the archive's. Floats pass
where |got-want| <= atol + rtol*|want|, everything else where it is equal. The exit
code is 6 where an output does not pass.

With --layer, so is what every instruction writes, and what nodes inside delegates
write where the engine or device shows it: the first value that does not pass is
named, and the first that is not equal. Programs are not rewritten then, unless
--lower says so. The archive may have the values of instructions, as
--dump-intermediates names them, and --against may name a folder of .npy files.
`

func newCompare(a *app) *cobra.Command {
	p := &compareCommand{app: a, Options: session.Options{Say: a.noteOnce()}}
	c := &cobra.Command{
		Use:   "compare A.pte [B.pte]",
		Short: "Compare the outputs of two programs, engines or plans",
		Long:  compareHelp,
		Example: "  etrun compare portable.pte xnnpack.pte\n  etrun compare model.pte --vs \"--xnnpack reference\"\n" +
			"  etrun compare model.pte --vs \"--plan naive\" --atol 0 --rtol 0\n  etrun compare model.pte -i x.npy --against eager.npz\n" +
			"  etrun compare good.pte bad.pte --layer",
		Args:              oneOrTwo,
		ValidArgsFunction: completePrograms,
		RunE:              func(c *cobra.Command, args []string) error { return p.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&p.vs, "vs", "", "run the last program with further `FLAGS`, such as \"--xnnpack reference\"")
	flags.StringVar(&p.against, "against", "",
		"compare with the arrays in `FILE`.npz, or in a folder's .npy files: out0, out1, …, of further calls call1_out0, …")
	flags.BoolVar(&p.layer, "layer", false, "find the first instruction, or node inside a delegate, that leaves the tolerance")
	flags.Float64Var(&p.tolerance.Abs, "atol", 1e-5, "absolute tolerance of floats")
	flags.Float64Var(&p.tolerance.Rel, "rtol", 1e-3, "relative tolerance of floats")
	p.intermediates.addFlags(flags)
	p.calls.AddFlags(flags)
	p.AddFlags(flags)
	return c
}

// oneOrTwo accepts one or two programs.
func oneOrTwo(c *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return session.Usage("%s, want A.pte or A.pte B.pte; see %s --help", count(len(args), "argument", "arguments"), c.CommandPath())
	}
	return nil
}

// compareReport is the JSON object of compare.
type compareReport struct {
	Schema  string          `json:"schema"`
	A       string          `json:"a"`
	B       string          `json:"b"`
	ATol    float64         `json:"atol"`
	RTol    float64         `json:"rtol"`
	Outputs []comparedValue `json:"outputs"`
	Differ  int             `json:"differ"`
	Layer   *layerReport    `json:"layer,omitempty"` // with --layer
}

// comparedValue is one output of one call.
type comparedValue struct {
	Call   int    `json:"call"`
	Method string `json:"method"`
	Output int    `json:"output"`
	Type   string `json:"type"`
	diff.Distance
}

func (p *compareCommand) run(ctx context.Context, paths []string) error {
	if !(p.tolerance.Abs >= 0 && p.tolerance.Rel >= 0) {
		return session.Usage("--atol %v --rtol %v, want none below 0", p.tolerance.Abs, p.tolerance.Rel)
	}
	if err := p.leaveStdout(p.dump); err != nil {
		return err
	}
	two := len(paths) == 2 || p.vs != ""
	if two == (p.against != "") {
		return session.Usage("want two programs, or one with --vs, or one with --against")
	}
	if two && p.dump == output.Stdout {
		return session.Usage("--dump-intermediates -, want a folder for the values of two programs")
	}
	if p.layer {
		p.ShowValues()
	}
	a, err := p.open(ctx, paths[0], &p.Options, p.place("a"))
	if err != nil {
		return err
	}
	defer a.close()
	r := &compareReport{Schema: "etrun.compare/1", A: paths[0], ATol: p.tolerance.Abs, RTol: p.tolerance.Rel, Outputs: []comparedValue{}}
	if p.against != "" {
		r.A, r.B = p.against, paths[0]
		err = p.withArchive(ctx, r, a)
	} else {
		r.B = strings.TrimSpace(paths[len(paths)-1] + " " + p.vs)
		err = p.withProgram(ctx, r, a, paths[len(paths)-1])
	}
	if err != nil {
		return err
	}
	return p.report(r)
}

// place is where one of two programs has its files of values.
func (p *compareCommand) place(name string) string {
	switch {
	case p.against != "":
		return p.dump
	case strings.HasSuffix(p.dump, ".npz"):
		return strings.TrimSuffix(p.dump, "npz") + name + ".npz"
	}
	return filepath.Join(p.dump, name)
}

// side is one of the two programs.
type side struct {
	*session.Session
	*watching
	ctx  context.Context  // that its trap ends
	kept *layers.Recorder // with --layer
}

func (p *compareCommand) open(ctx context.Context, path string, o *session.Options, place string) (*side, error) {
	a := &side{}
	var err error
	if a.ctx, a.watching, err = p.begin(ctx, o, place); err != nil {
		return nil, err
	}
	if p.layer {
		a.kept = &layers.Recorder{Limit: o.InputLimit()}
		a.ctx, a.kept.Stop = context.WithCancelCause(a.ctx)
		a.observers = append(a.observers, etrun.WithObserver(a.kept))
	}
	if a.Session, err = session.Open(a.ctx, path, o, a.observers...); err != nil {
		a.stop()
		return nil, err
	}
	if err := a.Prepare(a.ctx, append(session.Calls{}, p.calls...)); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// once runs the calls, see [session.Session.Once].
func (a *side) once(keep func(k int, st *session.Step) error) error {
	err := a.end(a.Once(a.ctx, keep))
	if a.kept != nil && a.kept.Err() != nil {
		return a.kept.Err()
	}
	return err
}

func (a *side) close() {
	_ = a.Close() // of memory and units; what was computed is there
	a.stop()
}

// stop ends what observes the program.
func (a *side) stop() {
	if a.kept != nil {
		a.kept.Stop(nil)
	}
	a.watching.close()
}

// withProgram compares a's outputs with those of another program, on a's inputs.
func (p *compareCommand) withProgram(ctx context.Context, r *compareReport, a *side, path string) error {
	o, err := p.With(strings.Fields(p.vs))
	if err != nil {
		return session.Usage("--vs: %w", err)
	}
	b, err := p.open(ctx, path, o, p.place("b"))
	if err != nil {
		return err
	}
	defer b.close()
	for k := range b.Steps {
		b.Steps[k].Values = a.Steps[k].Values
	}
	wants := make([][]*tensor.Value, len(a.Steps))
	err = a.once(func(k int, st *session.Step) (err error) {
		wants[k], err = st.CloneOutputs()
		return err
	})
	if err != nil {
		return err
	}
	if err = b.once(func(k int, st *session.Step) error { return p.add(r, k, st, wants[k]) }); err == nil && p.layer {
		r.Layer = p.layers(a, b)
	}
	return err
}

// add compares the outputs of a call with those that are wanted, nil for any.
func (p *compareCommand) add(r *compareReport, k int, st *session.Step, wants []*tensor.Value) error {
	outputs, err := st.Outputs()
	if err != nil {
		return err
	}
	if len(outputs) != len(wants) {
		return fmt.Errorf("%w: call %d: %s, want %d", errDiffer, k, count(len(outputs), "output", "outputs"), len(wants))
	}
	for i, got := range outputs {
		if wants[i] == nil {
			continue
		}
		kind := wants[i].Kind.String()
		if wants[i].Kind == tensor.KindTensor {
			kind = wants[i].Tensor.String()
		}
		v := comparedValue{k, st.Name(), i, kind, diff.Measure(got, wants[i], p.tolerance)}
		if v.Differs != "" {
			r.Differ++
		}
		r.Outputs = append(r.Outputs, v)
	}
	return nil
}

func (p *compareCommand) report(r *compareReport) error {
	if p.json {
		if err := p.writeJSON(r); err != nil {
			return err
		}
	} else {
		for i := range r.Outputs {
			r.Outputs[i].print(p.app)
		}
		if r.Layer != nil {
			r.Layer.print(p.app)
		}
	}
	switch {
	case r.Differ > 0:
		return fmt.Errorf("%w: %d of %s", errDiffer, r.Differ, count(len(r.Outputs), "output", "outputs"))
	case r.Layer != nil && r.Layer.First != nil:
		return fmt.Errorf("%w: %v", errDiffer, &r.Layer.First.Place)
	}
	return nil
}

func (v *comparedValue) print(a *app) {
	verdict := "ok"
	switch {
	case v.Differs != "":
		verdict = "differs"
	case v.Equal:
		verdict = "equal"
	}
	fmt.Fprintf(a.out, "%s, call %d, output %d %s: %s", printable(v.Method), v.Call, v.Output, v.Type, verdict)
	if !v.Equal {
		fmt.Fprintf(a.out, "; %s", distanceText(&v.Distance))
	}
	fmt.Fprintln(a.out)
	if v.Differs != "" {
		fmt.Fprintf(a.out, "  %s\n", v.Differs)
	}
}

func distanceText(d *diff.Distance) string {
	return fmt.Sprintf("max abs %v, mean abs %v, max rel %v, max ULP %d, cosine %.9f",
		d.MaxAbs, d.MeanAbs, d.MaxRel, d.MaxULP, float64(d.Cosine))
}
