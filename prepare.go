package etrun

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/trace"
)

// preparing returns the options of loads.
func (c *config) preparing() prepare.Options {
	return prepare.Options{Backends: c.backends, Operators: c.operators, Known: DefaultOperators(), Limits: c.memoryLimits(), Plan: c.planning(),
		Strict: c.strict, Rewrite: c.lowering.rewrites(), Lower: c.lowering.lowers(), LowerAll: c.lowering.lowersAll(),
		AsWritten: c.asWritten, KeepConstants: c.keepConstants, Observed: c.wants.Any(trace.Values)}
}

// memoryLimits returns the limits of an instance.
func (c *config) memoryLimits() prepare.Limits {
	return prepare.Limits{Planned: c.limits.PlannedBytes, Total: c.maxMemory}
}

// preparation prepares a method for a slot.
type preparation struct {
	prepare.Preparation
	config *config
}

// run prepares the method.
func (p *preparation) run(ctx context.Context) (done *prepare.Method, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			done, err = nil, &PanicError{Value: fault, Stack: debug.Stack()}
		}
	}()
	name := p.Method.Name
	done, err = p.Run(ctx, reporter{p.config.watch(ctx, name), name})
	return done, preparationError(name, err)
}

// close frees what the method's instances have shared.
func (p *preparation) close() error {
	name := p.Method.Name
	return p.Close(reporter{p.config.watch(context.Background(), name), name})
}

// preparationError returns an error of package prepare as one of this package.
func preparationError(method string, err error) error {
	if e, ok := errors.AsType[*ir.StepError](err); ok {
		return &InstructionError{Class: classOf(e.Err, ErrFormat), Method: method, Chain: e.Origin.Chain, Index: e.Origin.Index, Op: e.Name, Err: e.Err}
	}
	if e, ok := errors.AsType[*prepare.MissingError](err); ok {
		missing := &MissingError{Backends: e.Backends, Data: e.Data}
		for _, o := range e.Operators {
			missing.Operators = append(missing.Operators, MissingOperator(o))
		}
		return missing
	}
	if e, ok := errors.AsType[*prepare.MemoryError](err); ok {
		return memoryError(e)
	}
	return err
}

func memoryError(from *prepare.MemoryError) *MemoryError {
	e := &MemoryError{Want: from.Want, Limit: from.Limit}
	for _, part := range from.Parts {
		e.Parts = append(e.Parts, MemoryPart(part))
	}
	return e
}

// reporter reports a preparation to observers. The watch may be nil.
type reporter struct {
	*watch
	method string
}

func (r reporter) Stage(name string, bytes int64, err error) error {
	return r.stage(name, bytes, preparationError(r.method, err))
}

func (r reporter) Compiled(delegate int, backend string, bytes int64, err error) error {
	return r.stageOf(trace.StageCompile, delegate, backend, bytes, err)
}

func (r reporter) Memory(kind string, bytes int64) { r.memory(kind, bytes) }

// Folded reports the values that steps executed at load read and wrote.
func (r reporter) Folded(before, after *ir.Method, folded []lower.Folded) {
	w := r.watch
	if w == nil || !w.wants.Any(trace.Values) {
		return
	}
	at := make(map[ir.Origin]bool, len(folded))
	for i := range folded {
		at[folded[i].Origin] = true
	}
	for i := range before.Steps {
		if s := &before.Steps[i]; at[s.Origin] {
			w.constants(trace.Read, before.StepName(s), s.Origin, after, s.Reads)
			w.constants(trace.Written, before.StepName(s), s.Origin, after, s.Writes)
		}
	}
}

// constants reports values of a step that were constants when it was executed at load.
func (w *watch) constants(kind trace.Kind, name string, at ir.Origin, m *ir.Method, values []int) {
	w.values = w.values[:0]
	for _, v := range values {
		w.values = append(w.values, constantValue(m, v))
	}
	now := trace.Now()
	e := w.set(kind, name, now, now, nil)
	e.Chain, e.Instruction, e.Values = at.Chain, at.Index, w.values
	w.tell()
}

// constantValue returns a tensor with known bytes.
func constantValue(m *ir.Method, v int) trace.Value {
	d := m.Values[v].Tensor
	t := tensor.Make(d.DType, d.Sizes, d.DimOrder, tensor.Static)
	t.Const = true
	t.Bind(m.Storages[m.Values[v].Storage].Data)
	value := tensor.TensorValue(t)
	return trace.Value{Index: v, Name: d.Name, Value: &value}
}
