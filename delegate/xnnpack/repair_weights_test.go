package xnnpack

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// moduleCalls makes graphs of one module that is called several times.
type moduleCalls struct {
	*maker
	faulty bool
}

const callChannels = 5

// call is one input of the module, quantized with a scale of its own.
func (b *moduleCalls) call(scale float32, zero int32) int {
	x, q := b.input(fp32, 2, callChannels), b.value(qint8, 2, callChannels)
	b.g.Values[q].Quant = quant{Scale: scale, ZeroPoint: zero}
	b.node("Convert", []int{x}, []int{q})
	return q
}

// filter is a filter of the type, with known elements.
func (b *moduleCalls) filter(d datatype) int { return b.constant(d, 0, callChannels, callChannels) }

// bias is a constant of the numbers 0, 0.25, 0.5, … in the scale of in and filter.
func (b *moduleCalls) bias(in, filter int) int {
	d := qint32
	if b.g.Values[filter].Datatype == qcint8 {
		d = qcint32
	}
	v := b.constant(d, 0, callChannels)
	x, f := &b.g.Values[v], &b.g.Values[filter]
	for c := range callChannels {
		scale := b.g.Values[in].scale(0) * f.scale(c)
		if x.Quant.Scale = float32(scale); d == qcint32 {
			x.Quant.Scales[c], x.Quant.Scale = float32(scale), 0
		}
		tensor.View[int32](x.Data)[c] = int32(math.RoundToEven(0.25 * float64(c) / scale))
	}
	return v
}

// floats is a constant of float32 with the numbers of v.
func (b *moduleCalls) floats(v int) int {
	x := b.g.Values[v]
	y := b.constant(fp32, 0, x.Shape.dims()...)
	b.g.Values[y].Data = x.dequantized()
	return y
}

// connected is a FullyConnected, and its output as float32.
func (b *moduleCalls) connected(in, filter, bias int, out datatype) int {
	y := b.value(out, 2, callChannels)
	b.node("FullyConnected", []int{in, filter, bias}, []int{y})
	if out == fp32 {
		return y
	}
	b.g.Values[y].Quant = quant{Scale: 0.03, ZeroPoint: 3}
	z := b.value(fp32, 2, callChannels)
	b.node("Convert", []int{y}, []int{z})
	return z
}

func (b *moduleCalls) pick(faulty, right int) int {
	if b.faulty {
		return faulty
	}
	return right
}

// weightCases are pairs of graphs: as exporters write them, and as they are meant.
var weightCases = []struct {
	name, repair string
	build        func(b *moduleCalls) *graph
}{
	{"a bias with another call's scale", "rescaled", func(b *moduleCalls) *graph {
		x, y, f := b.call(0.02, 3), b.call(0.013, -20), b.filter(qcint8)
		first, second := b.bias(x, f), b.bias(y, f)
		return b.done(b.connected(x, f, first, qint8), b.connected(y, f, b.pick(first, second), qint8))
	}},
	{"one scale for all channels", "rescaled", func(b *moduleCalls) *graph {
		x, y, f := b.call(0.02, 3), b.call(0.041, -20), b.filter(qint8)
		first, second := b.bias(x, f), b.bias(y, f)
		return b.done(b.connected(y, f, b.pick(first, second), qint8), b.connected(x, f, first, qint8))
	}},
	{"a float bias", "quantized in the scale of its sums", func(b *moduleCalls) *graph {
		x, f := b.call(0.02, 3), b.filter(qcint8)
		bias := b.bias(x, f)
		return b.done(b.connected(x, f, b.pick(b.floats(bias), bias), qint8))
	}},
	{"an integer bias of floats", "bias value", func(b *moduleCalls) *graph {
		x, y, f := b.call(0.02, 3), b.input(fp32, 2, callChannels), b.filter(qcint8)
		bias := b.bias(x, f)
		return b.done(b.connected(x, f, bias, qint8), b.connected(y, b.floats(f), b.pick(bias, b.floats(bias)), fp32))
	}},
	{"a float filter", "input dequantized", func(b *moduleCalls) *graph {
		x, f := b.call(0.02, 3), b.filter(qcint8)
		bias, floats := b.bias(x, f), b.floats(f)
		in := x
		if !b.faulty {
			in = b.value(fp32, 2, callChannels)
			b.node("Convert", []int{x}, []int{in})
		}
		return b.done(b.connected(x, f, bias, qint8), b.connected(in, floats, b.pick(bias, b.floats(bias)), fp32))
	}},
	{"a quantized output of floats", "output quantized behind it", func(b *moduleCalls) *graph {
		y, f := b.input(fp32, 2, callChannels), b.floats(b.filter(qcint8))
		if b.faulty {
			return b.done(b.connected(y, f, none, qint8))
		}
		sum, q, z := b.connected(y, f, none, fp32), b.value(qint8, 2, callChannels), b.value(fp32, 2, callChannels)
		b.g.Values[q].Quant = quant{Scale: 0.03, ZeroPoint: 3}
		b.node("Convert", []int{sum}, []int{q})
		b.node("Convert", []int{q}, []int{z})
		return b.done(z)
	}},
}

