package etrun

import (
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
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
	s := &m.ir.Storages[storage]
	t := m.ir.Values[s.Values[0]].Tensor
	for _, v := range s.Values {
		if named := m.ir.Values[v].Tensor; named.Name != "" {
			t = named
			break
		}
	}
	k = stateKey{name: t.Name, bytes: t.NBytes(), dtype: t.DType}
	if t.Name == "" {
		k.offset = s.Offset
		return k, s.Planned && s.Arena == sharedArena
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

// fillState gives state its initial bytes, but not to what is in shared: its
// owner did, and may have executed since.
func (m *Method) fillState(shared map[int][]byte) {
	for storage, b := range m.memory.state {
		if shared[storage] == nil {
			copy(b, m.ir.Storages[storage].Data)
		}
	}
}

// Reset makes the method as it was loaded: mutable state has its initial bytes again, also
// where other methods share it, random numbers begin anew, no input is set and no output
// is there.
func (m *Method) Reset() error {
	if err := m.beginAll(); err != nil {
		return err
	}
	defer m.endAll()
	m.heap.clear()
	if err := m.heap.begin(); err != nil {
		return err
	}
	m.random.Seed(m.program.config.seed, 0)
	for _, b := range m.memory.state {
		clear(b)
	}
	m.fillState(nil)
	for v := range m.values { // dynamic tensors start at their bounds
		if t := m.values[v].Tensor; m.ir.Values[v].Kind == tensor.KindTensor && t.Dynamism != tensor.Static && !t.Const {
			if err := t.Resize(m.ir.Values[v].Tensor.Sizes); err != nil {
				return err
			}
		}
	}
	for i := range m.inputs {
		in := &m.inputs[i]
		in.set = in.bound == nil
		if m.ir.Values[m.ir.Inputs[i]].Kind == tensor.None {
			in.given = tensor.Value{}
		}
	}
	m.executed = false
	if m.reference != nil {
		return m.reference.Reset()
	}
	return nil
}

// State is a named mutable buffer (ExecuTorch attribute); ok is false where the method has
// none of that name. Writing to it while the method executes is a data race.
func (m *Method) State(name string) (t *tensor.Tensor, ok bool) {
	for v := range m.ir.Values {
		s := &m.ir.Values[v]
		if name != "" && s.Kind == tensor.KindTensor && s.Tensor.Name == name && m.ir.Storages[s.Storage].Kind == ir.State {
			return m.values[v].Tensor, true
		}
	}
	return nil, false
}
