package etrun

import (
	"context"
	"fmt"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Run sets all inputs, runs the method, and returns the elements of output 0 as [Get] does; use Get
// for further outputs. Each input is one of
//
//   - a slice of elements, passed to [Set] without sizes;
//   - a *tensor.Tensor, for other sizes or another dim order;
//   - an int, int64, float64, bool or string, nil for None, or a tensor.Value.
//
// Errors are *InputError, *InstructionError and *OutputError.
func Run[T tensor.Element](ctx context.Context, m *Method, inputs ...any) ([]T, error) {
	if len(inputs) != m.NumInputs() {
		return nil, faults{}.Input(m.Name(), min(len(inputs), m.NumInputs()), fmt.Sprintf("%d inputs", len(inputs)), fmt.Sprintf("%d inputs", m.NumInputs()))
	}
	for i, x := range inputs {
		if err := m.setAny(i, x); err != nil {
			return nil, err
		}
	}
	if err := m.Execute(ctx); err != nil {
		return nil, err
	}
	return Get[T](m, 0)
}

// setAny sets an input from a Go value.
func (m *Method) setAny(i int, x any) error {
	switch x := x.(type) {
	case *tensor.Tensor:
		return m.SetInput(i, x)
	case tensor.Value:
		return m.SetValue(i, x)
	case nil:
		return m.SetValue(i, tensor.Value{})
	case int:
		return m.SetValue(i, tensor.IntValue(int64(x)))
	case int64:
		return m.SetValue(i, tensor.IntValue(x))
	case float64:
		return m.SetValue(i, tensor.DoubleValue(x))
	case bool:
		return m.SetValue(i, tensor.BoolValue(x))
	case string:
		return m.SetValue(i, tensor.StringValue(x))
	}
	return m.setSlice(i, x)
}

// setSlice sets an input from a slice of elements.
func (m *Method) setSlice(i int, x any) error {
	switch x := x.(type) {
	case []float32:
		return Set(m, i, x)
	case []float64:
		return Set(m, i, x)
	case []int64:
		return Set(m, i, x)
	case []int32:
		return Set(m, i, x)
	case []int16:
		return Set(m, i, x)
	case []int8:
		return Set(m, i, x)
	case []uint8:
		return Set(m, i, x)
	case []uint16:
		return Set(m, i, x)
	case []uint32:
		return Set(m, i, x)
	case []uint64:
		return Set(m, i, x)
	case []bool:
		return Set(m, i, x)
	case []complex64:
		return Set(m, i, x)
	case []complex128:
		return Set(m, i, x)
	}
	return faults{}.Input(m.Name(), i, fmt.Sprintf("a %T", x), "a slice of elements, a *tensor.Tensor, or a number, bool or string")
}
