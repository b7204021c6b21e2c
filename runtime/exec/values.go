package exec

import (
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/trace"
)

// tellValues reports the values that step pc is about to read, or has written.
func (m *Instance) tellValues(pc int, kind trace.Kind) {
	w, s := &m.observed, &m.steps[pc]
	w.values = m.appendArgs(w.values[:0], &m.ir.Steps[pc], kind)
	if s.kind == ir.FreeCall {
		return
	}
	m.setValues(s, kind, s.name)
	w.tell()
}

// tellOutputs reports the outputs of a run.
func (m *Instance) tellOutputs() {
	w, now := &m.observed, trace.Now()
	w.values = w.values[:0]
	for _, v := range m.ir.Outputs {
		w.values = m.appendValue(w.values, v)
	}
	w.set(trace.Written, w.method, now, now, nil).Values = w.values
	w.tell()
}

// setValues starts an event for the values in m.observed.values.
func (m *Instance) setValues(s *step, kind trace.Kind, name string) *trace.Event {
	w, now := &m.observed, trace.Now()
	e := w.set(kind, name, now, now, nil)
	e.Chain, e.Instruction, e.Values = s.origin.Chain, s.origin.Index, w.values
	if s.unit != nil {
		e.Delegate, e.Backend = s.delegate, s.backend
	}
	return e
}

// appendArgs appends the arguments that a step reads or writes, in order.
func (m *Instance) appendArgs(dst []trace.Value, s *ir.Step, kind trace.Kind) []trace.Value {
	for i, v := range s.Args {
		if reads, writes := s.Uses(i); kind == trace.Read && reads || kind == trace.Written && writes {
			dst = m.appendValue(dst, v)
		}
	}
	return dst
}

// appendValue appends a value, or the items of a list. It skips None.
func (m *Instance) appendValue(dst []trace.Value, v int) []trace.Value {
	from, now := &m.ir.Values[v], &m.values[v]
	switch now.Kind {
	case tensor.None:
		return dst
	case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
		for _, item := range from.Items() {
			if item >= 0 {
				dst = m.appendValue(dst, item)
			}
		}
		return dst
	}
	name := ""
	if from.Tensor != nil {
		name = from.Tensor.Name
	}
	return append(dst, trace.Value{Index: v, Name: name, Value: now})
}

// setViews switches the reporting of inner values in the units that support it.
func (m *Instance) setViews(on bool) {
	for _, u := range m.units {
		if v, ok := u.(delegate.Viewer); ok {
			if on {
				v.View(m.tellNodeValues)
			} else {
				v.View(nil)
			}
		}
	}
}

// tellNodeValues reports the values that a node of the running delegate reads, or has written.
func (m *Instance) tellNodeValues(n *delegate.NodeValues) {
	kind := trace.Read
	if n.Written {
		kind = trace.Written
	}
	w := &m.observed
	if !w.wants.Has(kind) {
		return
	}
	w.values = w.values[:0]
	for i := range n.Values {
		w.values = append(w.values, trace.Value{Index: n.Values[i].Index, Value: &n.Values[i].Value})
	}
	m.setValues(&m.steps[w.pc], kind, n.Name).Index = n.Index
	w.tell()
}
