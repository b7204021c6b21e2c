package integration

import (
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// repeating is a decoder of frames that do not change.
type repeating struct {
	t      *testing.T
	method *etrun.Method
	frames *tensor.Tensor
}

func newRepeating(t *testing.T, options ...etrun.Option) *repeating {
	r := ptetest.Recogniser{Transformer: ptetest.Transformer{Layers: 2, Dim: 64, Heads: 2, Vocabulary: 50, Context: 20, Seed: 5}, Frames: 200, Samples: 1000}
	p, err := etrun.Parse(r.File(), append(options, etrun.WithDelegates(all.Backends()...))...)
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Load(t.Context(), "decode")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(); p.Close() })
	d := &repeating{t, m, tensor.New(tensor.Float32, 1, 200, 64)}
	d.fill(1)
	return d
}

// fill changes the frames.
func (d *repeating) fill(seed int) {
	for i, list := 0, tensor.Data[float32](d.frames); i < len(list); i++ {
		list[i] = float32(i*seed%101)/101 - 0.5
	}
}

func (d *repeating) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// step runs the decoder on a token and returns the logits.
func (d *repeating) step(at int64) []float32 {
	d.t.Helper()
	d.must(etrun.Set(d.method, 0, []int64{at + 3}))
	d.must(etrun.Set(d.method, 1, []int64{at}))
	return d.again()
}

func (d *repeating) again() []float32 {
	d.t.Helper()
	d.must(d.method.Execute(d.t.Context()))
	list, err := etrun.Get[float32](d.method, 0)
	d.must(err)
	return slices.Clone(list)
}

// kept is the memory of results: keys and values of two layers.
const kept = 2 * 2 * 200 * 64 * 4

// A decoder that keeps what it computes from frames has the logits of one that does not, bit for bit, also after the frames were set again.
func TestRepeats(t *testing.T) {
	for name, o := range map[string][]etrun.Option{"default": nil, "not lowered": {etrun.WithLowering(etrun.LowerOff)},
		"inputs are reused": {etrun.WithReusableInputs()}, "the file's plan": {etrun.WithPlan(etrun.PlanFile)}} {
		for _, bind := range []bool{true, false} {
			if !bind && name == "inputs are reused" {
				continue // they must be set for each run
			}
			keeps, plain := newRepeating(t, o...), newRepeating(t, o...)
			set := func() {
				if bind {
					keeps.must(keeps.method.BindConstant(2, keeps.frames))
				} else {
					keeps.must(keeps.method.SetInput(2, keeps.frames))
				}
				plain.must(plain.method.BindInput(2, plain.frames))
			}
			set()
			first := int64(0)
			for at := range int64(12) {
				if at == 5 || at == 9 {
					keeps.fill(int(at))
					plain.fill(int(at))
					set()
				}
				got, want := keeps.step(at), plain.step(at)
				if !slices.Equal(got, want) {
					t.Fatalf("%s, bound %v: step %d: got %v, want %v", name, bind, at, got, want)
				}
				if n := keeps.method.Memory().Scratch; at == 0 {
					first = n
				} else if n < first+kept {
					t.Fatalf("%s, bound %v: step %d: memory %d, before %d, want %d more", name, bind, at, n, first, kept)
				}
			}
			keeps.must(keeps.method.Shrink())
			if n := keeps.method.Memory().Scratch; n >= first+kept {
				t.Errorf("%s, bound %v: memory %d after Shrink, %d before results were kept", name, bind, n, first)
			}
		}
	}
}

// Nothing is kept of memory that may change, in runs that all have the same inputs, and beyond the limit of memory.
func TestRepeatsNothing(t *testing.T) {
	measure := newRepeating(t).method.Memory()
	limit := measure.Planned + measure.Scratch + kept/8
	for name, c := range map[string]struct {
		options []etrun.Option
		run     func(d *repeating)
	}{
		"bound": {nil, func(d *repeating) {
			d.must(d.method.BindInput(2, d.frames))
			for at := range int64(4) {
				d.step(at)
			}
		}},
		"no other input": {nil, func(d *repeating) {
			d.must(d.method.BindConstant(2, d.frames))
			d.step(0)
			for range 4 {
				d.again()
			}
		}},
		"little memory": {[]etrun.Option{etrun.WithLimits(etrun.Limits{PlannedBytes: limit})}, func(d *repeating) {
			d.must(d.method.BindConstant(2, d.frames))
			for at := range int64(4) {
				d.step(at)
			}
		}},
	} {
		d := newRepeating(t, c.options...)
		before := d.method.Memory().Scratch
		if c.run(d); d.method.Memory().Scratch >= before+kept/4 {
			t.Errorf("%s: %d bytes, before %d", name, d.method.Memory().Scratch, before)
		}
	}
}
