package graph_test

import (
	"bytes"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestRoundTrip encodes every sample graph and checks that reading it returns the same graph.
func TestRoundTrip(t *testing.T) {
	for _, s := range graphtest.Samples(1) {
		g, err := graphtest.ReadGraph(graphtest.Encode(s.Graph), nil)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if len(g.Values) != len(s.Graph.Values) || len(g.Nodes) != len(s.Graph.Nodes) {
			t.Errorf("%s: got %d values, %d nodes, want %d, %d", s.Name, len(g.Values), len(g.Nodes), len(s.Graph.Values), len(s.Graph.Nodes))
			continue
		}
		for v := range g.Values {
			a, b := &g.Values[v], &s.Graph.Values[v]
			if a.Datatype != b.Datatype || a.Shape != b.Shape || a.Arg != b.Arg || !bytes.Equal(a.Data, b.Data) || a.Quant.Scale != b.Quant.Scale {
				t.Errorf("%s: value %d: got %+v, want %+v", s.Name, v, a, b)
			}
		}
		for i := range g.Nodes {
			a, b := &g.Nodes[i], &s.Graph.Nodes[i]
			if a.Type != b.Type || a.Geometry() != b.Geometry() && b.Type.Convolution || a.Flags != b.Flags || a.Min != b.Min || a.Max != b.Max {
				t.Errorf("%s: node %d: got %+v, want %+v", s.Name, i, a, b)
			}
		}
	}
}
