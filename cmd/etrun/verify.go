package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/diff"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/verify"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/runtime/pte"
)

// verifyCommand runs the test cases of a bundled program.
type verifyCommand struct {
	*app
	session.Options
	tolerance kernels.Tolerance
	fromUser  bool // the tolerance was given, and is not extended
}

// verifyReport is the JSON object of verify.
type verifyReport struct {
	Schema string               `json:"schema"`
	Model  string               `json:"model"`
	Cases  int                  `json:"cases"`
	Failed int                  `json:"failed"`
	Rows   []caseReport         `json:"results"`
	Steps  map[string][]float64 `json:"quantization_steps,omitempty"` // additional tolerance of outputs computed from quantized values, by method
	// By a signal or the time limit; only complete cases count.
	Interrupted bool `json:"interrupted,omitempty"`
}

// caseReport is the outcome of one test case.
type caseReport struct {
	Method      string   `json:"method"`
	Case        int      `json:"case"`
	Outputs     int      `json:"outputs"` // compared
	Differences []string `json:"differences,omitempty"`
}

func newVerify(a *app) *cobra.Command {
	v := &verifyCommand{app: a, Options: session.Options{Say: a.Note}}
	c := &cobra.Command{
		Use:   "verify MODEL.bpte",
		Short: "Run the test cases of a bundled program",
		Long: "Run every test case of a bundled program (.bpte), each from the initial state, and compare the outputs with the expected ones.\n" +
			"Floats pass if |got-want| <= atol + rtol*|want|, other types if they are equal. Unless a tolerance is given, floats computed\n" +
			"from quantized values may also differ by one quantization step. The exit code is 6 if a case fails.",
		Example:           "  etrun verify model.bpte\n  etrun verify model.bpte --rtol 1e-4 --json",
		Args:              cli.OneModel,
		ValidArgsFunction: cli.CompleteModel,
		RunE: func(c *cobra.Command, args []string) error {
			v.fromUser = c.Flags().Changed("atol") || c.Flags().Changed("rtol")
			return v.run(c.Context(), args[0])
		},
	}
	c.Flags().Float64Var(&v.tolerance.Abs, "atol", verify.Tolerance.Abs, "absolute tolerance `TOL` for floats")
	c.Flags().Float64Var(&v.tolerance.Rel, "rtol", verify.Tolerance.Rel, "relative tolerance `TOL` for floats")
	v.AddFlags(c.Flags())
	return c
}

func (v *verifyCommand) run(ctx context.Context, path string) error {
	if !(v.tolerance.Abs >= 0 && v.tolerance.Rel >= 0) {
		return session.Usage("--atol %v --rtol %v, want none below 0", v.tolerance.Abs, v.tolerance.Rel)
	}
	sess, err := session.Open(ctx, path, &v.Options)
	if err != nil {
		return err
	}
	defer sess.Close()
	if session.CountCases(sess.Bundle()) == 0 {
		return session.Usage("%s: no test cases; verify requires a bundled program (.bpte)", path)
	}
	report := &verifyReport{Schema: "etrun.verify/1", Model: path}
	if !v.fromUser {
		v.findSteps(sess.Program, report)
	}
	for _, s := range sess.Bundle().Suites {
		if err = v.suite(ctx, sess, s, report); err != nil {
			break
		}
	}
	if err != nil && !(cli.Cancelled(err) && report.Cases > 0) {
		return err
	}
	report.Interrupted = err != nil
	if v.JSON {
		err = errors.Join(err, v.WriteJSON(report))
	}
	if err != nil {
		return err
	}
	if report.Failed > 0 {
		return fmt.Errorf("%w: %d of %s", cli.ErrDiffer, report.Failed, cli.Count(report.Cases, "test case", "test cases"))
	}
	return nil
}

func (v *verifyCommand) suite(ctx context.Context, sess *session.Session, s pte.Suite, report *verifyReport) error {
	if len(s.Cases) == 0 {
		return nil
	}
	m, err := sess.LoadOwn(ctx, s.Method)
	if err != nil {
		return err
	}
	sess.Warn()
	for i := range s.Cases {
		if err := m.Reset(); err != nil {
			return err
		}
		v.Progress.Say("case %d of %d", i+1, len(s.Cases))
		row := caseReport{Method: s.Method, Case: i, Outputs: len(s.Cases[i].Outputs)}
		special := false
		if row.Differences, special, err = verify.Case(ctx, m, &s.Cases[i], v.tolerance, report.Steps[s.Method]); err != nil {
			return fmt.Errorf("case %d: %w", i, err)
		}
		if special && diff.RunsNatively(m.Delegates()) {
			v.Say(diff.SpecialNote)
		}
		report.add(row)
		if !v.JSON {
			row.print(v.app)
		}
	}
	return nil
}

func (r *verifyReport) add(row caseReport) {
	r.Rows = append(r.Rows, row)
	r.Cases++
	if len(row.Differences) > 0 {
		r.Failed++
	}
}

func (r *caseReport) print(a *app) {
	verdict := "ok"
	if len(r.Differences) > 0 {
		verdict = "differs"
	} else if r.Outputs == 0 {
		verdict = "ran, no expected outputs"
	}
	fmt.Fprintf(a.Out, "%s, case %d: %s\n", r.Method, r.Case, verdict)
	for _, d := range r.Differences {
		fmt.Fprintf(a.Out, "  %s\n", d)
	}
}

// findSteps finds the additional tolerances of the outputs of each method, and prints them.
// It reads the bytes of all methods before the first is loaded, which may release them.
func (v *verifyCommand) findSteps(prog *etrun.Program, report *verifyReport) {
	report.Steps = make(map[string][]float64)
	for i := range prog.Spec().Methods {
		m := &prog.Spec().Methods[i]
		steps := verify.OutputSteps(prog, m)
		if !slices.ContainsFunc(steps, func(s float64) bool { return s > 0 }) {
			continue
		}
		report.Steps[m.Name] = steps
		for k, step := range steps {
			if step > 0 && !v.JSON {
				fmt.Fprintf(v.Out, "%s, output %d: one step of its quantized values, %.4g, is added to the tolerance\n", cli.Printable(m.Name), k, step)
			}
		}
	}
}
