package etrun

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// makeInputs prepares the inputs. Those that are no tensors have their value already.
func (m *Method) makeInputs() {
	m.inputs = make([]input, len(m.ir.Inputs))
	clobbered := m.clobbered()
	for i, v := range m.ir.Inputs {
		in := &m.inputs[i]
		in.value = &m.values[v]
		in.given = m.values[v]
		if m.values[v].Kind != tensor.KindTensor {
			in.set = true
			continue
		}
		in.bound = m.ir.Values[v].Tensor
		storage := m.ir.Values[v].Storage
		in.clobber = clobbered[storage] && !m.plan.Callers[storage]
	}
}

// clobbered marks the storages in which an execute leaves other bytes than it found:
// an instruction writes or frees them, or others take their place.
func (m *Method) clobbered() []bool {
	marks := make([]bool, len(m.ir.Storages))
	for i := range m.ir.Steps {
		s := &m.ir.Steps[i]
		if s.Kind == ir.FreeCall && m.ir.Values[s.Args[0]].Kind == tensor.KindTensor {
			marks[m.ir.Values[s.Args[0]].Storage] = true
		}
		for _, list := range [...][]int{s.Writes, s.Updates} {
			for _, v := range list {
				storage := m.ir.Values[v].Storage
				marks[storage] = marks[storage] || !s.IsView()
			}
		}
	}
	m.plan.MarkShared(marks)
	return marks
}

// NumInputs is the number of inputs.
func (m *Method) NumInputs() int { return len(m.inputs) }

// NumOutputs is the number of outputs.
func (m *Method) NumOutputs() int { return len(m.ir.Outputs) }

// SetInput copies a tensor into input i. Its type must be the input's; its sizes
// must be the input's or, for a dynamic input, within its bounds. A dim order other
// than the input's is converted. Errors are *InputError and leave the input as it was.
func (m *Method) SetInput(i int, t *tensor.Tensor) error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	in, err := m.input(i)
	if err != nil {
		return err
	}
	if in.bound == nil {
		return m.badInput(i, "a tensor", in.given.Kind.String())
	}
	if err := m.checkInput(i, in, t); err != nil {
		return err
	}
	dst := in.given.Tensor
	if m.plan.Callers[m.storageOfInput(i)] {
		return m.badInput(i, "a tensor to copy", "BindInput: the method was loaded with WithBoundInputs")
	}
	if t.NBytes() > len(dst.Storage()) {
		m.heap.reckon()
	}
	if err := dst.Resize(t.Sizes); err != nil {
		return m.badInput(i, t.String(), err.Error())
	}
	tensor.CopyLayout(dst, t)
	in.set = true
	return nil
}

func (m *Method) input(i int) (*input, error) {
	if i < 0 || i >= len(m.inputs) {
		return nil, m.badInput(i, "an index", fmt.Sprintf("one of %d inputs", len(m.inputs)))
	}
	return &m.inputs[i], nil
}

func (m *Method) badInput(i int, got, want string) error {
	return &InputError{Method: m.ir.Name, Index: i, Got: got, Want: want}
}

// checkInput compares a tensor with the declared one.
func (m *Method) checkInput(i int, in *input, t *tensor.Tensor) error {
	want := fmt.Sprintf("%v%v", in.bound.DType, in.bound.Sizes)
	if in.bound.Dynamism != tensor.Static {
		want += " at most"
	}
	if t.DType != in.bound.DType || t.Rank() != len(in.bound.Sizes) {
		return m.badInput(i, t.String(), want)
	}
	for d, n := range t.Sizes {
		bound := in.bound.Sizes[d]
		switch {
		case in.bound.Dynamism == tensor.Static && n != bound,
			in.bound.Dynamism == tensor.DynamicBound && n > bound:
			return m.badInput(i, t.String(), want)
		}
	}
	if len(t.Data) < t.NBytes() {
		return m.badInput(i, fmt.Sprintf("%d bytes", len(t.Data)), fmt.Sprintf("%d", t.NBytes()))
	}
	if int64(t.NBytes()) > m.program.config.limits.PlannedBytes {
		return m.badInput(i, t.String(), "a tensor within the memory limit")
	}
	return nil
}

// SetValue sets input i to a value of any kind. Numbers and strings were fixed when
// the program was exported: they must equal what the program holds. Where the
// program holds nothing, a number (a symbolic size), a string and None are taken.
func (m *Method) SetValue(i int, v tensor.Value) error {
	if v.Kind == tensor.KindTensor {
		return m.SetInput(i, v.Tensor)
	}
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	in, err := m.input(i)
	if err != nil {
		return err
	}
	if in.bound != nil {
		return m.badInput(i, describe(v), fmt.Sprintf("%v%v", in.bound.DType, in.bound.Sizes))
	}
	declared := &m.ir.Values[m.ir.Inputs[i]]
	want := declared.Scalar()
	if want.Kind == tensor.None {
		switch v.Kind {
		case tensor.None, tensor.KindInt, tensor.KindDouble, tensor.KindBool, tensor.KindString:
			in.given = v
			return nil
		}
	}
	if !sameScalar(v, want) {
		return m.badInput(i, describe(v), describe(want)+" as fixed by the export")
	}
	return nil
}

// sameScalar compares as ExecuTorch does: doubles to 1e-4 + 1e-5 of the value.
func sameScalar(got, want tensor.Value) bool {
	if got.Kind == tensor.KindInt && want.Kind == tensor.KindDouble {
		got = tensor.DoubleValue(float64(got.Int))
	}
	if got.Kind != want.Kind {
		return false
	}
	switch want.Kind {
	case tensor.KindInt:
		return got.Int == want.Int
	case tensor.KindBool:
		return got.Bool == want.Bool
	case tensor.KindString:
		return got.Str == want.Str
	case tensor.KindDouble:
		return got.Double == want.Double || math.IsNaN(got.Double) && math.IsNaN(want.Double) ||
			math.Abs(got.Double-want.Double) <= 1e-4+1e-5*math.Abs(want.Double)
	}
	return false
}

func describe(v tensor.Value) string {
	switch v.Kind {
	case tensor.KindInt:
		return fmt.Sprintf("int %d", v.Int)
	case tensor.KindDouble:
		return fmt.Sprintf("float %g", v.Double)
	case tensor.KindBool:
		return fmt.Sprintf("bool %v", v.Bool)
	case tensor.KindString:
		return fmt.Sprintf("string %.60q", v.Str)
	case tensor.KindTensor:
		return v.Tensor.String()
	}
	return v.Kind.String()
}

// Input is the method's own value of input i, nil where there is none. Its tensor's
// bytes may be written instead of calling SetInput; MarkInput says so.
func (m *Method) Input(i int) *tensor.Value {
	if i < 0 || i >= len(m.inputs) {
		return nil
	}
	return &m.inputs[i].given
}

// MarkInput declares input i set: the caller has written the bytes of its tensor.
func (m *Method) MarkInput(i int) error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	in, err := m.input(i)
	if err == nil {
		in.set = true
	}
	return err
}

// Output is output i after an execute, nil where there is none. It and its tensor
// are valid until the next Execute or Reset, and must not be written: outputs may
// be inputs, constants, or each other.
func (m *Method) Output(i int) *tensor.Value {
	if i < 0 || i >= len(m.ir.Outputs) {
		return nil
	}
	return &m.values[m.ir.Outputs[i]]
}
