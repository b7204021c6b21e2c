package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/diff"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/verify"
	"github.com/etrun-go/etrun/internal/collect"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/compile"
	"github.com/etrun-go/etrun/runtime/pte"
)

// verifiedReport is the comparison of a lowered program with the original one.
type verifiedReport struct {
	Calls   int           `json:"calls"`
	Outputs int           `json:"outputs"`
	Equal   int           `json:"equal"`   // outputs with the same bytes
	MaxAbs  output.Number `json:"max_abs"` // of all outputs
	// Undecided outputs depend on a call whose result jumps within the rounding of its operands.
	Undecided int `json:"undecided,omitempty"`
}

// comparison runs the original program and the lowered one on the same inputs.
type comparison struct {
	*lowerCommand
	original, lowered *stored
	path              string
	extraData         []etrun.Source // the constants of the lowered program
	calls             session.Calls
	fromUser          bool // the inputs are those of the command line
}

// compare runs both programs. Random inputs that the original one does not accept are replaced by others.
func (l *lowerCommand) compare(ctx context.Context, from *session.Session, original *stored, result *loweredFile) (r *verifiedReport, err error) {
	c := &comparison{lowerCommand: l, original: original, lowered: result.program, path: from.Path}
	if result.constants != nil {
		c.extraData = []etrun.Source{result.constants.source("constants")}
	}
	c.calls, c.fromUser = l.verifiedCalls(result.Result)
	for attempt := range session.Attempts() {
		var failed error
		if r, failed = c.run(ctx, attempt, nil, nil); !isRefused(failed) || c.fromUser {
			return r, failed
		}
		if err == nil {
			err = failed
		}
	}
	return r, err
}

// refusedError is an error of the original program, which may not accept random inputs.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

func isRefused(err error) bool {
	_, ok := errors.AsType[refusedError](err)
	return ok && isUnfit(err)
}

// isUnfit reports whether an error may come from inputs that do not fit a program.
func isUnfit(err error) bool {
	return errors.Is(err, etrun.ErrInput) || errors.Is(err, etrun.ErrExecute)
}

