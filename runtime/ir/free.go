package ir

import (
	"errors"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Frees reports whether a step is a FreeCall that releases the memory of its value. Only tensors without bounds have
// memory of their own. Other FreeCalls have no effect, and neither have those of tensors with views, which may still be
// read.
func (m *Method) Frees(s *Step) bool {
	if s.Kind != FreeCall {
		return false
	}
	v := &m.Values[s.Args[0]]
	return v.Kind == tensor.KindTensor && v.Tensor.Dynamism == tensor.DynamicUnbound && len(v.Tensor.Sizes) > 0 &&
		len(m.Storages[v.Storage].Values) == 1
}

var errFreed = errors.New("an earlier FreeCall released its memory")

// freed are the values without memory at a step, in straight-line code.
type freed struct {
	m      *Method
	values map[int]*Step // by value: the FreeCall
}

// checkFreed refuses reads of values that were released in the same straight-line code.
func (m *Method) checkFreed() error {
	if !slices.ContainsFunc(m.Steps, func(s Step) bool { return m.Frees(&s) }) {
		return nil
	}
	f := &freed{m, make(map[int]*Step)}
	begins := m.blockStarts()
	for i := range m.Steps {
		if begins[i] {
			clear(f.values)
		}
		if err := f.step(&m.Steps[i]); err != nil {
			return err
		}
	}
	if m.HasJumps() {
		return nil
	}
	for _, v := range m.tensors(nil, m.Outputs...) {
		if s := f.values[v]; s != nil {
			return m.stepError(s, fmt.Errorf("value %d is an output, but %w: %w", v, errFreed, pte.ErrFormat))
		}
	}
	return nil
}

func (f *freed) step(s *Step) error {
	for _, list := range [...][]int{s.Reads, s.Updates} {
		for _, v := range list {
			if f.values[v] != nil {
				return f.m.stepError(s, fmt.Errorf("value %d is read, but %w: %w", v, errFreed, pte.ErrFormat))
			}
		}
	}
	for _, v := range s.Writes {
		delete(f.values, v)
	}
	if f.m.Frees(s) {
		f.values[s.Args[0]] = s
	}
	return nil
}
