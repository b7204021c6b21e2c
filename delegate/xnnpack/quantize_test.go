package xnnpack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// floatPayloadOf returns the payload of a graph, and the arguments of a call.
func floatPayloadOf(w *callstest.Random, written *lowering.Written) (*delegate.Payload, []*tensor.Value) {
	p := &delegate.Payload{Data: encoded(written), Threads: 1}
	args := w.Arguments()
	var extra []*tensor.Value
	for i := range written.Constants {
		c := &written.Constants[i]
		x := tensor.Make(c.DType, c.Sizes, nil, tensor.Static)
		x.Bind(c.Data)
		x.Const = true
		extra = append(extra, new(tensor.TensorValue(x)))
	}
	args = slices.Insert(args, len(w.Graph.Inputs), extra...)
	p.Args = describedArgs(args)
	return p, args
}

// describedArgs describes the arguments of a payload.
func describedArgs(args []*tensor.Value) (list []*delegate.ArgSpec) {
	for i, a := range args {
		s := &delegate.ArgSpec{Value: i, DType: a.Tensor.DType, Sizes: a.Tensor.Sizes, DimOrder: a.Tensor.DimOrder}
		if a.Tensor.Const {
			s.Const = a.Tensor.Data
		}
		list = append(list, s)
	}
	return list
}

// leastRatios are the lowest ratios of signal to noise of a layer, in decibels. Inputs of one sign and of few elements have the lowest.
var leastRatios = map[lowering.SchemeName]float64{lowering.Dynamic8: 15, lowering.Static8: 12, lowering.Weights8: 25, lowering.Dynamic4: 5, lowering.Auto: 5}

// TestQuantizedGraphs quantizes random graphs with all schemes. Each layer must be near the one of floats, and the payload must run.
func TestQuantizedGraphs(t *testing.T) {
	layers := make(map[string]int)
	for seed := range uint64(graphtest.Rounds(120)) {
		testQuantizedSeed(t, seed, layers)
	}
	for _, seed := range cancelingSeeds {
		testQuantizedSeed(t, seed, layers)
	}
	for _, want := range []string{"dq8 FullyConnected", "dq8 Conv2d", "q8 FullyConnected", "q8 Conv2d", "q8 Add", "q8 Multiply",
		"w8 FullyConnected"} {
		if layers[want] == 0 {
			t.Errorf("no %s among %v: the test shows little", want, layers)
		}
	}
}

// cancelingSeeds are graphs with a product whose terms cancel each other.
var cancelingSeeds = []uint64{7467, 14912}

// testQuantizedSeed quantizes one graph with all schemes.
func testQuantizedSeed(t *testing.T, seed uint64, layers map[string]int) {
	t.Helper()
	w := callstest.NewRandom(seed+1<<21, 10, false, Backend{}.Accepts)
	if len(w.Graph.Outputs) == 0 {
		return
	}
	written, err := Writer{Backend: Backend{Engine: EngineGo}}.Write(w.Graph)
	if errors.Is(err, delegate.ErrUnsupported) {
		return
	}
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, w)
	}
	for _, name := range lowering.SchemeNames {
		s := lowering.Scheme{Name: name, All: true, Group: 32, Observer: lowering.Observers[int(seed)%len(lowering.Observers)]}
		if err := quantizes(w, written, s, layers); err != nil {
			t.Fatalf("seed %d, %s: %v\n%s", seed, name, err, w)
		}
	}
}

// fastest are the first forms of all layers.
func fastest(f lowering.Floats) lowering.Forms {
	layers := f.Layers()
	return func(l int) lowering.SchemeName {
		if len(layers[l].Forms) == 0 {
			return ""
		}
		return layers[l].Forms[0]
	}
}

