package xnnpack

import (
	"errors"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// lostGraph computes two results from x. With lost, the second one is not read and its output is
// missing.
func lostGraph(m *maker, lost bool, dims ...int) *graph.Graph {
	x, q, s := m.input(graph.FP32, dims...), m.value(graph.QInt8, dims...), m.value(graph.FP32, dims[0]*dims[1]*dims[2]*dims[3])
	m.node("StaticReshape", []int{x}, []int{s}, func(n *graph.Node) {
		*graph.Params[graph.ReshapeParams](n) = graph.ReshapeParams{Sizes: m.Graph.Values[s].Shape.Dims()}
	})
	m.node("Convert", []int{x}, []int{q})
	y := m.transposedLike(q, graph.ToChannelsLast)
	y = m.transposedLike(y, graph.ToChannelsFirst)
	if lost {
		g := m.done(s)
		g.Args = append(g.Args, graph.None)
		return g
	}
	z := m.value(graph.FP32, dims...)
	m.node("Convert", []int{y}, []int{z})
	return m.done(s, z)
}

// transposedLike adds a transpose of v with v's datatype and quantization.
func (m *maker) transposedLike(v int, perm []int) int {
	x := &m.Graph.Values[v]
	y := m.value(x.Datatype, x.Shape.Permuted(perm).Dims()...)
	m.Graph.Values[y].Quant = m.Graph.Values[v].Quant
	m.node("StaticTranspose", []int{v}, []int{y}, func(n *graph.Node) { *graph.Params[graph.TransposeParams](n) = graph.TransposeParams{Perm: perm} })
	return y
}

// TestOutputRepairs checks that a missing output is restored from the only unread value.
func TestOutputRepairs(t *testing.T) {
	for _, engine := range []Engine{EngineGo, EngineAuto} {
		for _, dims := range [][]int{{2, 3, 4, 5}, {1, 4, 4, 4}} {
			right, faulty := lostGraph(newMaker(3), false, dims...), lostGraph(newMaker(3), true, dims...)
			specs := specsOf(right)
			want, _, err := runSpecs(t, right, specs, engine)
			if err != nil {
				t.Fatal(err)
			}
			got, repairs, err := runSpecs(t, faulty, specs, engine)
			if err != nil || len(repairs) != 1 || !strings.Contains(repairs[0], "dequantized and returned") {
				t.Fatalf("%v: got repairs %q, error %v, want one repair", dims, repairs, err)
			}
			if err := (&sample{}).differ(got, want, right); err != nil {
				t.Errorf("%v: %v", dims, err)
			}
		}
	}
}

// TestOutputRepairsRefused checks that a missing output is an error unless exactly one value matches.
func TestOutputRepairsRefused(t *testing.T) {
	dims := []int{2, 3, 4, 5}
	for name, change := range map[string]func(m *maker, g *graph.Graph, specs []*delegate.ArgSpec){
		"other sizes":        func(_ *maker, _ *graph.Graph, specs []*delegate.ArgSpec) { specs[2].Sizes = []int{2, 4, 5, 3} },
		"another order":      func(_ *maker, _ *graph.Graph, specs []*delegate.ArgSpec) { specs[2].DimOrder = []uint8{0, 2, 3, 1} },
		"another type":       func(_ *maker, _ *graph.Graph, specs []*delegate.ArgSpec) { specs[2].DType = 1 },
		"no argument":        func(_ *maker, _ *graph.Graph, specs []*delegate.ArgSpec) { specs[2] = nil },
		"two unread values":  func(m *maker, g *graph.Graph, _ []*delegate.ArgSpec) { m.transposedLike(0, graph.ToChannelsLast) },
		"no unread value":    func(_ *maker, g *graph.Graph, _ []*delegate.ArgSpec) { g.Nodes = g.Nodes[:1] },
		"two missing values": func(_ *maker, g *graph.Graph, _ []*delegate.ArgSpec) { g.Args = append(g.Args, graph.None) },
	} {
		m := newMaker(3)
		g, specs := lostGraph(m, true, dims...), specsOf(lostGraph(newMaker(3), false, dims...))
		change(m, g, specs)
		_, _, err := runSpecs(t, g, specs, EngineGo)
		if !errors.Is(err, delegate.ErrPayload) {
			t.Errorf("%s: got %v, want %v", name, err, delegate.ErrPayload)
		}
	}
	// a channels last value whose sizes are the same in both orders
	m := newMaker(3)
	x, q, y := m.input(graph.FP32, 1, 4, 4, 4), m.value(graph.QInt8, 1, 4, 4, 4), m.value(graph.FP32, 64)
	m.node("StaticReshape", []int{x}, []int{y}, func(n *graph.Node) { *graph.Params[graph.ReshapeParams](n) = graph.ReshapeParams{Sizes: []int{64}} })
	m.node("Convert", []int{x}, []int{q})
	m.transposedLike(q, graph.ToChannelsLast)
	g := m.done(y)
	g.Args = append(g.Args, graph.None)
	if _, _, err := runSpecs(t, g, specsOf(lostGraph(newMaker(3), false, 1, 4, 4, 4)), EngineGo); !errors.Is(err, delegate.ErrPayload) {
		t.Errorf("ambiguous order: got %v, want %v", err, delegate.ErrPayload)
	}
}
