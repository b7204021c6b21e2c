package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/diff"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/verify"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/compile"
)

// verifiedReport is the comparison of a lowered program with the original one.
type verifiedReport struct {
	Calls   int           `json:"calls"`
	Outputs int           `json:"outputs"`
	Equal   int           `json:"equal"`   // outputs with the same bytes
	MaxAbs  output.Number `json:"max_abs"` // of all outputs
}

// compare runs both programs on the same inputs.
func (l *lowerCommand) compare(ctx context.Context, from *session.Session, result *compile.Result, data []byte) (*verifiedReport, error) {
	o := l.Options
	o.Beside = result.External
	to, err := session.OpenBytes(ctx, l.output, data, &o)
	if err != nil {
		return nil, fmt.Errorf("the lowered program: %w", err)
	}
	defer to.Close()
	steps := make(map[string][]float64)
	for i := range to.Spec().Methods {
		m := &to.Spec().Methods[i]
		steps[m.Name] = verify.OutputSteps(to.Program, m)
	}
	calls := l.verifiedCalls(result)
	if err := from.Prepare(ctx, calls); err != nil {
		return nil, inOriginal(err, "--input")
	}
	if err := to.Prepare(ctx, append(session.Calls{}, calls...)); err != nil {
		return nil, fmt.Errorf("the lowered program: %w", err)
	}
	wants := make([][]*tensor.Value, len(from.Steps))
	err = from.Once(ctx, func(k int, st *session.Step) (err error) {
		wants[k], err = st.CloneOutputs()
		to.Steps[k].Values = st.Values
		return err
	})
	if err != nil {
		return nil, inOriginal(err, "--input")
	}
	r := &verifiedReport{Calls: len(calls)}
	err = to.Once(ctx, func(k int, st *session.Step) error { return l.compareOutputs(r, st, wants[k], steps[st.Name()]) })
	if err != nil && !errors.Is(err, cli.ErrDiffer) {
		err = fmt.Errorf("the lowered program: %w", err)
	}
	return r, err
}

// inOriginal explains an error of the original program, whose random inputs may not fit it.
func inOriginal(err error, flag string) error {
	if errors.Is(err, etrun.ErrInput) || errors.Is(err, etrun.ErrExecute) {
		return fmt.Errorf("%w; give inputs that the program accepts with %s, or write without a comparison: --verify=false", err, flag)
	}
	return err
}

// verifiedCalls are those of the command line, otherwise two calls of each lowered method: the second has the state of the first.
func (l *lowerCommand) verifiedCalls(result *compile.Result) (calls session.Calls) {
	for i := range l.calls {
		if l.calls[i].Method != "" || len(l.calls[i].Inputs) > 0 {
			return l.calls
		}
	}
	for i := range result.Methods {
		if m := &result.Methods[i]; m.Why == "" {
			calls = append(calls, session.Call{Method: m.Name}, session.Call{Method: m.Name})
		}
	}
	return calls
}

// compareOutputs compares the outputs of one call.
func (l *lowerCommand) compareOutputs(r *verifiedReport, st *session.Step, wants []*tensor.Value, steps []float64) error {
	got, err := st.Outputs()
	if err != nil {
		return err
	}
	if len(got) != len(wants) {
		return fmt.Errorf("%w: method %q: %s, want %d", cli.ErrDiffer, st.Name(), cli.Count(len(got), "output", "outputs"), len(wants))
	}
	for i, want := range wants {
		allowed := l.allowed(want)
		if i < len(steps) {
			allowed.Abs += steps[i]
		}
		d := diff.Measure(got[i], want, allowed)
		if d.Differs != "" {
			return fmt.Errorf("%w: method %q, output %d of the lowered program: %s; nothing is written; "+
				"if the application may have this difference, allow it with --atol and --rtol, or write without a comparison: --verify=false",
				cli.ErrDiffer, st.Name(), i, d.Differs)
		}
		r.Outputs++
		if d.Equal {
			r.Equal++
		}
		r.MaxAbs = max(r.MaxAbs, d.MaxAbs)
	}
	return nil
}

// allowed returns the tolerance of an output: rounding errors are relative to the largest numbers that a sum may contain.
func (l *lowerCommand) allowed(want *tensor.Value) kernels.Tolerance {
	t := l.tolerance
	if want.Kind != tensor.KindTensor || !want.Tensor.DType.IsFloat() {
		return t
	}
	if d := want.Tensor.DType; d.Size() == 2 {
		t.Abs, t.Rel = max(t.Abs, 4*d.Epsilon()), max(t.Rel, 4*d.Epsilon())
	}
	t.Abs *= max(1, compare.Largest(want.Tensor))
	return t
}
