package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Step is a prepared call.
type Step struct {
	Callee
	Values []tensor.Value
	Took   []time.Duration // times of the runs, without setting the inputs

	pictures []*input.Sized // among the values
	attempt  int            // the last that the program accepted
	shown    []*input.Sized // pictures
	series   *series        // of a recording in frames, nil for one run
	fed      []Fed          // outputs of the run before that are inputs
	before   *Step          // with those of the first run, nil for none
}

// Execute sets the inputs, runs the call and records its time. If it fails, pictures whose sizes the program may not accept are
// tried in others.
func (s *Step) Execute(ctx context.Context) error {
	runs, first := len(s.Took), s.execute(ctx)
	if len(s.pictures) == 0 {
		return first
	}
	for err := first; err != nil; err = s.execute(ctx) {
		if ctx.Err() != nil || s.keepsState() {
			return first
		}
		if !s.resize(ctx) {
			return fmt.Errorf("%w; nor does it run with other sizes of the picture; resize=HxW sets one", first)
		}
		s.Took = s.Took[:runs]
	}
	for _, p := range s.pictures {
		if p.Attempt > s.attempt {
			p.Say()
			s.attempt = p.Attempt
		}
	}
	s.pictures = nil
	return nil
}

// keepsState reports whether a run that fails may have changed state.
func (s *Step) keepsState() bool {
	m, ok := s.Callee.(interface{ StateTensors() []*tensor.Tensor })
	return !ok || len(m.StateTensors()) > 0
}

// resize converts the pictures to the next sizes. It returns false if there are none.
func (s *Step) resize(ctx context.Context) (more bool) {
	for _, p := range s.pictures {
		if v, ok := p.Next(ctx); ok {
			s.Values[p.Input], more = v, true
		}
	}
	return more
}

func (s *Step) execute(ctx context.Context) (err error) {
	begun := len(s.Took)
	s.Took = append(s.Took, 0)
	if s.series != nil {
		err = s.executeSeries(ctx)
	} else {
		err = s.executeOnce(ctx, s.before)
	}
	if err != nil && s.Took[begun] == 0 { // it did not run
		s.Took = s.Took[:begun]
	}
	return err
}

// executeOnce runs the call on its values, and on the outputs of a step.
func (s *Step) executeOnce(ctx context.Context, before *Step) error {
	fed, err := s.outputsOf(before)
	if err != nil {
		return err
	}
	for i, v := range s.Values {
		if k := slices.IndexFunc(s.fed, func(f Fed) bool { return f.Input == i }); k >= 0 && fed != nil {
			v = *fed[k]
		}
		if err := s.SetValue(i, v); err != nil {
			return err
		}
	}
	executing.Add(1)
	defer executing.Add(-1)
	begun := time.Now()
	err = s.Callee.Execute(ctx)
	s.Took[len(s.Took)-1] += time.Since(begun)
	if err != nil {
		return WithHint(err)
	}
	return context.Cause(ctx)
}

// outputsOf returns copies of the outputs of a step that are fed to this one, nil for no step: inputs can share their memory.
func (s *Step) outputsOf(before *Step) (list []*tensor.Value, err error) {
	if before == nil {
		return nil, nil
	}
	for _, f := range s.fed {
		v, err := before.Callee.Output(f.Output)
		if err != nil {
			return nil, err
		}
		list = append(list, Clone(&v))
	}
	return list, nil
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
		v, err := s.output(i)
		if err != nil {
			return nil, err
		}
		outputs[i] = &v
	}
	return outputs, nil
}