// quantizes quantizes a payload, and counts its layers.
func quantizes(w *callstest.Random, written *lowering.Written, s lowering.Scheme, count map[string]int) error {
	by := Writer{Backend: Backend{Engine: EngineGo}}
	p, args := floatPayloadOf(w, written)
	f, err := by.OpenFloats(p, s)
	if err != nil {
		return err
	}
	for _, image := range []func(context.Context, *delegate.Payload) (delegate.Image, error){f.Calibrate, f.Measure} {
		img, err := image(context.Background(), p)
		if err != nil {
			return err
		}
		if err := runsShuffled(img, args, runsOf[s.Name]); err != nil {
			return err
		}
	}
	x, err := f.Write(fastest(f))
	if x == nil || err != nil {
		return err
	}
	for _, l := range x.Quantized {
		y := f.Layers()[l]
		count[string(s.Name)+" "+y.Type]++
		if ratio := 10 * math.Log10(y.Signal/y.Noise); y.Signal > 1e-9 && ratio < leastRatios[s.Name] {
			return fmt.Errorf("layer %d (%s %v) at node %d: %.1f dB", l, y.Type, y.Sizes, y.Node, ratio)
		}
	}
	return runsQuantized(x, args)
}

// runsOf are the runs that a scheme is measured in: a product whose terms cancel each other in one run has much noise in it. Ranges
// of static quantization are those of one run.
var runsOf = map[lowering.SchemeName]int{lowering.Dynamic8: 8, lowering.Static8: 1, lowering.Weights8: 8, lowering.Dynamic4: 8, lowering.Auto: 1}

// runsShuffled runs an image, with the elements of its inputs in a random order after the first run, and closes it.
func runsShuffled(img delegate.Image, args []*tensor.Value, runs int) error {
	defer img.Close()
	r := rand.New(rand.NewPCG(1, 6))
	for run := range runs {
		if run > 0 {
			shuffle(r, args)
		}
		if err := executeImage(img, args); err != nil {
			return err
		}
	}
	return nil
}

// shuffle changes the order of the elements of each argument.
func shuffle(r *rand.Rand, args []*tensor.Value) {
	for _, a := range args {
		if x := a.Tensor; x.DType == tensor.Float32 && !x.Const {
			list := tensor.View[float32](x.Data)[:x.Numel()]
			r.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
		}
	}
}

// runsQuantized runs a quantized payload with both engines.
func runsQuantized(x *lowering.Quantized, args []*tensor.Value) error {
	var list []*tensor.Value
	for _, k := range x.Inputs {
		list = append(list, args[k])
	}
	for i := range x.Constants {
		c := tensor.Make(x.Constants[i].DType, x.Constants[i].Sizes, nil, tensor.Static)
		c.Bind(x.Constants[i].Data)
		c.Const = true
		list = append(list, new(tensor.TensorValue(c)))
	}
	list = append(list, args[x.OldInputs:]...)
	for _, b := range compilers() {
		img, err := b.Compile(context.Background(), &delegate.Payload{Data: encoded(x.Written), Args: describedArgs(list)})
		if err == nil {
			err = executeImage(img, list)
			img.Close()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", b.Engine, err)
		}
	}
	return nil
}

