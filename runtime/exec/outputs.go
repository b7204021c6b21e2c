package exec

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// NumOutputs returns the number of outputs.
func (m *Instance) NumOutputs() int { return len(m.ir.Outputs) }

// Output returns output i of the last run, with its elements in memory order.
func (m *Instance) Output(i int) (tensor.Value, error) {
	v, err := m.output(i)
	if err != nil {
		return tensor.Value{}, err
	}
	return *v, nil
}

func (m *Instance) output(i int) (*tensor.Value, error) {
	if err := m.begin(); err != nil {
		return nil, err
	}
	defer m.end()
	if i < 0 || i >= len(m.ir.Outputs) {
		return nil, m.badOutput(i, "the method has %d outputs", len(m.ir.Outputs))
	}
	if !m.executed {
		return nil, m.badOutput(i, "no run has succeeded yet")
	}
	return m.lasting(i), nil
}

// lasting returns the value of output i, as a copy if its bytes are those of a file, which may be closed.
func (m *Instance) lasting(i int) *tensor.Value {
	v := &m.values[m.ir.Outputs[i]]
	if m.transient || v.Kind != tensor.KindTensor || !m.ir.Storages[m.ir.Values[m.ir.Outputs[i]].Storage].Kind.IsConstant() {
		return v
	}
	if m.constants == nil {
		m.constants = make([]tensor.Value, len(m.ir.Outputs))
	}
	own := &m.constants[i]
	if own.Tensor == nil || !bytes.Equal(own.Tensor.Data, v.Tensor.Data) || !slices.Equal(own.Tensor.Sizes, v.Tensor.Sizes) {
		t := tensor.Make(v.Tensor.DType, v.Tensor.Sizes, v.Tensor.DimOrder, tensor.Static)
		t.Const = v.Tensor.Const
		t.Bind(append(tensor.AlignedBytes(len(v.Tensor.Data))[:0], v.Tensor.Data...))
		*own = tensor.TensorValue(t)
	}
	return own
}

// Get returns the elements of output i in logical order, or a number or bool. For tensors only the first call allocates.
func Get[T tensor.Element](m *Instance, i int) ([]T, error) {
	v, err := m.output(i)
	if err != nil {
		return nil, err
	}
	if v.Kind != tensor.KindTensor {
		if x, ok := scalar[T](v); ok {
			return []T{x}, nil
		}
		return nil, m.badOutput(i, "got %s, want a tensor of %v", describe(*v), tensor.TypeOf[T]())
	}
	t := v.Tensor
	if !tensor.Stores[T](t.DType) {
		return nil, m.badOutput(i, "got %v, want elements of %v", t, tensor.TypeOf[T]())
	}
	if t.IsContiguous() {
		return tensor.View[T](t.Data), nil
	}
	logical, err := m.inLogicalOrder(i, t)
	return tensor.View[T](logical), err
}

// scalar returns a number or bool in its own type.
func scalar[T tensor.Element](v *tensor.Value) (x T, ok bool) {
	var boxed any
	switch v.Kind {
	case tensor.KindInt:
		boxed = v.Int
	case tensor.KindDouble:
		boxed = v.Double
	case tensor.KindBool:
		boxed = v.Bool
	}
	x, ok = boxed.(T)
	return x, ok
}

// inLogicalOrder returns the elements of output i in a buffer that the method keeps for this
// purpose.
func (m *Instance) inLogicalOrder(i int, t *tensor.Tensor) ([]byte, error) {
	if m.logical == nil {
		m.logical = make([]*tensor.Tensor, len(m.ir.Outputs))
	}
	if m.logical[i] == nil {
		m.logical[i] = tensor.Make(t.DType, t.Sizes, nil, tensor.DynamicUnbound)
	}
	if err := m.logical[i].Resize(t.Sizes); err != nil {
		return nil, m.badOutput(i, "in logical order: %v", err)
	}
	tensor.CopyLayout(m.logical[i], t)
	return m.logical[i].Data, nil
}

func (m *Instance) badOutput(i int, format string, args ...any) error {
	return m.program.Output(m.ir.Name, i, fmt.Sprintf(format, args...))
}
