package runtime

import (
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// sharedArena is the arena in which the exporter puts state that several methods
// share (memory_id 2).
const sharedArena = 1

// sharedState finds the bytes of a state storage in the method whose state this one
// uses, nil where there is none.
func (m *Method) sharedState(storage int) []byte {
	if m.shares == nil || m.shares.program != m.program {
		return nil
	}
	mine := m.stateTensor(storage)
	other := m.shares
	for i := range other.plan.Flow.Storages {
		if other.plan.Flow.Storages[i].Kind != ir.State {
			continue
		}
		theirs := other.stateTensor(i)
		if theirs.NBytes() == mine.NBytes() && theirs.DType == mine.DType && samePlace(mine, theirs) {
			return other.memory.state[i]
		}
	}
	return nil
}

func samePlace(a, b *pte.Tensor) bool {
	if a.Name != "" || b.Name != "" {
		return a.Name == b.Name
	}
	return a.Storage == pte.Planned && b.Storage == pte.Planned && a.Arena == sharedArena && b.Arena == sharedArena && a.Offset == b.Offset
}

// stateTensor describes a state storage by its member with a name, or its first.
func (m *Method) stateTensor(storage int) *pte.Tensor {
	values := m.plan.Flow.Storages[storage].Values
	for _, v := range values {
		if t := m.spec.Values[v].Tensor; t.Name != "" {
			return t
		}
	}
	return m.spec.Values[values[0]].Tensor
}

// findInitialState lists the state that starts with bytes of a file. The rest, and
// every arena, starts with zeros.
func (m *Method) findInitialState(l *loader) {
	for v, b := range l.bytes {
		if t := m.spec.Values[v].Tensor; t.Storage == pte.PlannedInit || t.Storage == pte.ExternalPlanned {
			if s := l.flow.Of[v]; l.flow.Storages[s].Kind == ir.State {
				m.initial = append(m.initial, initialState{s, b})
			}
		}
	}
}

func (m *Method) fillState() {
	if m.shares != nil {
		return // the owner did, and may have executed since
	}
	for _, s := range m.initial {
		copy(m.memory.state[s.storage], s.bytes)
	}
}

// Reset gives mutable state its initial bytes again, also where other methods share
// it. Inputs must be set again afterwards.
func (m *Method) Reset() error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	for _, a := range m.memory.arenas {
		clear(a)
	}
	for _, b := range m.memory.state {
		clear(b)
	}
	for _, s := range m.initial {
		copy(m.memory.state[s.storage], s.bytes)
	}
	for v := range m.values { // dynamic tensors start at their bounds
		if t := m.values[v].Tensor; m.spec.Values[v].Kind == tensor.KindTensor && t.Dynamism == tensor.DynamicBound {
			if err := t.Resize(m.spec.Values[v].Tensor.Sizes); err != nil {
				return err
			}
		}
	}
	for i := range m.inputs {
		m.inputs[i].set = m.inputs[i].bound == nil
	}
	return nil
}

// State returns a named mutable buffer (ExecuTorch attribute), nil where the method
// has none of that name. Writing to it while the method executes is a data race.
func (m *Method) State(name string) *tensor.Tensor {
	for v := range m.spec.Values {
		t := m.spec.Values[v].Tensor
		if m.spec.Values[v].Kind == tensor.KindTensor && t.Name == name && name != "" &&
			m.plan.Flow.Storages[m.plan.Flow.Of[v]].Kind == ir.State {
			return m.values[v].Tensor
		}
	}
	return nil
}
