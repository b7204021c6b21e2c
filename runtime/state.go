package runtime

import (
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// sharedArena is the arena in which the exporter puts state that several methods
// share (memory_id 2).
const sharedArena = 1

// stateKey is what makes state of two methods the same: its name or, where the file
// has none, its place in the shared arena; and its size and type.
type stateKey struct {
	name   string
	offset int64
	bytes  int64
	dtype  tensor.DType
}

// stateKeyOf is a storage's key; ok is false for state that nobody else can name.
func (m *Method) stateKeyOf(storage int) (k stateKey, ok bool) {
	t := m.stateTensor(storage)
	k = stateKey{name: t.Name, bytes: t.NBytes(), dtype: t.DType}
	if t.Name == "" {
		k.offset = t.Offset
		return k, t.Storage == pte.Planned && t.Arena == sharedArena
	}
	return k, true
}

// sharedState finds, by storage, the bytes of state that the method whose state this
// one uses has already.
func (m *Method) sharedState() map[int][]byte {
	found := make(map[int][]byte)
	if m.shares == nil {
		return found
	}
	theirs := make(map[stateKey][]byte)
	for i, b := range m.shares.memory.state {
		if k, ok := m.shares.stateKeyOf(i); ok {
			theirs[k] = b
		}
	}
	for i := range m.plan.Flow.Storages {
		if m.plan.Flow.Storages[i].Kind != ir.State {
			continue
		}
		if k, ok := m.stateKeyOf(i); ok && theirs[k] != nil {
			found[i] = theirs[k]
		}
	}
	return found
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

// fillState gives state its initial bytes, but for that in shared: its owner did,
// and may have executed since.
func (m *Method) fillState(shared map[int][]byte) {
	for _, s := range m.initial {
		if shared[s.storage] == nil {
			copy(m.memory.state[s.storage], s.bytes)
		}
	}
}

// Reset gives mutable state its initial bytes again, also where other methods share
// it. Inputs must be set again afterwards.
func (m *Method) Reset() error {
	if err := m.beginAll(); err != nil {
		return err
	}
	defer m.endAll()
	for _, a := range m.memory.arenas {
		clear(a)
	}
	for _, b := range m.memory.state {
		clear(b)
	}
	m.fillState(nil)
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
