// Package compare is the command compare, which runs two programs on the same inputs.
package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/diff"
	"github.com/etrun-go/etrun/cmd/etrun/internal/layernames"
	"github.com/etrun-go/etrun/cmd/etrun/internal/layers"
	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/spf13/cobra"
)

// compareCommand runs the same calls on two programs, or compares one program with stored
// outputs, and measures the differences.
type compareCommand struct {
	*cli.App
	session.Options
	layers.Intermediates
	calls       session.Calls
	vs, against string
	layer       bool
	tolerance   kernels.Tolerance
	special     bool             // an output differs only in NaN or infinities
	native      bool             // libXNNPACK runs a part of a program
	names       layernames.Names // of the last program
	namesA      layernames.Names // of the first of two
}

const compareHelp = `Run the same calls on two programs, or on one with two sets of flags (--vs), and
compare the outputs; or compare the outputs of one program with stored arrays
(--against). Floats pass if |got-want| <= atol + rtol*|want|, other types if they
are equal. The exit code is 6 if an output does not pass.

With --layer, the results of all instructions are compared too, and those of nodes
inside delegates if the engine or device exposes them. compare prints the first
value beyond the tolerance, and the first that is not equal. This turns rewrites
off, unless --lower is set. --against may then have the values of instructions, with
names as in --dump-intermediates. Places have the module of the model that they come
from: from the ETRecord of the last program's export (--etrecord), else the line of the
model's source, if the file has stack traces.

Of programs with different instructions, such as a portable one and one for XNNPACK, it
compares the values that both compute: those of one operator and type, and floats that
the other program computes, too. A value of B is found in A if a value there has the
same sizes, in the same or in channels-last order, equal elements within the tolerance,
and depends on the values in which those were found that B's value is computed from, or
those before them. Values with fewer than 8 elements, or with all elements equal, prove
nothing about others. The first value that is not found, and from which nothing is computed that is
found, is the first different layer. There only the outputs decide about the exit code.

If one of the programs is quantized, each of its values is printed beside the nearest one of the
other program, with the ratio of signal to noise in dB; 8-bit values are compared as the numbers
that they mean.
`