// A payload with nodes of later releases keeps them: copies and reshapes of varying sizes are not the same.
func TestQuantizedLaterNodes(t *testing.T) {
	b := graph.NewBuilder()
	weights := graph.Aligned(tensor.BytesOf([]float32{1, 2, 3, -4}), 4)
	value := func() int { return b.Value(graph.FP32, graph.ShapeOf(4, 2), graph.Quant{}) }
	x, copied, sines, y, w := value(), value(), value(), value(), b.Constant(graph.FP32, graph.ShapeOf(2, 2), graph.Quant{}, weights)
	b.Node(graph.NodeTypes[graph.TagCopy], []int{x}, copied)
	b.Node(graph.NodeTypes[graph.TagSin], []int{copied}, sines)
	b.Node(graph.NodeTypes[graph.TagFullyConnected], []int{sines, w, graph.None}, y)
	b.Externals([]int{x}, []int{y})
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	args := func(rows int) []*tensor.Value {
		in, out := tensor.New(tensor.Float32, rows, 2), tensor.New(tensor.Float32, 4, 2)
		out.Dynamism = tensor.DynamicBound
		copy(tensor.Data[float32](in), []float32{1, 2, 3, 4, 5, 6, 7, 8})
		return []*tensor.Value{new(tensor.TensorValue(in)), new(tensor.TensorValue(out))}
	}
	specs := describedArgs(args(4))
	specs[0].Dynamism, specs[1].Dynamism = tensor.DynamicBound, tensor.DynamicBound
	f, err := Writer{}.OpenFloats(&delegate.Payload{Data: g.Payload(0), Args: specs}, lowering.Scheme{Name: lowering.Dynamic8})
	if err != nil {
		t.Fatal(err)
	}
	written, err := f.Write(func(int) lowering.SchemeName { return lowering.Dynamic8 })
	if err != nil || written == nil || len(written.Quantized) != 1 {
		t.Fatalf("got %+v, %v, want a quantized layer", written, err)
	}
	img, err := Backend{Engine: EngineGo}.Compile(context.Background(), &delegate.Payload{Data: encoded(written.Written), Args: specs})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	for _, rows := range []int{4, 2, 1} {
		call := args(rows)
		if err := executeImage(img, call); err != nil {
			t.Fatalf("%d rows: %v", rows, err)
		}
		got, want := tensor.Data[float32](call[1].Tensor), math.Sin(1)+2*math.Sin(2)
		if call[1].Tensor.Sizes[0] != rows || math.Abs(float64(got[0])-want) > 0.05 {
			t.Errorf("%d rows: got %v of sizes %v, want %v", rows, got[0], call[1].Tensor.Sizes, want)
		}
	}
}

// Constant arguments keep the number of their dimensions, which results of the library have, too.
func TestQuantizedScalars(t *testing.T) {
	for _, sizes := range [][]int{{}, {1}} {
		b := graph.NewBuilder()
		value := func(sizes ...int) int { return b.Value(graph.FP32, graph.ShapeOf(sizes...), graph.Quant{}) }
		weights := graph.Aligned(tensor.BytesOf([]float32{1, 2, 3, -4}), 4)
		x, s, product, y, w := value(4, 2), value(1), value(4, 2), value(4, 2), b.Constant(graph.FP32, graph.ShapeOf(2, 2), graph.Quant{}, weights)
		b.Node(graph.NodeTypes[graph.TagFullyConnected], []int{x, w, graph.None}, product)
		b.Node(graph.NodeTypes[graph.TagMultiply], []int{product, s}, y)
		b.Externals([]int{x, s}, []int{y})
		g, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		specs := []*delegate.ArgSpec{{DType: tensor.Float32, Sizes: []int{4, 2}},
			{DType: tensor.Float32, Sizes: sizes, Const: tensor.BytesOf([]float32{3})}, {DType: tensor.Float32, Sizes: []int{4, 2}}}
		f, err := Writer{}.OpenFloats(&delegate.Payload{Data: g.Payload(0), Args: specs}, lowering.Scheme{Name: lowering.Dynamic8})
		if err != nil {
			t.Fatal(err)
		}
		written, err := f.Write(func(int) lowering.SchemeName { return lowering.Dynamic8 })
		if err != nil || written == nil || len(written.Constants) != 1 || !slices.Equal(written.Constants[0].Sizes, sizes) {
			t.Errorf("sizes %v: got %+v, %v, want a constant of them", sizes, written, err)
		}
	}
}

// Payloads that cannot be written are refused when they are opened, so that others are quantized.
func TestUnwritablePayload(t *testing.T) {
	b := graph.NewBuilder()
	x, y := b.Value(graph.BF16, graph.ShapeOf(4), graph.Quant{}), b.Value(graph.BF16, graph.ShapeOf(4), graph.Quant{})
	b.Node(graph.NodeTypes[graph.TagStaticReshape], []int{x}, y).Params = &graph.ReshapeParams{Sizes: []int{4}}
	b.Externals([]int{x}, []int{y})
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Writer{}.OpenFloats(&delegate.Payload{Data: g.Payload(0)}, lowering.Scheme{Name: lowering.Dynamic8})
	if !errors.Is(err, delegate.ErrUnsupported) {
		t.Errorf("got %v, want an error of the class ErrUnsupported", err)
	}
}
