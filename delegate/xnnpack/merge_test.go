package xnnpack

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestMergeFuzz replaces parts of random graphs by payloads, as an exporter does, and compiles the
// graphs: both engines must have the results of the operators.
func TestMergeFuzz(t *testing.T) {
	rounds := graphtest.Rounds(150)
	merged := 0
	for seed := range uint64(rounds) {
		w := callstest.NewRandom(seed+1<<20, 12, false, Backend{}.Accepts)
		if len(w.Graph.Outputs) == 0 {
			continue
		}
		makePayloads(t, w)
		for i := range w.Graph.Calls {
			if w.Graph.Calls[i].Payload == nil {
				continue
			}
			merged++
			if why := (Backend{}).Accepts(w.Graph, i); why != "" {
				t.Errorf("seed %d: call %d: got %q, want it accepted", seed, i, why)
			}
		}
		for _, b := range compilers() {
			if _, err := b.Measure(w.Graph); err != nil {
				t.Errorf("seed %d, %s: %v", seed, b.Engine, err)
			}
			if err := compareCalls(w.Calls, b, 1e-4); err != nil {
				t.Fatalf("seed %d, %s: %v\n%s", seed, b.Engine, err, w)
			}
			if w.Graph.Kept != nil {
				t.Fatalf("seed %d, %s: the plan of the estimate is kept after it was compiled", seed, b.Engine)
			}
		}
	}
	if merged < rounds {
		t.Errorf("got %d payloads in %d graphs, want at least one per graph", merged, rounds)
	}
}

