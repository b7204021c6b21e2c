package graph_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// lostGraph computes two results from x. With lost, the second one is not read and its output is
// missing.
func lostGraph(m *graphtest.Maker, lost bool, dims ...int) *graph.Graph {
	x, q, s := m.Input(graph.FP32, dims...), m.Value(graph.QInt8, dims...), m.Value(graph.FP32, dims[0]*dims[1]*dims[2]*dims[3])
	m.Node("StaticReshape", []int{x}, []int{s}, func(n *graph.Node) {
		*graph.Params[graph.ReshapeParams](n) = graph.ReshapeParams{Sizes: m.Graph.Values[s].Shape.Dims()}
	})
	m.Node("Convert", []int{x}, []int{q})
	y := m.TransposedLike(q, graph.ToChannelsLast)
	y = m.TransposedLike(y, toChannelsFirst)
	if lost {
		g := m.Done(s)
		g.Args = append(g.Args, graph.None)
		return g
	}
	z := m.Value(graph.FP32, dims...)
	m.Node("Convert", []int{y}, []int{z})
	return m.Done(s, z)
}

// TestOutputRepairs checks that a missing output is restored from the only unread value.
func TestOutputRepairs(t *testing.T) {
	for _, dims := range [][]int{{2, 3, 4, 5}, {1, 4, 4, 4}} {
		right, faulty := lostGraph(graphtest.NewMaker(3), false, dims...), lostGraph(graphtest.NewMaker(3), true, dims...)
		p := payloadOf(right)
		want, _, err := runPayload(t, p)
		if err != nil {
			t.Fatal(err)
		}
		p.Data = graphtest.Encode(faulty)
		got, repairs, err := runPayload(t, p)
		if err != nil || len(repairs) != 1 || !strings.Contains(repairs[0], "dequantized and returned") {
			t.Fatalf("%v: got repairs %q, error %v, want one repair", dims, repairs, err)
		}
		if err := (&graphtest.Sample{}).Differ(got, want, right); err != nil {
			t.Errorf("%v: %v", dims, err)
		}
	}
}

// TestOutputRepairsRefused checks that a missing output is an error unless exactly one value matches.
func TestOutputRepairsRefused(t *testing.T) {
	dims := []int{2, 3, 4, 5}
	for name, change := range map[string]func(m *graphtest.Maker, g *graph.Graph, specs []*delegate.ArgSpec){
		"other sizes": func(_ *graphtest.Maker, _ *graph.Graph, specs []*delegate.ArgSpec) {
			specs[2].Sizes = []int{2, 4, 5, 3}
		},
		"another order": func(_ *graphtest.Maker, _ *graph.Graph, specs []*delegate.ArgSpec) {
			specs[2].DimOrder = []uint8{0, 2, 3, 1}
		},
		"another type": func(_ *graphtest.Maker, _ *graph.Graph, specs []*delegate.ArgSpec) { specs[2].DType = 1 },
		"no argument":  func(_ *graphtest.Maker, _ *graph.Graph, specs []*delegate.ArgSpec) { specs[2] = nil },
		"two unread values": func(m *graphtest.Maker, g *graph.Graph, _ []*delegate.ArgSpec) {
			m.TransposedLike(0, graph.ToChannelsLast)
		},
		"no unread value":    func(_ *graphtest.Maker, g *graph.Graph, _ []*delegate.ArgSpec) { g.Nodes = g.Nodes[:1] },
		"two missing values": func(_ *graphtest.Maker, g *graph.Graph, _ []*delegate.ArgSpec) { g.Args = append(g.Args, graph.None) },
	} {
		m := graphtest.NewMaker(3)
		g, specs := lostGraph(m, true, dims...), specsOf(lostGraph(graphtest.NewMaker(3), false, dims...))
		change(m, g, specs)
		_, _, err := runPayload(t, &delegate.Payload{Data: graphtest.Encode(g), Args: specs})
		if !errors.Is(err, delegate.ErrPayload) {
			t.Errorf("%s: got %v, want %v", name, err, delegate.ErrPayload)
		}
	}
	// a channels last value whose sizes are the same in both orders
	m := graphtest.NewMaker(3)
	x, q, y := m.Input(graph.FP32, 1, 4, 4, 4), m.Value(graph.QInt8, 1, 4, 4, 4), m.Value(graph.FP32, 64)
	m.Node("StaticReshape", []int{x}, []int{y}, func(n *graph.Node) { *graph.Params[graph.ReshapeParams](n) = graph.ReshapeParams{Sizes: []int{64}} })
	m.Node("Convert", []int{x}, []int{q})
	m.TransposedLike(q, graph.ToChannelsLast)
	g := m.Done(y)
	g.Args = append(g.Args, graph.None)
	p := &delegate.Payload{Data: graphtest.Encode(g), Args: specsOf(lostGraph(graphtest.NewMaker(3), false, 1, 4, 4, 4))}
	if _, _, err := runPayload(t, p); !errors.Is(err, delegate.ErrPayload) {
		t.Errorf("ambiguous order: got %v, want %v", err, delegate.ErrPayload)
	}
}
