package graph_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// moduleCalls builds graphs of one module that is called several times.
type moduleCalls struct {
	*graphtest.Maker
	faulty bool
}

const callChannels = 5

// call adds one input of the module, quantized with the given scale and zero point.
func (b *moduleCalls) call(scale float32, zero int32) int {
	x, q := b.Input(graph.FP32, 2, callChannels), b.Value(graph.QInt8, 2, callChannels)
	b.Graph.Values[q].Quant = graph.Quant{Scale: scale, ZeroPoint: zero}
	b.Node("Convert", []int{x}, []int{q})
	return q
}

// filter adds a filter of datatype d.
func (b *moduleCalls) filter(d graph.Datatype) int {
	return b.Constant(d, 0, callChannels, callChannels)
}

// bias adds a constant of the numbers 0, 0.25, 0.5, … in the product of the scales of in and filter.
func (b *moduleCalls) bias(in, filter int) int {
	d := graph.QInt32
	if b.Graph.Values[filter].Datatype == graph.QCInt8 {
		d = graph.QCInt32
	}
	v := b.Constant(d, 0, callChannels)
	x, f := &b.Graph.Values[v], &b.Graph.Values[filter]
	for c := range callChannels {
		scale := b.Graph.Values[in].Scale(0) * f.Scale(c)
		if x.Quant.Scale = float32(scale); d == graph.QCInt32 {
			x.Quant.Scales[c], x.Quant.Scale = float32(scale), 0
		}
		tensor.View[int32](x.Data)[c] = int32(math.RoundToEven(0.25 * float64(c) / scale))
	}
	return v
}

// floats adds a float32 constant with v's dequantized elements.
func (b *moduleCalls) floats(v int) int {
	x := b.Graph.Values[v]
	y := b.Constant(graph.FP32, 0, x.Shape.Dims()...)
	b.Graph.Values[y].Data = x.Dequantized()
	return y
}

// connected adds a FullyConnected node and returns its output as float32.
func (b *moduleCalls) connected(in, filter, bias int, out graph.Datatype) int {
	y := b.Value(out, 2, callChannels)
	b.Node("FullyConnected", []int{in, filter, bias}, []int{y})
	if out == graph.FP32 {
		return y
	}
	b.Graph.Values[y].Quant = graph.Quant{Scale: 0.03, ZeroPoint: 3}
	z := b.Value(graph.FP32, 2, callChannels)
	b.Node("Convert", []int{y}, []int{z})
	return z
}

func (b *moduleCalls) pick(faulty, right int) int {
	if b.faulty {
		return faulty
	}
	return right
}

// weightCases are pairs of graphs: as exporters write them, and corrected.
var weightCases = []struct {
	name, repair string
	build        func(b *moduleCalls) *graph.Graph
}{
	{"bias with another call's scale", "rescaled", func(b *moduleCalls) *graph.Graph {
		x, y, f := b.call(0.02, 3), b.call(0.013, -20), b.filter(graph.QCInt8)
		first, second := b.bias(x, f), b.bias(y, f)
		return b.Done(b.connected(x, f, first, graph.QInt8), b.connected(y, f, b.pick(first, second), graph.QInt8))
	}},
	{"one scale for all channels", "rescaled", func(b *moduleCalls) *graph.Graph {
		x, y, f := b.call(0.02, 3), b.call(0.041, -20), b.filter(graph.QInt8)
		first, second := b.bias(x, f), b.bias(y, f)
		return b.Done(b.connected(y, f, b.pick(first, second), graph.QInt8), b.connected(x, f, first, graph.QInt8))
	}},
	{"float bias", "quantized in the scale of its sums", func(b *moduleCalls) *graph.Graph {
		x, f := b.call(0.02, 3), b.filter(graph.QCInt8)
		bias := b.bias(x, f)
		return b.Done(b.connected(x, f, b.pick(b.floats(bias), bias), graph.QInt8))
	}},
	{"integer bias of a float node", "bias value", func(b *moduleCalls) *graph.Graph {
		x, y, f := b.call(0.02, 3), b.Input(graph.FP32, 2, callChannels), b.filter(graph.QCInt8)
		bias := b.bias(x, f)
		return b.Done(b.connected(x, f, bias, graph.QInt8), b.connected(y, b.floats(f), b.pick(bias, b.floats(bias)), graph.FP32))
	}},
	{"float filter", "input dequantized", func(b *moduleCalls) *graph.Graph {
		x, f := b.call(0.02, 3), b.filter(graph.QCInt8)
		bias, floats := b.bias(x, f), b.floats(f)
		in := x
		if !b.faulty {
			in = b.Value(graph.FP32, 2, callChannels)
			b.Node("Convert", []int{x}, []int{in})
		}
		return b.Done(b.connected(x, f, bias, graph.QInt8), b.connected(in, floats, b.pick(bias, b.floats(bias)), graph.FP32))
	}},
	{"quantized output of a float node", "output quantized behind it", func(b *moduleCalls) *graph.Graph {
		y, f := b.Input(graph.FP32, 2, callChannels), b.floats(b.filter(graph.QCInt8))
		if b.faulty {
			return b.Done(b.connected(y, f, graph.None, graph.QInt8))
		}
		sum, q, z := b.connected(y, f, graph.None, graph.FP32), b.Value(graph.QInt8, 2, callChannels), b.Value(graph.FP32, 2, callChannels)
		b.Graph.Values[q].Quant = graph.Quant{Scale: 0.03, ZeroPoint: 3}
		b.Node("Convert", []int{sum}, []int{q})
		b.Node("Convert", []int{q}, []int{z})
		return b.Done(z)
	}},
}

