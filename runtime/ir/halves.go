package ir

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// HalveState returns the method with its state of float32 kept as float16, or the method itself if it has none. It refuses state that
// anything but the Halves of operators accesses: its numbers would be others there.
func (m *Method) HalveState() (*Method, error) {
	halved := make([]bool, len(m.Storages))
	for i := range m.Storages {
		s := &m.Storages[i]
		floats := slices.ContainsFunc(s.Values, func(v int) bool { return m.Values[v].Tensor.DType == tensor.Float32 })
		if halved[i] = s.Kind == State && floats; !halved[i] {
			continue
		}
		for _, v := range s.Values {
			if s.Output || m.Values[v].Tensor.DType != tensor.Float32 {
				return nil, fmt.Errorf("value %d is float32 in a state that is also an output, or has other types: it cannot be float16: %w", v, pte.ErrUnsupported)
			}
		}
	}
	if !slices.Contains(halved, true) {
		return m, nil
	}
	for i := range m.Steps {
		if err := m.checkHalves(&m.Steps[i], halved); err != nil {
			return nil, err
		}
	}
	e := m.Edit()
	for i := range halved {
		if halved[i] {
			e.halve(i)
		}
	}
	return e.Apply()
}

// checkHalves refuses a step with another argument in a halved storage than its operator's Halves.
func (m *Method) checkHalves(s *Step, halved []bool) error {
	isHalved := func(v int) bool { return m.Values[v].Kind == tensor.KindTensor && halved[m.Values[v].Storage] }
	for k, v := range s.Args {
		if s.Kind == KernelCall && (s.IsView() || slices.Contains(s.Op.Halves, k)) {
			continue
		}
		if isHalved(v) || slices.ContainsFunc(m.Values[v].Items(), func(i int) bool { return i >= 0 && isHalved(i) }) {
			return m.stepError(s, fmt.Errorf("it reads or writes state of float32 in argument %d, which float16 cannot stand for: %w", k, pte.ErrUnsupported))
		}
	}
	return nil
}

// halve makes the values of a storage float16, and what it has at first.
func (e *Edit) halve(storage int) {
	s, values := &e.to.Storages[storage], e.values()
	s.Bytes = 0
	for _, v := range s.Values {
		t := *values[v].Tensor
		t.DType = tensor.Float16
		values[v].Tensor, s.Bytes = &t, max(s.Bytes, t.NBytes())
	}
	if s.Data != nil {
		data := make([]byte, len(s.Data)/2)
		tensor.Storer[float32](tensor.Float16)(data, tensor.View[float32](s.Data))
		s.Data = data
	}
}
