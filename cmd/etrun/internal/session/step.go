package session

import (
	"context"
	"slices"
	"time"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Step is a prepared call.
type Step struct {
	Callee
	Values []tensor.Value
	Took   []time.Duration // times of the runs, without setting the inputs
}

// Execute sets the inputs, runs the call and records its time.
func (s *Step) Execute(ctx context.Context) error {
	for i, v := range s.Values {
		if err := s.SetValue(i, v); err != nil {
			return err
		}
	}
	executing.Add(1)
	defer executing.Add(-1)
	begun := time.Now()
	err := s.Callee.Execute(ctx)
	s.Took = append(s.Took, time.Since(begun))
	if err != nil {
		return err
	}
	return context.Cause(ctx)
}

// CloneOutputs returns copies of the outputs of the last run.
func (s *Step) CloneOutputs() ([]*tensor.Value, error) {
	outputs, err := s.Outputs()
	for i, v := range outputs {
		outputs[i] = Clone(v)
	}
	return outputs, err
}

// Clone returns a deep copy of a value.
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

// Outputs returns the outputs of the last run, valid until the next.
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
