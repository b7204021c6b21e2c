package speech

import (
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// method is a loaded method whose floats are exchanged as float32, whatever type the program has.
type method struct {
	*etrun.Method
	inputs []etrun.ValueMeta
}

func load(ctx context.Context, p *etrun.Program, name string, inputs, outputs int) (*method, error) {
	m, err := p.Load(ctx, name)
	if err != nil {
		return nil, err
	}
	meta := m.Meta()
	if len(meta.Inputs) != inputs || len(meta.Outputs) < outputs {
		err = &ConventionError{Method: name, Got: fmt.Sprintf("%d inputs and %d outputs", len(meta.Inputs), len(meta.Outputs)),
			Want: fmt.Sprintf("%d and %d", inputs, outputs)}
		m.Close()
		return nil, err
	}
	return &method{m, meta.Inputs}, nil
}

// loaded is a method to load, with its numbers of inputs and outputs.
type loaded struct {
	to              **method
	name            string
	inputs, outputs int
}

// methods loads methods.
func (s *setup) methods(ctx context.Context, list ...loaded) (err error) {
	for _, l := range list {
		if *l.to, err = load(ctx, s.program, l.name, l.inputs, l.outputs); err != nil {
			return err
		}
	}
	return nil
}

// want checks the kind of an input: floats or integers of a rank, -1 for any.
func (m *method) want(i, rank int, floats bool, what string) error {
	in := &m.inputs[i]
	if in.Kind != tensor.KindTensor || in.DType.IsFloat() != floats || rank >= 0 && len(in.Sizes) != rank {
		return &ConventionError{Method: m.Name(), Got: fmt.Sprintf("input %d: %s %v", i, in.DType, in.Sizes), Want: what}
	}
	return nil
}

// floats sets an input of floats.
func (m *method) floats(i int, data []float32, sizes ...int) error {
	d := m.inputs[i].DType
	if d == tensor.Float32 {
		return etrun.Set(m.Method, i, data, sizes...)
	}
	t := tensor.New(d, sizes...)
	if t.Numel() != len(data) {
		return fmt.Errorf("%d elements for %v", len(data), sizes)
	}
	for k, v := range data {
		tensor.Put(t.Data[k*d.Size():], d, v)
	}
	return m.SetInput(i, t)
}

// ints sets an input of integers.
func (m *method) ints(i int, data []int64, sizes ...int) error {
	if m.inputs[i].DType == tensor.Int32 {
		small := make([]int32, len(data))
		for k, v := range data {
			small[k] = int32(v)
		}
		return etrun.Set(m.Method, i, small, sizes...)
	}
	return etrun.Set(m.Method, i, data, sizes...)
}

// tensor returns an output that is a tensor of a rank, -1 for any. It is valid until the next run.
func (m *method) tensor(i, rank int) (*tensor.Tensor, error) {
	v, err := m.Output(i)
	if err != nil {
		return nil, err
	}
	if v.Kind != tensor.KindTensor || rank >= 0 && v.Tensor.Rank() != rank {
		return nil, &ConventionError{Method: m.Name(), Got: fmt.Sprintf("output %d: %v", i, v), Want: fmt.Sprintf("a tensor of rank %d", rank)}
	}
	return v.Tensor, nil
}

// result returns the elements of an output in logical order, valid until the next run unless they are converted.
func (m *method) result(i int) ([]float32, error) {
	t, err := m.tensor(i, -1)
	if err != nil {
		return nil, err
	}
	if t.DType == tensor.Float32 {
		return etrun.Get[float32](m.Method, i)
	}
	if !t.DType.IsFloat() {
		return nil, &ConventionError{Method: m.Name(), Got: fmt.Sprintf("output %d: %s", i, t.DType), Want: "floats"}
	}
	b, size := t.Logical(), t.DType.Size()
	data := make([]float32, t.Numel())
	for k := range data {
		data[k], _ = tensor.Get[float32](b[k*size:], t.DType)
	}
	return data, nil
}

// integer returns an output that is one integer.
func (m *method) integer(i int) (int, error) {
	v, err := m.Output(i)
	if err != nil {
		return 0, err
	}
	switch {
	case v.Kind == tensor.KindInt:
		return int(v.Int), nil
	case v.Kind == tensor.KindTensor && v.Tensor.DType == tensor.Int64 && v.Tensor.Numel() == 1:
		return int(tensor.Data[int64](v.Tensor)[0]), nil
	case v.Kind == tensor.KindTensor && v.Tensor.DType == tensor.Int32 && v.Tensor.Numel() == 1:
		return int(tensor.Data[int32](v.Tensor)[0]), nil
	}
	return 0, &ConventionError{Method: m.Name(), Got: fmt.Sprintf("output %d: %v", i, v), Want: "an integer"}
}

// has reports whether a program has all of these methods.
func has(p *etrun.Program, names ...string) bool {
	for _, n := range names {
		if !slices.Contains(p.MethodNames(), n) {
			return false
		}
	}
	return true
}

// maxMetadata bounds the numbers of metadata methods.
const maxMetadata = 1 << 28

// numbers returns the values of a metadata method: a method without inputs whose outputs are the numbers. Without the method, or if its
// values are no numbers, there are none.
func numbers(ctx context.Context, p *etrun.Program, name string) (list []float64, err error) {
	if !has(p, name) {
		return nil, nil
	}
	m, err := load(ctx, p, name, 0, 0)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if err := m.Execute(ctx); err != nil {
		return nil, err
	}
	for i := range m.NumOutputs() {
		v, err := m.Output(i)
		if err != nil {
			return nil, err
		}
		switch v.Kind {
		case tensor.KindInt:
			list = append(list, float64(v.Int))
		case tensor.KindDouble:
			list = append(list, v.Double)
		case tensor.KindIntList:
			for _, n := range v.IntList() {
				list = append(list, float64(n))
			}
		}
	}
	return list, nil
}

// number returns a positive integer of the metadata, or the default if the program has none.
func number(ctx context.Context, p *etrun.Program, name string, otherwise int) (int, error) {
	list, err := numbers(ctx, p, name)
	if err != nil || len(list) == 0 {
		return otherwise, err
	}
	if n := list[0]; len(list) == 1 && n >= 0 && n <= maxMetadata && n == float64(int(n)) {
		return int(n), nil
	}
	return 0, &ConventionError{Method: name, Got: fmt.Sprint(list), Want: fmt.Sprintf("a number from 0 to %d", maxMetadata)}
}
