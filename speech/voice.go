package speech

import (
	"context"
	"errors"
)

// voice drives Silero's detector: a probability of speech for each frame, from the frame, the end of the one before, and a state.
type voice struct {
	forward         *method
	rate            int
	window, context int // samples of a frame, and of the one before
	state           []int
}

func loadVoice(ctx context.Context, s *setup) (_ driver, err error) {
	v := &voice{}
	defer func() {
		if err != nil {
			_ = v.Close()
		}
	}()
	for _, n := range []struct {
		to        *int
		name      string
		otherwise int
	}{{&v.rate, "sample_rate", 16000}, {&v.window, "window_size", 512}, {&v.context, "context_size", 64}} {
		if *n.to, err = number(ctx, s.program, n.name, n.otherwise); err != nil {
			return nil, err
		}
	}
	if v.forward, err = load(ctx, s.program, "forward", 2, 2); err != nil {
		return nil, err
	}
	if err := errors.Join(v.forward.want(0, 2, true, "samples"), v.forward.want(1, -1, true, "a state")); err != nil {
		return nil, err
	}
	if sizes := v.forward.inputs[0].Sizes; v.window < 1 || v.rate < 1 || sizes[1] != v.window+v.context {
		return nil, &ConventionError{Method: "forward", Got: "another number of samples", Want: "window_size and context_size together"}
	}
	v.state = v.forward.inputs[1].Sizes
	return v, nil
}

func (v *voice) info(i *Info) { i.Rate, i.Times = v.rate, true }

// Close implements driver.
func (v *voice) Close() error { return closeAll(v.forward) }

// transcribe implements driver: segments are the frames whose probability is above the threshold.
func (v *voice) transcribe(ctx context.Context, samples []float32, o *Options, yield func(*Segment) error) (*Transcript, error) {
	t := &Transcript{}
	size := 1
	for _, n := range v.state {
		size *= n
	}
	if err := v.forward.floats(1, make([]float32, size), v.state...); err != nil {
		return nil, err
	}
	x := make([]float32, v.context+v.window)
	open := -1
	end := func(frame int) error {
		second := float64(v.window) / float64(v.rate)
		s := Segment{Start: seconds(float64(open) * second), End: seconds(float64(frame) * second), Speaker: -1}
		open = -1
		t.Segments = append(t.Segments, s)
		return yield(&s)
	}
	frames := (len(samples) + v.window - 1) / v.window
	for f := range frames {
		copy(x, x[v.window:])
		n := copy(x[v.context:], samples[f*v.window:])
		clear(x[v.context+n:])
		p, err := v.run(ctx, x)
		if err != nil {
			return nil, err
		}
		t.Probabilities = append(t.Probabilities, p)
		switch speech := float64(p) > o.threshold(); {
		case speech && open < 0:
			open = f
		case !speech && open >= 0:
			if err := end(f); err != nil {
				return nil, err
			}
		}
	}
	if open >= 0 {
		return t, end(frames)
	}
	return t, nil
}

// run returns the probability of a frame and keeps the state.
func (v *voice) run(ctx context.Context, x []float32) (float32, error) {
	if err := v.forward.floats(0, x, 1, len(x)); err != nil {
		return 0, err
	}
	if err := v.forward.Execute(ctx); err != nil {
		return 0, err
	}
	state, err := v.forward.tensor(1, len(v.state))
	if err != nil {
		return 0, err
	}
	p, err := v.forward.result(0)
	if err == nil && len(p) != 1 {
		err = &ConventionError{Method: "forward", Got: "several probabilities", Want: "one"}
	}
	if err != nil {
		return 0, err
	}
	return p[0], v.forward.SetInput(1, state)
}

// threshold is the least probability.
func (o *Options) threshold() float64 {
	if o.Threshold == 0 {
		return 0.5
	}
	return o.Threshold
}
