package session

import (
	"context"
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
