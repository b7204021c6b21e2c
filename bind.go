package etrun

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// WithBoundInputs makes the caller provide the memory of tensor inputs: the arena is smaller. Each
// tensor input must be set with BindInput.
func WithBoundInputs() MethodOption { return func(m *Method) { m.planning.BoundInputs = true } }

// WithBoundOutputs lets the caller provide the memory of tensor outputs, except those that are
// inputs, state or constants. Each must be set with BindOutput.
func WithBoundOutputs() MethodOption { return func(m *Method) { m.planning.BoundOutputs = true } }

// BindInput makes the method read input i directly from t's memory, which saves the copy that
// SetInput makes, until the input is set or bound again. t must have the input's type, dim order
// and sizes (or, for a dynamic input, sizes within its bounds). Its memory must come from tensor.New
// or tensor.AlignedBytes, because delegates may read a few bytes past the end, and must not change
// during a run. It must not be this method's own memory, such as an output. The method writes to it
// only if the program updates the input; the next run then starts from the updated elements. Inputs
// whose sizes have no bound cannot be bound. Reset ends the binding, unless the method was loaded
// with WithBoundInputs. Errors are *InputError and leave the input unchanged.
func (m *Method) BindInput(i int, t *tensor.Tensor) error {
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
	if err := in.given.Tensor.BindSized(t.Sizes, t.Data); err != nil {
		return m.badInput(i, err.Error(), in.want())
	}
	m.bindInputs(storage, t.Data, true)
	in.set = true
	return nil
}

// bindInputs binds a storage of inputs to the caller's or to the method's own memory.
func (m *Method) bindInputs(storage int, b []byte, callers bool) {
	m.bind(storage, b)
	for i, v := range m.ir.Inputs {
		if in := &m.inputs[i]; m.ir.Values[v].Storage == storage {
			in.callers = callers
			if in.kept != nil {
				in.kept.set = false
			}
		}
	}
}

// unbindInputs makes inputs use the method's own memory again, where they have some.
func (m *Method) unbindInputs() {
	for i, v := range m.ir.Inputs {
		if storage := m.ir.Values[v].Storage; m.inputs[i].callers && !m.plan.Callers[storage] {
			m.bindInputs(storage, m.memory.bytes(m.plan, storage), false)
		}
	}
}

// BindOutput makes the method write output i directly to t's memory, starting with the next run. t
// must have the output's type and dim order and, if its sizes vary, the largest sizes. Its memory
// must come from tensor.New or tensor.AlignedBytes. t's own sizes do not change: [Method.Output]
// returns the current sizes of a dynamic output. Outputs that are inputs, state or constants cannot
// be bound; see [Method.CanBindOutput]. Errors are *OutputError.
func (m *Method) BindOutput(i int, t *tensor.Tensor) error {
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
func (m *Method) CanBindOutput(i int) bool { return i >= 0 && i < len(m.ir.Outputs) && m.binds(i) }

func (m *Method) binds(i int) bool {
	storage := m.ir.Values[m.ir.Outputs[i]].Storage
	return storage >= 0 && m.plan.Callers[storage] && m.ir.Storages[storage].Kind != ir.Input
}

// bind sets the bytes of all values of a storage.
func (m *Method) bind(storage int, b []byte) {
	if m.plan.Callers[storage] {
		m.memory.callers[storage] = b
	}
	for _, v := range m.ir.Storages[storage].Values {
		m.values[v].Tensor.Bind(b)
	}
}

// unbound returns an error for an output that has not been bound. For inputs, the set flag covers
// this.
func (m *Method) unbound() error {
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
