package speech

import (
	"context"
	"errors"
)

// voiceDriver drives Silero's detector: a probability of speech for each frame, from the frame, the end of the one before, and a state.
type voiceDriver struct {
	timer
	forward         *method
	rate            int
	window, context int // samples of a frame, and of the one before
	state           []int
}

func (v *voiceDriver) load(ctx context.Context, s *setup) (err error) {
	for _, n := range []struct {
		to        *int
		name      string
		otherwise int
	}{{&v.rate, "sample_rate", 16000}, {&v.window, "window_size", 512}, {&v.context, "context_size", 64}} {
		if *n.to, err = number(ctx, s.program, n.name, n.otherwise); err != nil {
			return err
		}
	}
	if v.forward, err = load(ctx, s.program, "forward", 2, 2); err != nil {
		return err
	}
	if err := errors.Join(v.forward.want(0, 2, true, "samples"), v.forward.want(1, -1, true, "a state")); err != nil {
		return err
	}
	if sizes := v.forward.inputs[0].Sizes; v.window < 1 || v.rate < 1 || sizes[1] != v.window+v.context {
		return &ConventionError{Method: "forward", Got: "another number of samples", Want: "window_size and context_size together"}
	}
	v.state = v.forward.inputs[1].Sizes
	return nil
}

func (v *voiceDriver) info(i *Info) { i.Rate, i.Times = v.rate, true }

// Close implements driver.
func (v *voiceDriver) Close() error { return closeAll(v.forward) }

// transcribe implements driver: segments are the frames whose probability is above the threshold.
func (v *voiceDriver) transcribe(ctx context.Context, in *feed, o *Options, yield func(*Segment) error) (*Transcript, error) {
	t := &Transcript{}
	x, err := v.start()
	if err != nil {
		return nil, err
	}
	open := -1
	end := func(frame int) error {
		second := float64(v.window) / float64(v.rate)
		s := Segment{Start: seconds(float64(open) * second), End: seconds(float64(frame) * second), Speaker: -1}
		open = -1
		t.Segments = append(t.Segments, s)
		return yield(&s)
	}
	f := 0
	for ; ; f++ {
		samples, err := in.next(v.window)
		if err != nil {
			return nil, err
		}
		if len(samples) == 0 {
			break
		}
		p, err := v.next(ctx, x, samples)
		if err != nil {
			return nil, err
		}
		in.pass(len(samples))
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
		return t, end(f)
	}
	return t, nil
}

// start begins a recording: it returns a frame of silence.
func (v *voiceDriver) start() ([]float32, error) {
	size := 1
	for _, n := range v.state {
		size *= n
	}
	return make([]float32, v.context+v.window), v.forward.floats(1, make([]float32, size), v.state...)
}

// next returns the probability of the next samples, those of a frame or fewer, behind those in x.
func (v *voiceDriver) next(ctx context.Context, x, samples []float32) (float32, error) {
	copy(x, x[v.window:])
	n := copy(x[v.context:], samples)
	clear(x[v.context+n:])
	return v.run(ctx, x)
}

// limit implements driver.
func (v *voiceDriver) limit() int { return v.window }

// run returns the probability of a frame and keeps the state.
func (v *voiceDriver) run(ctx context.Context, x []float32) (float32, error) {
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
