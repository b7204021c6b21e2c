package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/diff"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// compareCommand runs the same calls twice, or once beside kept outputs, and measures how
// far the outputs are apart.
type compareCommand struct {
	*app
	session.Options
	calls       session.Calls
	vs, against string
	tolerance   kernels.Tolerance
}

const compareHelp = `Run the same calls on two programs, or on one with two sets of flags (--vs), or on one
whose outputs are to be those of an archive (--against), and measure how far the
outputs of the second are from those of the first, or from the archive's. Floats pass
where |got-want| <= atol + rtol*|want|, everything else where it is equal. The exit
code is 6 where an output does not pass.
`

func newCompare(a *app) *cobra.Command {
	p := &compareCommand{app: a, Options: session.Options{Say: a.noteOnce()}}
	c := &cobra.Command{
		Use:   "compare A.pte [B.pte]",
		Short: "Compare the outputs of two programs, engines or plans",
		Long:  compareHelp,
		Example: "  etrun compare portable.pte xnnpack.pte\n  etrun compare model.pte --vs \"--xnnpack reference\"\n" +
			"  etrun compare model.pte --vs \"--plan naive\" --atol 0 --rtol 0\n  etrun compare model.pte -i x.npy --against eager.npz",
		Args:              oneOrTwo,
		ValidArgsFunction: completePrograms,
		RunE:              func(c *cobra.Command, args []string) error { return p.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&p.vs, "vs", "", "run the last program with further `FLAGS`, such as \"--xnnpack reference\"")
	flags.StringVar(&p.against, "against", "", "compare with the arrays in `FILE`.npz: out0, out1, …, of further calls call1_out0, …")
	flags.Float64Var(&p.tolerance.Abs, "atol", 1e-5, "absolute tolerance of floats")
	flags.Float64Var(&p.tolerance.Rel, "rtol", 1e-3, "relative tolerance of floats")
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
	two := len(paths) == 2 || p.vs != ""
	if two == (p.against != "") {
		return session.Usage("want two programs, or one with --vs, or one with --against")
	}
	a, err := p.open(ctx, paths[0], &p.Options)
	if err != nil {
		return err
	}
	defer a.Close()
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

func (p *compareCommand) open(ctx context.Context, path string, o *session.Options) (*session.Session, error) {
	s, err := session.Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	if err := s.Prepare(ctx, append(session.Calls{}, p.calls...)); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// withProgram compares a's outputs with those of another session, on a's inputs.
func (p *compareCommand) withProgram(ctx context.Context, r *compareReport, a *session.Session, path string) error {
	o, err := p.With(strings.Fields(p.vs))
	if err != nil {
		return session.Usage("--vs: %w", err)
	}
	b, err := p.open(ctx, path, o)
	if err != nil {
		return err
	}
	defer b.Close()
	for k := range b.Steps {
		b.Steps[k].Values = a.Steps[k].Values
	}
	wants := make([][]*tensor.Value, len(a.Steps))
	err = a.Once(ctx, func(k int, st *session.Step) (err error) {
		wants[k], err = st.CloneOutputs()
		return err
	})
	if err != nil {
		return err
	}
	return b.Once(ctx, func(k int, st *session.Step) error { return p.add(r, k, st, wants[k]) })
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
	}
	if r.Differ > 0 {
		return fmt.Errorf("%w: %d of %s", errDiffer, r.Differ, count(len(r.Outputs), "output", "outputs"))
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
		fmt.Fprintf(a.out, "; max abs %v, mean abs %v, max rel %v, max ULP %d, cosine %.9f", v.MaxAbs, v.MeanAbs, v.MaxRel, v.MaxULP, float64(v.Cosine))
	}
	fmt.Fprintln(a.out)
	if v.Differs != "" {
		fmt.Fprintf(a.out, "  %s\n", v.Differs)
	}
}
