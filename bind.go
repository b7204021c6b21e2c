package etrun

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// WithBoundInputs leaves the inputs' bytes to the caller: nothing is copied and the
// arena is smaller by them. Each tensor input must be given by BindInput.
func WithBoundInputs() MethodOption { return func(m *Method) { m.planning.BoundInputs = true } }

// WithBoundOutputs leaves the bytes of outputs to the caller, but for those that are
// inputs, state or constants. Each must be given by BindOutput.
func WithBoundOutputs() MethodOption { return func(m *Method) { m.planning.BoundOutputs = true } }

// BindInput makes the method read input i from t's own bytes, from the next execute
// on. t has the input's type, dim order and sizes (or, for a dynamic input, sizes
// within its bounds). Its bytes must stay unchanged while the method executes, come
// from tensor.New or tensor.AlignedBytes (delegates may read a few bytes past the
// end), and are overwritten only where the program updates its inputs. Errors are
// *InputError.
func (m *Method) BindInput(i int, t *tensor.Tensor) error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	in, err := m.tensorInput(i, t)
	if err != nil {
		return err
	}
	if !in.callers {
		return m.badInput(i, "BindInput", "SetInput: the method was loaded without WithBoundInputs")
	}
	if !slices.Equal(t.DimOrder, in.bound.DimOrder) {
		return m.badInput(i, fmt.Sprintf("dim order %v", t.DimOrder), fmt.Sprint(in.bound.DimOrder))
	}
	storage := m.ir.Values[m.ir.Inputs[i]].Storage
	s := &m.ir.Storages[storage]
	if want := m.ir.Alignment(s); !tensor.Aligned(t.Data, want) {
		return m.badInput(i, "bytes out of alignment", fmt.Sprintf("a multiple of %d", want))
	}
	if len(s.Values) > 1 && int64(len(t.Data)) < s.Bytes {
		return m.badInput(i, t.String(), fmt.Sprintf("all of its %d bytes, which other values share", s.Bytes))
	}
	if err := in.given.Tensor.Resize(t.Sizes); err != nil {
		return m.badInput(i, err.Error(), in.want())
	}
	m.bind(storage, t.Data)
	in.set = true
	return nil
}

// BindOutput makes the method write output i to t's own bytes, from the next execute on.
// t has the output's type and dim order and, where its sizes vary, the largest ones; its
// bytes come from tensor.New or tensor.AlignedBytes. Its sizes stay as they are: those of
// a dynamic output are in Output. Outputs that are inputs, state or constants have their
// bytes already: [Method.Binds] tells. Errors are *OutputError.
func (m *Method) BindOutput(i int, t *tensor.Tensor) error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	if i < 0 || i >= len(m.ir.Outputs) {
		return m.badOutput(i, "the method has %d", len(m.ir.Outputs))
	}
	v := &m.ir.Values[m.ir.Outputs[i]]
	if !m.binds(i) {
		return m.badOutput(i, "it is not one to bind: an input, state, a constant, no tensor, or loaded without WithBoundOutputs")
	}
	if t == nil || t.DType != v.Tensor.DType || !slices.Equal(t.DimOrder, v.Tensor.DimOrder) {
		return m.badOutput(i, "it is %v%v in dim order %v, not %v", v.Tensor.DType, v.Tensor.Sizes, v.Tensor.DimOrder, t)
	}
	s := &m.ir.Storages[v.Storage]
	if size := m.ir.Alignment(s); int64(len(t.Data)) < s.Bytes || !tensor.Aligned(t.Data, size) {
		return m.badOutput(i, "%d bytes, want %d aligned to %d", len(t.Data), s.Bytes, size)
	}
	m.bind(v.Storage, t.Data)
	return nil
}

// Binds reports whether output i is written where BindOutput says.
func (m *Method) Binds(i int) bool { return i >= 0 && i < len(m.ir.Outputs) && m.binds(i) }

func (m *Method) binds(i int) bool {
	storage := m.ir.Values[m.ir.Outputs[i]].Storage
	return storage >= 0 && m.plan.Callers[storage] && m.ir.Storages[storage].Kind != ir.Input
}

// bind gives all values of a storage their bytes.
func (m *Method) bind(storage int, b []byte) {
	for _, v := range m.ir.Storages[storage].Values {
		m.values[v].Tensor.Bind(b)
	}
}

// unbound finds an output that has no memory yet. An input without is not set.
func (m *Method) unbound() error {
	if !m.planning.BoundOutputs {
		return nil
	}
	for i, v := range m.ir.Outputs {
		if m.binds(i) && m.ir.Storages[m.ir.Values[v].Storage].Bytes > 0 && m.values[v].Tensor.Storage() == nil {
			return m.badOutput(i, "it has no memory: BindOutput comes before Execute")
		}
	}
	return nil
}
