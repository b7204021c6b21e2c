package session

import (
	"context"
	"fmt"
	"image"
	"slices"

	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/picture"
)

// series runs a call for each frame of a recording. Its outputs are those of all frames, along a new first dimension.
type series struct {
	*input.Frames
	limit   int64 // bytes of the outputs
	stacked []*tensor.Value
}

// Seconds returns the time from one frame of the call's recording to the next, 0 if it has none.
func (s *Step) Seconds() float64 {
	if s.series == nil {
		return 0
	}
	return s.series.Seconds
}

// Place says where points of the input are in the call's picture; nil if it has none, or several.
func (s *Step) Place() *picture.Place {
	if len(s.shown) != 1 {
		return nil
	}
	p := s.shown[0].Place()
	return &p
}

// Picture returns the call's picture; nil if it has none, or several.
func (s *Step) Picture(ctx context.Context) (*image.NRGBA, error) {
	if len(s.shown) != 1 {
		return nil, nil
	}
	return s.shown[0].Image(ctx)
}

func (s *Step) executeSeries(ctx context.Context) error {
	before := s.before
	for frame := range s.series.Count() {
		err := s.series.Store(s.Values[s.series.Input].Tensor, frame)
		if err == nil {
			err = s.executeOnce(ctx, before)
		}
		if err == nil {
			err = s.stack(frame)
		}
		if err != nil {
			return fmt.Errorf("frame %d: %w", frame, err)
		}
		before = s
	}
	return nil
}

// stack copies the outputs of a frame.
func (s *Step) stack(frame int) error {
	for i := range s.NumOutputs() {
		v, err := s.Callee.Output(i)
		if err != nil {
			return err
		}
		if v.Kind != tensor.KindTensor {
			return Usage("output %d is %v: a recording in frames is for programs that return tensors", i, v.Kind)
		}
		if frame == 0 {
			if err := s.series.allocate(i, v.Tensor); err != nil {
				return err
			}
		}
		one, all := v.Tensor, s.series.stacked[i].Tensor
		if !slices.Equal(one.Sizes, all.Sizes[1:]) {
			return Usage("output %d is %s, before it was %s: want one size for all frames", i, tensor.FormatSizes(one.Sizes),
				tensor.FormatSizes(all.Sizes[1:]))
		}
		copy(all.Data[frame*one.NBytes():], one.Logical())
	}
	return nil
}

// allocate makes room for an output of all frames.
func (r *series) allocate(i int, one *tensor.Tensor) error {
	need := int64(one.NBytes()) * int64(r.Count())
	if i == 0 {
		r.stacked = r.stacked[:0]
	} else {
		for _, v := range r.stacked {
			need += int64(v.Tensor.NBytes())
		}
	}
	if need > r.limit {
		return Usage("the outputs of %d frames are %d bytes, the limit is %d; --max-memory sets another", r.Count(), need, r.limit)
	}
	t := tensor.Make(one.DType, append([]int{r.Count()}, one.Sizes...), nil, tensor.Static)
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	v := tensor.TensorValue(t)
	r.stacked = append(r.stacked, &v)
	return nil
}

// output returns an output of the call, of all frames.
func (s *Step) output(i int) (tensor.Value, error) {
	if s.series != nil {
		return *s.series.stacked[i], nil
	}
	return s.Output(i)
}

// keeps makes the values of a resolver those of the step.
func (s *Step) keeps(r *input.Resolver, values []tensor.Value) {
	s.Values, s.pictures, s.shown, s.series = values, r.Pictures, r.Shown, nil
	if r.Frames != nil {
		s.series = &series{Frames: r.Frames, limit: r.Limit}
	}
}

// checkFed checks the indexes of fed inputs, and makes those zeros that a call does not set.
func (s *Session) checkFed(c *Call, m Callee, inputs int) error {
	for _, f := range s.Fed {
		if f.Output >= m.NumOutputs() || f.Input >= inputs {
			return Usage("--feed %d=%d: method %q has %d outputs and %d inputs", f.Output, f.Input, m.Name(), m.NumOutputs(), inputs)
		}
		name := fmt.Sprint(f.Input)
		set := slices.ContainsFunc(c.Inputs, func(in input.Spec) bool { return in.Input == name })
		if !set && len(c.Inputs) > 0 && len(c.Inputs) < inputs {
			zeros, err := input.Parse(name + "=zeros")
			if err != nil {
				return err
			}
			c.Inputs = append(c.Inputs, zeros)
		}
	}
	return nil
}
