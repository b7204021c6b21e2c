package exec

import (
	"context"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/trace"
)

// preparation prepares a method for a slot.
type preparation struct {
	prepare.Preparation
	observers *Observers
}

// run prepares the method.
func (p *preparation) run(ctx context.Context) (done *prepare.Method, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			done, err = nil, p.observers.Panic(fault, false)
		}
	}()
	name := p.Method.Name
	done, err = p.Run(ctx, reporter{p.observers.Watch(ctx, name), p.observers.Faults, name})
	return done, p.observers.Prepare(name, err)
}

// close frees what the method's instances have shared.
func (p *preparation) close() error {
	name := p.Method.Name
	return p.Close(reporter{p.observers.Watch(context.Background(), name), p.observers.Faults, name})
}

// reporter reports a preparation to observers. The watch may be nil.
type reporter struct {
	watch  *Watch
	faults Faults
	method string
}

func (r reporter) Stage(name string, bytes int64, err error) error {
	return r.watch.Stage(name, bytes, r.faults.Prepare(r.method, err))
}

func (r reporter) Compiled(delegate int, backend string, bytes int64, err error) error {
	return r.watch.stageOf(trace.StageCompile, delegate, backend, bytes, err)
}

func (r reporter) Memory(kind string, bytes int64) { r.watch.Memory(kind, bytes) }

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
func (w *Watch) constants(kind trace.Kind, name string, at ir.Origin, m *ir.Method, values []int) {
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