// open opens one of the programs for the calls, with random inputs of an attempt.
func (c *comparison) open(ctx context.Context, name string, data *stored, attempt int, by []etrun.Option) (*session.Session, error) {
	o := c.Options
	o.ExtraData, o.Indexes, o.Attempt = c.extraData, true, attempt
	s, err := session.OpenSource(ctx, name, data.source(name), &o, by...)
	if err != nil {
		return nil, err
	}
	if err := s.Prepare(ctx, append(session.Calls{}, c.calls...)); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// run runs the original program, and then the lowered one. If their outputs differ, both run again to find out whether these depend on
// ties.
func (c *comparison) run(ctx context.Context, attempt int, record *callRecorder, ties *tieFinder) (*verifiedReport, error) {
	wants, values, spec, err := c.wants(ctx, attempt, record)
	if err != nil {
		return nil, refusedError{inOriginal(err, "--input")}
	}
	collect.Loaded()
	var by []etrun.Option
	if ties != nil {
		by = append(by, etrun.WithObserver(ties))
	}
	to, err := c.open(ctx, c.output, c.lowered, attempt, by)
	if err != nil {
		return nil, fmt.Errorf("the lowered program: %w", err)
	}
	defer to.Close()
	if ties != nil {
		ties.original = record.paired(spec, to.Spec())
	}
	for k, st := range to.Steps {
		st.Values = values[k]
	}
	steps := outputSteps(to)
	r := &verifiedReport{Calls: len(c.calls)}
	err = to.Once(ctx, func(k int, st *session.Step) error {
		var undecided []bool
		if ties != nil && len(ties.outputs) > k {
			undecided = ties.outputs[k]
		}
		return c.compareOutputs(r, st, wants[k], steps[st.Name()], quantizes(spec, st.Name()), undecided)
	})
	switch {
	case err == nil:
		if r.Undecided > 0 {
			c.Say("%s not compared: they depend on %s, whose result jumps within the rounding of its operands; other inputs, with --input or "+
				"--seed, may show them", cli.Count(r.Undecided, "output is", "outputs are"), ties.found)
		}
	case !errors.Is(err, cli.ErrDiffer):
		err = fmt.Errorf("the lowered program: %w", err)
	case ties == nil:
		again := &tieFinder{next: make(map[string]int), allowed: c.allowed, marked: make(map[*byte]bool)}
		if r, tied := c.run(ctx, attempt, &callRecorder{calls: make(map[string][]operatorCall), left: maxRecorded}, again); tied == nil {
			return r, nil
		}
	}
	return r, err
}

// quantizes reports whether operators of a method quantize values.
func quantizes(p *pte.Program, method string) bool {
	i := slices.IndexFunc(p.Methods, func(m pte.Method) bool { return m.Name == method })
	return i >= 0 && slices.ContainsFunc(p.Methods[i].Operators, func(o pte.Operator) bool {
		op, _, ok, err := etrun.DefaultOperators().Lookup(o.FullName())
		return ok && err == nil && (len(op.Quants) > 0 || op.Class == opclass.Quantize || op.Class == opclass.ChooseQParams)
	})
}

// wants runs the original program. It returns the outputs and inputs of all calls.
func (c *comparison) wants(ctx context.Context, attempt int, record *callRecorder) (
	wants [][]*tensor.Value, values [][]tensor.Value, spec *pte.Program, err error) {
	var by []etrun.Option
	if record != nil {
		by = append(by, etrun.WithObserver(record))
	}
	from, err := c.open(ctx, c.path, c.original, attempt, by)
	if err != nil {
		return nil, nil, nil, err
	}
	defer from.Close()
	err = from.Once(ctx, func(_ int, st *session.Step) error {
		list, err := st.CloneOutputs()
		wants, values = append(wants, list), append(values, st.Values)
		return err
	})
	return wants, values, from.Spec(), err
}

// outputSteps returns how far a quantization step moves each output, by method.
func outputSteps(s *session.Session) map[string][]float64 {
	steps := make(map[string][]float64)
	for i := range s.Spec().Methods {
		m := &s.Spec().Methods[i]
		steps[m.Name] = verify.OutputSteps(s.Program, m)
	}
	return steps
}

// inOriginal explains an error of the original program, whose random inputs may not fit it, or be too large.
func inOriginal(err error, flag string) error {
	switch {
	case errors.Is(err, etrun.ErrMemory):
		return fmt.Errorf("%w; give smaller inputs with %s, or write without a comparison: --verify=false", err, flag)
	case isUnfit(err):
		return fmt.Errorf("%w; give inputs that the program accepts with %s, or write without a comparison: --verify=false", err, flag)
	}
	return err
}

// verifiedCalls are those of the command line, otherwise two calls of each lowered method: the second has the state of the first.
// given reports whether the command line has inputs.
func (l *lowerCommand) verifiedCalls(result *compile.Result) (calls session.Calls, given bool) {
	for i := range l.calls {
		if l.calls[i].Method != "" || len(l.calls[i].Inputs) > 0 {
			return l.calls, l.calls.HasInputs()
		}
	}
	for i := range result.Methods {
		if m := &result.Methods[i]; m.Why == "" {
			calls = append(calls, session.Call{Method: m.Name}, session.Call{Method: m.Name})
		}
	}
	return calls, false
}

// leastQuantized is the least ratio of signal to noise of outputs with quantized values before them, in dB. A value that rounds to
// another step changes the steps of later ones, and a scale for each row replaces one for all.
const leastQuantized = 30

// compareOutputs compares the outputs of one call, except those that are undecided.
func (l *lowerCommand) compareOutputs(r *verifiedReport, st *session.Step, wants []*tensor.Value, steps []float64, quantized bool,
	undecided []bool) error {
	got, err := st.Outputs()
	if err != nil {
		return err
	}
	if len(got) != len(wants) {
		return fmt.Errorf("%w: method %q: %s, want %d", cli.ErrDiffer, st.Name(), cli.Count(len(got), "output", "outputs"), len(wants))
	}
	for i, want := range wants {
		if i < len(undecided) && undecided[i] {
			r.Undecided++
			continue
		}
		allowed := l.allowed(want)
		if i < len(steps) {
			allowed.Abs += steps[i]
		}
		d := diff.Measure(got[i], want, allowed)
		var n noise
		if d.Differs != "" && quantized && n.add(got[i], want) == nil && decibels(n.signal, n.noise) >= leastQuantized {
			d.Differs = ""
		}
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