// New returns the command.
func New(a *cli.App) *cobra.Command {
	p := &compareCommand{App: a, Options: session.Options{Say: a.NoteOnce()}}
	c := &cobra.Command{
		Use:   "compare A.pte [B.pte]",
		Short: "Compare the outputs of two programs, engines or plans",
		Long:  compareHelp,
		Example: "  etrun compare portable.pte xnnpack.pte\n  etrun compare model.pte --vs \"--xnnpack go\"\n" +
			"  etrun compare model.pte --vs \"--plan naive\" --atol 0 --rtol 0\n  etrun compare model.pte -i x.npy --against eager.npz\n" +
			"  etrun compare good.pte bad.pte --layer",
		Args:              cli.OneOrTwo,
		ValidArgsFunction: cli.CompletePrograms,
		RunE:              func(c *cobra.Command, args []string) error { return p.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.StringVar(&p.vs, "vs", "", "also run the last program with `FLAGS`, such as \"--xnnpack go\"")
	flags.StringVar(&p.against, "against", "",
		"compare with the arrays in `FILE`.npz, or in .npy files of a folder: out0, out1, …, for further calls call1_out0, …")
	flags.BoolVar(&p.layer, "layer", false, "find the first instruction, or node inside a delegate, beyond the tolerance")
	flags.Float64Var(&p.tolerance.Abs, "atol", 1e-5, "absolute tolerance `TOL` for floats")
	flags.Float64Var(&p.tolerance.Rel, "rtol", 1e-3, "relative tolerance `TOL` for floats")
	p.names.AddFlag(flags)
	p.Intermediates.AddFlags(flags)
	p.calls.AddFlags(flags)
	p.Options.AddFlags(flags)
	return c
}

// report is the JSON object of compare.
type report struct {
	Schema  string          `json:"schema"`
	A       string          `json:"a"`
	B       string          `json:"b"`
	ATol    float64         `json:"atol"`
	RTol    float64         `json:"rtol"`
	Outputs []comparedValue `json:"outputs"`
	Differ  int             `json:"differ"`
	Layer   *layerReport    `json:"layer,omitempty"` // with --layer
	// By a signal or the time limit; the rest was not compared.
	Interrupted bool `json:"interrupted,omitempty"`
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
		return session.Usage("--atol %v --rtol %v, want 0 or more", p.tolerance.Abs, p.tolerance.Rel)
	}
	if err := p.LeaveStdout(p.Dump); err != nil {
		return err
	}
	two := len(paths) == 2 || p.vs != ""
	if two == (p.against != "") {
		return session.Usage("want two programs, or one with --vs, or one with --against")
	}
	if two && p.Dump == output.Stdout {
		return session.Usage("--dump-intermediates -, want a folder: there are two programs")
	}
	if p.layer {
		p.ShowValues()
	} else if p.names.Path != "" {
		return session.Usage("--etrecord requires --layer")
	}
	a, err := p.open(ctx, paths[0], &p.Options, p.place("a"))
	if err != nil {
		return err
	}
	defer a.close()
	r := &report{Schema: "etrun.compare/1", A: paths[0], ATol: p.tolerance.Abs, RTol: p.tolerance.Rel, Outputs: []comparedValue{}}
	if p.against != "" {
		r.A, r.B = p.against, paths[0]
		err = p.withArchive(ctx, r, a)
	} else {
		r.B = strings.TrimSpace(paths[len(paths)-1] + " " + p.vs)
		err = p.withProgram(ctx, r, a, paths[len(paths)-1])
	}
	if err != nil && (!cli.Cancelled(err) || len(r.Outputs) == 0 && r.Layer == nil) {
		return err
	}
	r.Interrupted = err != nil
	p.native = p.native || runsNatively(a.Session)
	return errors.Join(err, p.report(r))
}

// place returns the path for the intermediate values of one of two programs.
func (p *compareCommand) place(name string) string {
	switch {
	case p.against != "":
		return p.Dump
	case strings.HasSuffix(p.Dump, ".npz"):
		return strings.TrimSuffix(p.Dump, "npz") + name + ".npz"
	}
	return filepath.Join(p.Dump, name)
}

// side is one of the two programs.
type side struct {
	*session.Session
	*layers.Watching
	ctx  context.Context  // canceled by its trap
	kept *layers.Recorder // with --layer
}

func (p *compareCommand) open(ctx context.Context, path string, o *session.Options, place string) (*side, error) {
	a := &side{}
	var err error
	if a.ctx, a.Watching, err = p.Begin(ctx, o, place); err != nil {
		return nil, err
	}
	if p.layer {
		a.kept = &layers.Recorder{Limit: o.InputLimit()}
		a.ctx, a.kept.Stop = context.WithCancelCause(a.ctx)
		a.Observers = append(a.Observers, etrun.WithObserver(a.kept))
	}
	if a.Session, err = session.Open(a.ctx, path, o, a.Observers...); err != nil {
		a.stop()
		return nil, err
	}
	if err := a.Prepare(a.ctx, append(session.Calls{}, p.calls...)); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// once runs the calls; see [session.Session.Once].
func (a *side) once(keep func(k int, st *session.Step) error) error {
	err := a.End(a.Once(a.ctx, keep))
	if a.kept != nil && a.kept.Err() != nil {
		return a.kept.Err()
	}
	return err
}

func (a *side) close() {
	_ = a.Session.Close() // the outputs are already read
	a.stop()
}

// stop closes the observers of the program.
func (a *side) stop() {
	if a.kept != nil {
		a.kept.Stop(nil)
	}
	a.Watching.Close()
}

// withProgram compares a's outputs with those of another program, on a's inputs.
func (p *compareCommand) withProgram(ctx context.Context, r *report, a *side, path string) error {
	o, err := p.With(strings.Fields(p.vs))
	if err != nil {
		return session.Usage("--vs: %w", err)
	}
	b, err := p.open(ctx, path, o, p.place("b"))
	if err != nil {
		return err
	}
	defer b.close()
	if err := p.readNames(ctx, a, b); err != nil {
		return err
	}
	for k := range b.Steps {
		b.Steps[k].Values = a.Steps[k].Values
	}
	if p.layer {
		p.outlook(a, b)
	}
	wants := make([][]*tensor.Value, len(a.Steps))
	err = a.once(func(k int, st *session.Step) (err error) {
		wants[k], err = st.CloneOutputs()
		return err
	})
	if err != nil {
		return err
	}
	err = b.once(func(k int, st *session.Step) error { return p.add(r, k, st, wants[k]) })
	if err != nil && !cli.Cancelled(err) {
		return fmt.Errorf("%s: %w", path, err)
	}
	p.native = runsNatively(b.Session)
	if !p.layer {
		return err
	}
	later, stop := delayed(ctx, ending)
	defer stop()
	r.Layer = p.layers(later, a, b)
	return cmp.Or(err, context.Cause(ctx))
}

// readNames reads the names of layers, before anything runs.
func (p *compareCommand) readNames(ctx context.Context, a, b *side) error {
	if !p.layer {
		return nil
	}
	if err := p.namesA.Read(ctx, a.Session, p.App); err != nil {
		return err
	}
	return p.names.Read(ctx, b.Session, p.App)
}

// ending is the time for a comparison of what has been computed when a signal or the time limit ends the runs.
const ending = 300 * time.Millisecond

// delayed returns a context that ends some time after ctx.
func delayed(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return later, func() {
		forget()
		cancel()
	}
}

// add compares the outputs of a call with the expected ones, nil for any.
func (p *compareCommand) add(r *report, k int, st *session.Step, wants []*tensor.Value) error {
	outputs, err := st.Outputs()
	if err != nil {
		return err
	}
	if len(outputs) != len(wants) {
		return fmt.Errorf("%w: call %d: %s, want %d", cli.ErrDiffer, k, cli.Count(len(outputs), "output", "outputs"), len(wants))
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
			p.special = p.special || diff.OnlySpecial(got, wants[i], p.tolerance)
		}
		r.Outputs = append(r.Outputs, v)
	}
	return nil
}

func (p *compareCommand) report(r *report) error {
	if p.special && p.native {
		p.Say(diff.SpecialNote)
	}
	if p.JSON {
		if err := p.WriteJSON(r); err != nil {
			return err
		}
	} else {
		for i := range r.Outputs {
			r.Outputs[i].print(p.App)
		}
		if r.Layer != nil {
			r.Layer.print(p.App)
		}
	}
	switch {
	case r.Differ > 0:
		return fmt.Errorf("%w: %d of %s", cli.ErrDiffer, r.Differ, cli.Count(len(r.Outputs), "output", "outputs"))
	case r.Layer != nil && r.Layer.First != nil && !r.Layer.other:
		return fmt.Errorf("%w: %v", cli.ErrDiffer, &r.Layer.First.Place)
	}
	return nil
}

func (v *comparedValue) print(a *cli.App) {
	verdict := "ok"
	switch {
	case v.Differs != "":
		verdict = "differs"
	case v.Equal:
		verdict = "equal"
	}
	fmt.Fprintf(a.Out, "%s, call %d, output %d %s: %s", cli.Printable(v.Method), v.Call, v.Output, v.Type, verdict)
	if !v.Equal {
		fmt.Fprintf(a.Out, "; %s", distanceText(&v.Distance))
	}
	fmt.Fprintln(a.Out)
	if v.Differs != "" {
		fmt.Fprintf(a.Out, "  %s\n", v.Differs)
	}
}

func distanceText(d *diff.Distance) string {
	return fmt.Sprintf("max abs %v, mean abs %v, max rel %v, max ULP %d, cosine %.9f",
		d.MaxAbs, d.MeanAbs, d.MaxRel, d.MaxULP, float64(d.Cosine))
}

// runsNatively reports whether libXNNPACK runs a part of a program.
func runsNatively(s *session.Session) bool {
	return slices.ContainsFunc(s.Steps, func(st *session.Step) bool {
		m, ok := st.Callee.(interface{ Delegates() []delegate.Info })
		return ok && diff.RunsNatively(m.Delegates())
	})
}

// wanted returns an array as the expected value of an output: a number if the output is
// one and the array has rank 0.
func wanted(a *npy.Array, got *tensor.Value) *tensor.Value {
	d := a.DType
	if got.Kind == tensor.KindTensor && a.HasType(got.Tensor.DType) {
		d = got.Tensor.DType
	}
	t := tensor.Make(d, a.Sizes, nil, tensor.Static)
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	copy(t.Data, a.Data)
	v := tensor.TensorValue(t)
	if t.Rank() > 0 {
		return &v
	}
	switch {
	case got.Kind == tensor.KindInt && d == tensor.Int64:
		v = tensor.IntValue(tensor.Data[int64](t)[0])
	case got.Kind == tensor.KindBool && d == tensor.Bool:
		v = tensor.BoolValue(t.Data[0] != 0)
	case got.Kind == tensor.KindDouble && d == tensor.Float64:
		v = tensor.DoubleValue(tensor.Data[float64](t)[0])
	}
	return &v
}
