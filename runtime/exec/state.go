package exec

import (
	"fmt"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// stateKeyOf returns a storage's key; ok is false for state that other methods cannot refer to.
func (m *Instance) stateKeyOf(storage int) (k ir.StateKey, ok bool) {
	s := &m.ir.Storages[storage]
	t := m.ir.Values[s.Values[0]].Tensor
	for _, v := range s.Values {
		if named := m.ir.Values[v].Tensor; named.Name != "" {
			t = named
			break
		}
	}
	k = ir.StateKey{Name: t.Name, Bytes: t.NBytes(), DType: t.DType}
	if t.Name == "" {
		k.Offset = s.Offset
		return k, s.Planned && s.Arena == ir.SharedArena
	}
	return k, true
}

// sharedState returns, by storage, the state that this method shares with m.shares.
func (m *Instance) sharedState() map[int][]byte {
	found := make(map[int][]byte)
	if m.shares == nil {
		return found
	}
	theirs := make(map[ir.StateKey][]byte)
	for i, b := range m.shares.memory.state {
		if k, ok := m.shares.stateKeyOf(i); ok {
			theirs[k] = b
		}
	}
	for i := range m.ir.Storages {
		if m.ir.Storages[i].Kind != ir.State {
			continue
		}
		if k, ok := m.stateKeyOf(i); ok && theirs[k] != nil {
			found[i] = theirs[k]
		}
	}
	return found
}

// fillState sets state to its initial bytes, except shared state: its owner has done so, and may
// have run since.
func (m *Instance) fillState(shared map[int][]byte) {
	for storage, b := range m.memory.state {
		if shared[storage] == nil {
			copy(b, m.ir.Storages[storage].Data)
		}
	}
}

// Reset resets state, also that which other instances share, the random numbers, inputs and outputs.
func (m *Instance) Reset() error {
	if err := m.beginAll(); err != nil {
		return err
	}
	defer m.endAll()
	m.heap.clear()
	if err := m.heap.begin(); err != nil {
		return err
	}
	m.random.Seed(m.program.Seed, 0)
	for _, b := range m.memory.state {
		m.memory.zero(b)
	}
	m.fillState(nil)
	if m.memory.sparse && len(m.memory.state) > 0 {
		m.released()
	}
	m.unbindInputs()
	if err := m.resetSizes(); err != nil {
		return err
	}
	for i := range m.inputs {
		in := &m.inputs[i]
		in.set = in.bound == nil
		if m.ir.Values[m.ir.Inputs[i]].Kind == tensor.None {
			in.initial = tensor.Value{}
		}
	}
	m.executed = false
	if m.reference != nil {
		return m.reference.Reset()
	}
	return nil
}

// resetSizes sets the tensors that runs change to their declared sizes, in the method's memory or in that
// of the outputs that the caller has bound.
func (m *Instance) resetSizes() error {
	for _, v := range m.varying {
		t, from := m.values[v].Tensor, &m.ir.Values[v]
		var err error
		b := m.memory.bytes(m.plan, from.Storage)
		switch kind := m.ir.Storages[from.Storage].Kind; {
		case kind == ir.Heap || kind == ir.Constant: // unbounded.begin has set the views
			err = t.Resize(from.Tensor.Sizes)
		case b == nil: // unused, or not bound yet
			t.Bind(nil)
			err = t.Resize(from.Tensor.Sizes)
		default:
			err = t.BindSized(from.Tensor.Sizes, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// State returns a named mutable buffer.
func (m *Instance) State(name string) (t *tensor.Tensor, ok bool) {
	for v := range m.ir.Values {
		s := &m.ir.Values[v]
		if name != "" && s.Kind == tensor.KindTensor && s.Tensor.Name == name && m.ir.Storages[s.Storage].Kind == ir.State {
			return m.values[v].Tensor, true
		}
	}
	return nil, false
}

// StateTensors returns the mutable buffers, each with its declared sizes, in the order of their first use in the file.
func (m *Instance) StateTensors() (list []*tensor.Tensor) {
	for i := range m.ir.Storages {
		if s := &m.ir.Storages[i]; s.Kind == ir.State && len(s.Values) > 0 {
			list = append(list, m.values[s.Values[0]].Tensor)
		}
	}
	return list
}

// ResetState returns bytes of a tensor of StateTensors to their initial contents.
func (m *Instance) ResetState(t *tensor.Tensor, from, to int) error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	for i, b := range m.memory.state {
		if s := &m.ir.Storages[i]; len(s.Values) > 0 && m.values[s.Values[0]].Tensor == t {
			if from < 0 || to < from || to > len(b) {
				return m.program.Argument(fmt.Sprintf("method %q: state of %d bytes: want bytes within it, got %d to %d", m.ir.Name, len(b), from, to))
			}
			m.memory.zero(b[from:to])
			if len(s.Data) >= to {
				copy(b[from:to], s.Data[from:to])
			}
			return nil
		}
	}
	return m.program.Argument(fmt.Sprintf("method %q: no tensor of StateTensors", m.ir.Name))
}

// Shrink returns the memory of values that no run keeps to the system, if the sizes of inputs vary.
func (m *Instance) Shrink() error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	if m.poison != nil {
		return m.poison
	}
	if m.memory.sparse {
		for _, arena := range m.memory.arenas {
			cpu.Discard(arena)
		}
		m.forget()
	}
	if len(m.repeated) > 0 {
		for _, r := range m.repeated {
			r.forget()
		}
		m.released()
	}
	return nil
}

// forget unsets inputs and outputs, whose memory is another one now.
func (m *Instance) forget() {
	for i := range m.inputs {
		if in := &m.inputs[i]; in.bound != nil && !in.callers {
			in.set = false
		}
	}
	m.executed = false
	m.released()
}

// released reports memory that has gone back to the system. The next run allocates it again, and looks at it.
func (m *Instance) released() {
	m.most = 0
	m.reportMemory(&m.observed)
}

// CopyStateOf sets the state and the random numbers to those of another instance of the method: of each tensor of StateTensors the first n
// bytes of every stride bytes, or all with a stride of 0. An instance in which an operator panicked cannot be copied.
func (m *Instance) CopyStateOf(from *Instance, part func(t *tensor.Tensor) (stride, n int)) error {
	if m == from {
		return nil
	}
	if from.shared != m.shared {
		return m.program.Argument(fmt.Sprintf("method %q: state of a method of another program, or of another method", m.ir.Name))
	}
	if err := m.beginAll(); err != nil {
		return err
	}
	defer m.endAll()
	if err := from.beginAll(); err != nil {
		return err
	}
	defer from.endAll()
	return m.copyState(from, part)
}

func (m *Instance) copyState(from *Instance, part func(t *tensor.Tensor) (stride, n int)) error {
	if from.poison != nil {
		return from.poison
	}
	for i, to := range m.memory.state {
		b, stride, n := from.memory.state[i], len(to), len(to)
		if s := m.ir.Storages[i].Values; len(s) > 0 {
			if parts, size := part(from.values[s[0]].Tensor); parts > 0 {
				stride, n = parts, size
			}
		}
		for at := 0; at < len(to); at += stride {
			copy(to[at:min(at+n, len(to))], b[at:])
		}
	}
	*m.random = *from.random
	if m.reference != nil {
		return m.reference.copyState(from.reference, part)
	}
	return nil
}