// TestWeightRepairs checks that faulty graphs of shared modules have the results of the corrected graphs.
func TestWeightRepairs(t *testing.T) {
	for _, c := range weightCases {
		t.Run(c.name, func(t *testing.T) {
			right := c.build(&moduleCalls{Maker: graphtest.NewMaker(3)})
			want, repairs, err := runPayload(t, payloadOf(right))
			if err != nil || len(repairs) > 0 {
				t.Fatalf("corrected graph: got repairs %q, error %v, want none", repairs, err)
			}
			got, repairs, err := runPayload(t, payloadOf(c.build(&moduleCalls{Maker: graphtest.NewMaker(3), faulty: true})))
			if err != nil || !strings.Contains(strings.Join(repairs, "; "), c.repair) {
				t.Fatalf("got repairs %q, error %v, want a repair with %q", repairs, err, c.repair)
			}
			if err := (&graphtest.Sample{}).Differ(got, want, right); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWeightRepairsRefused checks the errors of biases that cannot be converted.
func TestWeightRepairsRefused(t *testing.T) {
	for _, c := range []struct {
		name, text string
		reason     error
		build      func(b *moduleCalls) *graph.Graph
	}{
		{"too large for the other scale", "too large for the scale", delegate.ErrUnsupported, func(b *moduleCalls) *graph.Graph {
			x, y, f := b.call(0.02, 3), b.call(1e-12, 0), b.filter(graph.QCInt8)
			bias := b.bias(x, f)
			return b.Done(b.connected(x, f, bias, graph.QInt8), b.connected(y, f, bias, graph.QInt8))
		}},
		{"NaN", "too large for the scale", delegate.ErrUnsupported, func(b *moduleCalls) *graph.Graph {
			x, f := b.call(0.02, 3), b.filter(graph.QCInt8)
			bias := b.floats(b.bias(x, f))
			tensor.View[float32](b.Graph.Values[bias].Data)[2] = float32(math.NaN())
			return b.Done(b.connected(x, f, bias, graph.QInt8))
		}},
		{"scale of no node", "no node has sums in the bias's scale", delegate.ErrUnsupported, func(b *moduleCalls) *graph.Graph {
			x, y, f := b.call(0.02, 3), b.Input(graph.FP32, 2, callChannels), b.filter(graph.QCInt8)
			bias := b.bias(x, f)
			b.Graph.Values[bias].Quant.Scales[1] *= 1.001
			return b.Done(b.connected(x, f, bias, graph.QInt8), b.connected(y, b.floats(f), bias, graph.FP32))
		}},
		{"product of scales is not normal", "want a positive normal number", delegate.ErrUnsupported, func(b *moduleCalls) *graph.Graph {
			x, f := b.call(1e-37, 3), b.filter(graph.QCInt8)
			bias := b.Constant(graph.FP32, 0, callChannels)
			clear(b.Graph.Values[bias].Data)
			return b.Done(b.connected(x, f, bias, graph.QInt8))
		}},
		{"another number of channels", "with a filter of 5 channels", delegate.ErrPayload, func(b *moduleCalls) *graph.Graph {
			x, f := b.call(0.02, 3), b.filter(graph.QCInt8)
			return b.Done(b.connected(x, f, b.Constant(graph.FP32, 0, callChannels+1), graph.QInt8))
		}},
	} {
		g := c.build(&moduleCalls{Maker: graphtest.NewMaker(3), faulty: true})
		_, _, err := runPayload(t, payloadOf(g))
		if !errors.Is(err, c.reason) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want …%s…", c.name, err, c.text)
		}
	}
}

// TestWeightsAsWritten checks that a bias is read in the scale of the sums, as the library reads it,
// if the payload is used as written or if no node has the declared scale.
func TestWeightsAsWritten(t *testing.T) {
	g := weightCases[0].build(&moduleCalls{Maker: graphtest.NewMaker(3), faulty: true})
	p := payloadOf(g)
	p.AsWritten = true
	if _, repairs, err := runPayload(t, p); err != nil || len(repairs) > 0 {
		t.Errorf("as written: got repairs %q, error %v, want none", repairs, err)
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Type.Weighted() {
			for c := range g.Values[n.In[2]].Quant.Scales {
				g.Values[n.In[2]].Quant.Scales[c] = 1
			}
		}
	}
	if _, repairs, err := runPayload(t, payloadOf(g)); err != nil || len(repairs) > 0 {
		t.Errorf("scale of no node: got repairs %q, error %v, want none", repairs, err)
	}
}
