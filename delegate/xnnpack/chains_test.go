package xnnpack

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestChains runs random graphs on both engines. Differences grow from node to node: the tolerance of
// quantized outputs depends on the length of the graph, and floats computed from quantized values
// have a larger tolerance.
func TestChains(t *testing.T) {
	xnntest.Library(t)
	pool := cpu.NewPool(2)
	defer pool.Close()
	rounds := graphtest.Rounds(200)
	ran := 0
	for seed := range uint64(rounds) {
		g := graphtest.RandomGraph(seed, 7)
		if len(g.Args) == g.Inputs {
			continue
		}
		data := graphtest.Encode(g)
		want, repaired, err := execute(t, data, EngineGo, 0, pool)
		if err != nil {
			t.Fatalf("seed %d: reference: %v", seed, err)
		}
		got, _, err := execute(t, data, EngineNative, 0, nil)
		if errors.Is(err, delegate.ErrUnsupported) {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: native: %v", seed, err)
		}
		s := graphtest.Sample{Steps: stepsOf(g), Loose: toleranceOf(g)}
		if err := s.Differ(got, want, repaired); err != nil {
			t.Errorf("seed %d: %v: %v", seed, nodeNames(g), err)
		}
		ran++
	}
	if ran < rounds/2 {
		t.Errorf("%d of %d graphs ran on both engines, want at least half", ran, rounds)
	}
}

// stepsOf is the tolerance of quantized outputs: a step per node, and 64 steps if a node sums up
// products of inexact elements.
func stepsOf(g *graph.Graph) int {
	inexact := false
	for i := range g.Nodes {
		t := g.Nodes[i].Type
		if inexact && (t.Convolution || t.Tag == graph.TagFullyConnected) {
			return 64
		}
		inexact = inexact || !exactNodes[t.Name]
	}
	return 1 + len(g.Nodes)
}

func toleranceOf(g *graph.Graph) float64 {
	loose := 1e-4
	for v := range g.Values {
		switch g.Values[v].Datatype {
		case graph.FP16:
			loose = max(loose, 0.02)
		case graph.QDInt8:
			loose = max(loose, 0.03)
		}
	}
	return loose
}

func nodeNames(g *graph.Graph) []string {
	var names []string
	for i := range g.Nodes {
		n := &g.Nodes[i]
		names = append(names, fmt.Sprintf("%s %v→%v", n.Type.Name, n.In, n.Out))
	}
	return names
}

// TestDynamicChains runs each random graph on one unit with different input sizes.
func TestDynamicChains(t *testing.T) {
	xnntest.Library(t)
	rounds := graphtest.Rounds(60)
	ran := 0
	for seed := range uint64(rounds) {
		g := graphtest.RandomGraph(seed, 5)
		data := graphtest.Encode(g)
		a, err := compile(t, data, EngineNative)
		if err != nil {
			continue
		}
		b, err := compile(t, data, EngineGo)
		if err != nil {
			t.Fatal(err)
		}
		ran += runSizes(t, seed, g, a, b)
		a.Close()
		b.Close()
	}
	if ran < rounds {
		t.Errorf("got %d runs of %d graphs, want at least one per graph", ran, rounds)
	}
}

// runSizes runs a graph at several sizes on both engines and returns the number of valid ones.
func runSizes(t *testing.T, seed uint64, source *graph.Graph, a, b delegate.Image) (ran int) {
	native, err := a.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	defer native.Close()
	reference, err := b.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	defer reference.Close()
	m := graphtest.NewMaker(seed)
	g := a.(*image).Graph
	for range 8 {
		got := m.Resized(g)
		want := make([]*tensor.Value, len(got))
		for i, v := range got {
			x := tensor.Make(v.Tensor.DType, v.Tensor.Sizes, nil, tensor.DynamicUnbound)
			x.Bind(append(tensor.AlignedBytes(x.NBytes())[:0], v.Tensor.Data...))
			value := tensor.TensorValue(x)
			want[i] = &value
		}
		errA, errB := native.Execute(context.Background(), got), reference.Execute(context.Background(), want)
		if errors.Is(errA, delegate.ErrArgument) && errors.Is(errB, delegate.ErrArgument) {
			continue
		}
		if errA != nil || errB != nil {
			t.Fatalf("seed %d: native: %v, reference: %v", seed, errA, errB)
		}
		s := graphtest.Sample{Steps: stepsOf(source), Loose: toleranceOf(source)}
		if err := s.Differ(got, want, g); err != nil {
			t.Errorf("seed %d: %v: %v", seed, nodeNames(source), err)
		}
		ran++
	}
	return ran
}

// exactNodes have the same quantized results on both engines.
var exactNodes = map[string]bool{"Clamp": true, "StaticTranspose": true, "StaticReshape": true, "StaticSlice": true,
	"StaticConstantPad": true, "MaxPooling2d": true, "Concatenate2": true, "Conv2d": true, "DepthwiseConv2d": true,
	"ConvTranspose2d": true, "FullyConnected": true, "Minimum": true, "Maximum": true}
