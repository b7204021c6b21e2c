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
// end), and are overwritten only where the program updates its inputs.
func (m *Method) BindInput(i int, t *tensor.Tensor) error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	in, err := m.input(i)
	if err != nil {
		return err
	}
	if in.bound == nil || !m.plan.Callers[m.storageOfInput(i)] {
		return m.badInput(i, "BindInput", "a tensor input of a method loaded with WithBoundInputs")
	}
	if err := m.checkInput(i, in, t); err != nil {
		return err
	}
	if !slices.Equal(t.DimOrder, in.bound.DimOrder) {
		return m.badInput(i, fmt.Sprintf("dim order %v", t.DimOrder), fmt.Sprint(in.bound.DimOrder))
	}
	s := &m.ir.Storages[m.storageOfInput(i)]
	if want := m.ir.Alignment(s); !tensor.Aligned(t.Data, want) {
		return m.badInput(i, "bytes out of alignment", fmt.Sprintf("a multiple of %d", want))
	}
	if len(s.Values) > 1 && int64(len(t.Data)) < s.Bytes {
		return m.badInput(i, t.String(), fmt.Sprintf("all of its %d bytes, which other values share", s.Bytes))
	}
	if err := in.given.Tensor.Resize(t.Sizes); err != nil {
		return m.badInput(i, t.String(), err.Error())
	}
	m.bind(m.storageOfInput(i), t.Data)
	in.set = true
	return nil
}

// BindOutput makes the method write output i to b, from the next execute on: at
// least the output's bytes at its largest, aligned to its elements, from
// tensor.AlignedBytes. It has no effect on an output that is an input, state or a
// constant; bound is then false and Output has the bytes.
func (m *Method) BindOutput(i int, b []byte) (bound bool, err error) {
	if err := m.begin(); err != nil {
		return false, err
	}
	defer m.end()
	if i < 0 || i >= len(m.ir.Outputs) {
		return false, fmt.Errorf("method %q: output %d of %d: %w", m.ir.Name, i, len(m.ir.Outputs), ErrInput)
	}
	storage := m.ir.Values[m.ir.Outputs[i]].Storage
	if storage < 0 || !m.plan.Callers[storage] || m.ir.Storages[storage].Kind == ir.Input {
		return false, nil
	}
	s := &m.ir.Storages[storage]
	size := m.ir.Alignment(s)
	if int64(len(b)) < s.Bytes || !tensor.Aligned(b, size) {
		return false, fmt.Errorf("method %q: output %d: %d bytes, want %d aligned to %d: %w", m.ir.Name, i, len(b), s.Bytes, size, ErrInput)
	}
	m.bind(storage, b)
	return true, nil
}

func (m *Method) storageOfInput(i int) int { return m.ir.Values[m.ir.Inputs[i]].Storage }

// bind gives all values of a storage their bytes.
func (m *Method) bind(storage int, b []byte) {
	for _, v := range m.ir.Storages[storage].Values {
		m.values[v].Tensor.Bind(b)
	}
}

// unbound finds a storage that the caller has not brought yet.
func (m *Method) unbound() error {
	if !m.planning.BoundInputs && !m.planning.BoundOutputs {
		return nil
	}
	for i, callers := range m.plan.Callers {
		s := &m.ir.Storages[i]
		if t := m.values[s.Values[0]].Tensor; callers && s.Bytes > 0 && t.Storage() == nil {
			return fmt.Errorf("method %q: value %d has no memory: BindInput or BindOutput comes before Execute: %w", m.ir.Name, s.Values[0], ErrInput)
		}
	}
	return nil
}