// compareCalls runs a graph on an engine, and compares its outputs with those of the portable kernels.
func compareCalls(c *callstest.Calls, b Backend, tolerance float64) error {
	img, err := b.CompileGraph(context.Background(), c.Graph)
	if err != nil {
		return err
	}
	defer img.Close()
	args := c.Arguments()
	if err := executeImage(img, args); err != nil {
		return err
	}
	for i, v := range c.Graph.Outputs {
		if err := callstest.Near(args[len(c.Graph.Inputs)+i].Tensor, c.Tensors[v], tolerance); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}

// makePayloads replaces some sequences of calls by payload calls.
func makePayloads(t *testing.T, w *callstest.Random) {
	var list []lowering.GraphCall
	for from := 0; from < len(w.Graph.Calls); {
		to := min(from+1+w.Rand.IntN(4), len(w.Graph.Calls))
		if c, ok := payloadOf(t, w, from, to); ok && w.Rand.IntN(3) > 0 {
			list = append(list, c)
		} else {
			list = append(list, w.Graph.Calls[from:to]...)
		}
		from = to
	}
	w.Graph = &lowering.Graph{Method: w.Graph.Method, Values: w.Graph.Values, Calls: list, Inputs: w.Graph.Inputs, Outputs: w.Graph.Outputs}
}

// payload returns a payload call for calls from to to-1. ok is false if they cannot be a payload.
func payloadOf(t *testing.T, w *callstest.Random, from, to int) (c lowering.GraphCall, ok bool) {
	part := &lowering.Graph{Method: w.Graph.Method, Values: w.Graph.Values, Calls: w.Graph.Calls[from:to]}
	for i := range part.Calls {
		for _, v := range part.Reads(nil, i) {
			if x := &w.Graph.Values[v]; x.DType != tensor.Float32 || x.IsConst() && w.Graph.Writer(v) >= 0 {
				return c, false
			} else if !x.IsConst() && (w.Graph.Writer(v) < from) && !slices.Contains(part.Inputs, v) {
				part.Inputs = append(part.Inputs, v)
			}
		}
		for _, v := range part.Writes(nil, i) {
			outside := func(i int) bool { return i >= to }
			if slices.ContainsFunc(w.Graph.Readers(v), outside) || slices.Contains(w.Graph.Outputs, v) {
				part.Outputs = append(part.Outputs, v)
			}
		}
	}
	x, err := lowerFor(part, false).LowerAll()
	if err != nil || len(part.Outputs) == 0 {
		return c, false
	}
	o, err := Backend{}.Open(&delegate.Payload{Data: x.Payload(uint32(from))})
	if err != nil {
		t.Fatal(err)
	}
	if o.Inputs() != len(part.Inputs) {
		t.Fatalf("got %d inputs, want %d", o.Inputs(), len(part.Inputs))
	}
	c.Payload, c.Args, c.Place = o, slices.Concat(part.Inputs, part.Outputs), fmt.Sprintf("payload of calls %d to %d", from, to)
	return c, true
}

// TestMergeRefuses checks the reasons why Accepts rejects payload calls.
func TestMergeRefuses(t *testing.T) {
	build := func(change func(g *lowering.Graph)) *lowering.Graph {
		m := graphtest.NewMaker(1)
		x, y := m.Input(graph.FP32, 1, 4, 6, 8), m.Value(graph.FP32, 1, 4, 6, 8)
		m.Node("Abs", []int{x}, []int{y})
		o, err := Backend{}.Open(&delegate.Payload{Data: m.Done(y).Payload(0)})
		if err != nil {
			t.Fatal(err)
		}
		image := lowering.GraphValue{Kind: tensor.KindTensor, DType: tensor.Float32, Sizes: []int{1, 8, 4, 6}, DimOrder: callstest.NHWC}
		g := &lowering.Graph{Values: []lowering.GraphValue{image, image}, Calls: []lowering.GraphCall{{Payload: o, Args: []int{0, 1}}},
			Inputs: []int{0}, Outputs: []int{1}}
		change(g)
		return g
	}
	const otherSizes = "an argument of float32[1 8 4 6], the payload has fp32 [1 4 6 8]"
	foreign := struct{ lowering.Opened }{build(func(*lowering.Graph) {}).Calls[0].Payload}
	for name, tt := range map[string]struct {
		change func(g *lowering.Graph)
		why    string
	}{
		"unchanged": {func(*lowering.Graph) {}, ""},
		"other sizes": {func(g *lowering.Graph) { g.Values[1].Sizes = []int{1, 8, 6, 4} },
			"an argument of float32[1 8 6 4], the payload has fp32 [1 4 6 8]"},
		"other order": {func(g *lowering.Graph) { g.Values[0].DimOrder = nil }, otherSizes},
		"no order":    {func(g *lowering.Graph) { g.Values[0].DimOrder = []uint8{3, 2, 1, 0} }, "a tensor of dim order [3 2 1 0]"},
		"other type":  {func(g *lowering.Graph) { g.Values[0].DType = tensor.Int32 }, "a payload's argument of int32"},
		"half as long": {func(g *lowering.Graph) { g.Values[0].DType = tensor.Float16 },
			"an argument of float16[1 8 4 6], the payload has fp32 [1 4 6 8]"},
		"sizes that vary": {func(g *lowering.Graph) { g.Values[1].Dynamism = tensor.DynamicBound },
			"an argument of the payload has dynamic sizes"},
		"another backend's": {func(g *lowering.Graph) { g.Calls[0].Payload = foreign }, "a payload of another backend"},
		"too few arguments": {func(g *lowering.Graph) { g.Calls[0].Args, g.Outputs = []int{0}, nil }, "1 arguments, the payload has 2"},
	} {
		g := build(tt.change)
		if why := (Backend{}).Accepts(g, 0); why != tt.why {
			t.Errorf("%s: got %q, want %q", name, why, tt.why)
		}
		img, err := Backend{Engine: EngineGo}.CompileGraph(context.Background(), g)
		if (err == nil) != (tt.why == "") {
			t.Errorf("%s: CompileGraph: got %v, Accepts returned %q", name, err, tt.why)
		}
		if err == nil {
			img.Close()
		}
	}
}
