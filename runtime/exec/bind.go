package exec

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// BindInput makes the instance read input i from t's memory, until it is set or bound again. constant means that its contents do not change.
func (m *Instance) BindInput(i int, t *tensor.Tensor, constant bool) error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	in, err := m.tensorInput(i, t)
	if err != nil {
		return err
	}
	storage := m.ir.Values[m.ir.Inputs[i]].Storage
	s := &m.ir.Storages[storage]
	if s.Kind != ir.Input {
		return m.badInput(i, "BindInput", "SetInput: its memory cannot be replaced, since its sizes have no bound or it is state")
	}
	if m.memory.owns(t.Data) {
		return m.badInput(i, "memory of this method", "SetInput, or other memory")
	}
	if !slices.Equal(t.DimOrder, in.bound.DimOrder) {
		return m.badInput(i, fmt.Sprintf("dim order %v", t.DimOrder), fmt.Sprint(in.bound.DimOrder))
	}
	if want := m.ir.Alignment(s); !tensor.Aligned(t.Data, want) {
		return m.badInput(i, "unaligned memory", fmt.Sprintf("memory aligned to %d bytes", want))
	}
	if len(s.Values) > 1 && int64(len(t.Data)) < s.Bytes {
		return m.badInput(i, t.String(), fmt.Sprintf("all %d bytes of a tensor that other values share", s.Bytes))
	}
	if err := in.initial.Tensor.BindSized(t.Sizes, t.Data); err != nil {
		return m.badInput(i, err.Error(), in.want())
	}
	m.bindInputs(storage, t.Data, true)
	in.set, in.constant = true, constant
	in.version++
	return nil
}

// bindInputs binds a storage of inputs to the caller's or to the method's own memory.
func (m *Instance) bindInputs(storage int, b []byte, callers bool) {
	m.bind(storage, b)
	for i, v := range m.ir.Inputs {
		if in := &m.inputs[i]; m.ir.Values[v].Storage == storage {
			in.callers, in.constant = callers, false
			if in.kept != nil {
				in.kept.set = false
			}
		}
	}
}

// unbindInputs makes inputs use the method's own memory again, where they have some.
func (m *Instance) unbindInputs() {
	for i, v := range m.ir.Inputs {
		if storage := m.ir.Values[v].Storage; m.inputs[i].callers && !m.plan.Callers[storage] {
			m.bindInputs(storage, m.memory.bytes(m.plan, storage), false)
		}
	}
}

// BindOutput makes the instance write output i to t's memory, from the next run on.
func (m *Instance) BindOutput(i int, t *tensor.Tensor) error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	if i < 0 || i >= len(m.ir.Outputs) {
		return m.badOutput(i, "the method has %d outputs", len(m.ir.Outputs))
	}
	v := &m.ir.Values[m.ir.Outputs[i]]
	if !m.binds(i) {
		return m.badOutput(i, "cannot be bound: it is an input, state, a constant or not a tensor, or the method was loaded without WithBoundOutputs")
	}
	if t == nil || t.DType != v.Tensor.DType || !slices.Equal(t.DimOrder, v.Tensor.DimOrder) {
		return m.badOutput(i, "got %v, want %v %s in dim order %v", t, v.Tensor.DType, tensor.FormatSizes(v.Tensor.Sizes), v.Tensor.DimOrder)
	}
	s := &m.ir.Storages[v.Storage]
	if size := m.ir.Alignment(s); int64(len(t.Data)) < s.Bytes || !tensor.Aligned(t.Data, size) {
		return m.badOutput(i, "got %d bytes, want %d aligned to %d", len(t.Data), s.Bytes, size)
	}
	m.bind(v.Storage, t.Data)
	return nil
}

// CanBindOutput reports whether output i can be bound with BindOutput.
func (m *Instance) CanBindOutput(i int) bool { return i >= 0 && i < len(m.ir.Outputs) && m.binds(i) }

func (m *Instance) binds(i int) bool {
	storage := m.ir.Values[m.ir.Outputs[i]].Storage
	return storage >= 0 && m.plan.Callers[storage] && m.ir.Storages[storage].Kind != ir.Input
}

// bind sets the bytes of all values of a storage.
func (m *Instance) bind(storage int, b []byte) {
	if m.plan.Callers[storage] {
		m.memory.callers[storage] = b
	}
	for _, v := range m.ir.Storages[storage].Values {
		m.values[v].Tensor.Bind(b)
	}
}

// unbound returns an error for an output that has not been bound. For inputs, the set flag covers
// this.
func (m *Instance) unbound() error {
	if !m.planning.BoundOutputs {
		return nil
	}
	for i, v := range m.ir.Outputs {
		if m.binds(i) && m.ir.Storages[m.ir.Values[v].Storage].Bytes > 0 && m.values[v].Tensor.Storage() == nil {
			return m.badOutput(i, "not bound: call BindOutput before Execute")
		}
	}
	return nil
}
