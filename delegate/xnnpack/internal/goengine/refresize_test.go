package goengine

import (
	"bytes"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// planesGraph returns a resize and a transpose to [N, C, H, W]. If seen is set, the value between them
// is an output too, so that they are not merged.
func planesGraph(c, h, v, height, width int, flags uint32, seen bool) *graph.Graph {
	m := graphtest.NewMaker(11)
	x, r, y := m.Input(graph.FP32, 2, h, v, c), m.Value(graph.FP32, 2, height, width, c), m.Value(graph.FP32, 2, c, height, width)
	m.Node("StaticResizeBilinear2D", []int{x}, []int{r}, func(n *graph.Node) {
		*graph.Params[graph.ResizeParams](n), n.Flags = graph.ResizeParams{Height: height, Width: width}, flags
	})
	m.Node("StaticTranspose", []int{r}, []int{y}, func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = []int{0, 3, 1, 2} })
	if seen {
		return m.Done(r, y)
	}
	return m.Done(y)
}

// TestResizeToPlanes compares a resize that is merged with a transpose with the two nodes.
func TestResizeToPlanes(t *testing.T) {
	for _, flags := range []uint32{0, graph.FlagAlignCorners, graph.FlagLegacyResize} {
		for _, s := range [][5]int{{1, 1, 1, 4, 4}, {3, 7, 5, 14, 15}, {8, 6, 6, 24, 24}, {17, 9, 9, 4, 5}, {6, 6, 6, 96, 96}, {24, 5, 7, 5, 7}} {
			u := mustUnit(t, planesGraph(s[0], s[1], s[2], s[3], s[4], flags, false), delegate.Instance{})
			both := mustUnit(t, planesGraph(s[0], s[1], s[2], s[3], s[4], flags, true), delegate.Instance{})
			if len(u.Graph.Nodes) != 1 || len(both.Graph.Nodes) != 2 {
				t.Fatalf("%v: %d and %d nodes, want 1 and 2", s, len(u.Graph.Nodes), len(both.Graph.Nodes))
			}
			got, want := graphtest.NewMaker(5).Arguments(u.Graph), graphtest.NewMaker(5).Arguments(both.Graph)
			mustExecute(t, u, got)
			mustExecute(t, both, want)
			if !bytes.Equal(got[1].Tensor.Data, want[2].Tensor.Data) {
				t.Errorf("flags %d, %v: got %v, want %v", flags, s, graphtest.NumbersOf(got[1].Tensor), graphtest.NumbersOf(want[2].Tensor))
			}
		}
	}
}
