package session

import (
	"context"
	"slices"
	"time"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Step is a call that is ready to execute.
type Step struct {
	Callee
	Values []tensor.Value
	Took   []time.Duration // each execute, without setting its inputs
}

// Execute sets the inputs, runs the call and adds its time.
func (s *Step) Execute(ctx context.Context) error {
	for i, v := range s.Values {
		if err := s.SetValue(i, v); err != nil {
			return err
		}
	}
	begun := time.Now()
	err := s.Callee.Execute(ctx)
	s.Took = append(s.Took, time.Since(begun))
	if err != nil {
		return err
	}
	return context.Cause(ctx)
}

// CloneOutputs are the outputs of the last execute, in memory of their own.
func (s *Step) CloneOutputs() ([]*tensor.Value, error) {
	outputs, err := s.Outputs()
	for i, v := range outputs {
		outputs[i] = Clone(v)
	}
	return outputs, err
}

// Clone is a value in memory of its own.
func Clone(v *tensor.Value) *tensor.Value {
	c := *v
	c.Bools, c.Doubles = slices.Clone(v.Bools), slices.Clone(v.Doubles)
	if v.Kind == tensor.KindTensor {
		c.Tensor = tensor.Make(v.Tensor.DType, slices.Clone(v.Tensor.Sizes), slices.Clone(v.Tensor.DimOrder), tensor.Static)
		c.Tensor.Bind(tensor.AlignedBytes(c.Tensor.NBytes()))
		copy(c.Tensor.Data, v.Tensor.Data)
	}
	c.Items = slices.Clone(v.Items)
	for i, item := range c.Items {
		if item != nil {
			c.Items[i] = Clone(item)
		}
	}
	return &c
}

// Outputs are the outputs of the last execute, valid until the next.
func (s *Step) Outputs() ([]*tensor.Value, error) {
	outputs := make([]*tensor.Value, s.NumOutputs())
	for i := range outputs {
		v, err := s.Output(i)
		if err != nil {
			return nil, err
		}
		outputs[i] = &v
	}
	return outputs, nil
}