// Modules that are called twice give the numbers of modules with constants for each call.
func TestWeightRepairs(t *testing.T) {
	for _, engine := range []Engine{EngineReference, EngineAuto} {
		for _, c := range weightCases {
			t.Run(string(engine)+"/"+c.name, func(t *testing.T) {
				right := c.build(&moduleCalls{maker: newMaker(3)})
				want, repairs, err := runPayload(t, right, engine, false)
				if err != nil || len(repairs) > 0 {
					t.Fatalf("of the right graph: repairs %q, error %v\n%s", repairs, err, dump(right))
				}
				got, repairs, err := runPayload(t, c.build(&moduleCalls{maker: newMaker(3), faulty: true}), engine, false)
				if err != nil || !strings.Contains(strings.Join(repairs, "; "), c.repair) {
					t.Fatalf("repairs %q, error %v", repairs, err)
				}
				if err := (&sample{}).differ(got, want, right); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// The elements of a bias are those of the call that declares them, or refused.
func TestWeightRepairsRefused(t *testing.T) {
	for _, c := range []struct {
		name, text string
		reason     error
		build      func(b *moduleCalls) *graph
	}{
		{"too large for the other scale", "too large for the scale", delegate.ErrUnsupported, func(b *moduleCalls) *graph {
			x, y, f := b.call(0.02, 3), b.call(1e-12, 0), b.filter(qcint8)
			bias := b.bias(x, f)
			return b.done(b.connected(x, f, bias, qint8), b.connected(y, f, bias, qint8))
		}},
		{"not a number", "too large for the scale", delegate.ErrUnsupported, func(b *moduleCalls) *graph {
			x, f := b.call(0.02, 3), b.filter(qcint8)
			bias := b.floats(b.bias(x, f))
			tensor.View[float32](b.g.Values[bias].Data)[2] = float32(math.NaN())
			return b.done(b.connected(x, f, bias, qint8))
		}},
		{"a scale that no node has", "no node has sums in the bias's scale", delegate.ErrUnsupported, func(b *moduleCalls) *graph {
			x, y, f := b.call(0.02, 3), b.input(fp32, 2, callChannels), b.filter(qcint8)
			bias := b.bias(x, f)
			b.g.Values[bias].Quant.Scales[1] *= 1.001
			return b.done(b.connected(x, f, bias, qint8), b.connected(y, b.floats(f), bias, fp32))
		}},
		{"a product of scales that is no scale", "want a positive normal number", delegate.ErrUnsupported, func(b *moduleCalls) *graph {
			x, f := b.call(1e-37, 3), b.filter(qcint8)
			bias := b.constant(fp32, 0, callChannels)
			clear(b.g.Values[bias].Data)
			return b.done(b.connected(x, f, bias, qint8))
		}},
		{"another number of channels", "with a filter of 5 channels", delegate.ErrPayload, func(b *moduleCalls) *graph {
			x, f := b.call(0.02, 3), b.filter(qcint8)
			return b.done(b.connected(x, f, b.constant(fp32, 0, callChannels+1), qint8))
		}},
	} {
		g := c.build(&moduleCalls{maker: newMaker(3), faulty: true})
		_, _, err := runPayload(t, g, EngineReference, false)
		if !errors.Is(err, c.reason) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want …%s…", c.name, err, c.text)
		}
	}
}

// A bias whose declared scale is no node's is read in the scale of the sums, as the
// library reads it; so is every bias of a payload that is taken as it is written.
func TestWeightsAsWritten(t *testing.T) {
	g := weightCases[0].build(&moduleCalls{maker: newMaker(3), faulty: true})
	if _, repairs, err := runPayload(t, g, EngineReference, true); err != nil || len(repairs) > 0 {
		t.Errorf("repairs %q, error %v", repairs, err)
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Type.weighted() {
			for c := range g.Values[n.In[2]].Quant.Scales {
				g.Values[n.In[2]].Quant.Scales[c] = 1
			}
		}
	}
	if _, repairs, err := runPayload(t, g, EngineReference, false); err != nil || len(repairs) > 0 {
		t.Errorf("of a scale that no node has: repairs %q, error %v", repairs, err)
	}
}
