package goengine_test

import (
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// compilation returns the compilation of a graph.
func compilation(t *testing.T, g *graph.Graph) *graph.Compilation {
	t.Helper()
	s, err := g.Declared()
	if err != nil {
		t.Fatal(err)
	}
	for i := range g.Nodes {
		g.Nodes[i].At = i
	}
	return &graph.Compilation{Graph: g, Shapes: s, ThreadCount: 2}
}

// openPacked compiles a graph with a cache, or without one if the folder is empty, and returns the image and its outputs.
func openPacked(t *testing.T, g *graph.Graph, c graph.WeightsCache) (*goengine.Image, []float64) {
	t.Helper()
	m, err := goengine.NewImage(t.Context(), compilation(t, g), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, outputsOf(t, m)
}

func outputsOf(t *testing.T, m *goengine.Image) (list []float64) {
	t.Helper()
	args := graphtest.NewMaker(3).Arguments(m.Graph)
	if err := goengine.NewUnit(m, delegate.Instance{}).Execute(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	for _, a := range args[m.Graph.Inputs:] {
		list = append(list, graphtest.NumbersOf(a.Tensor)...)
	}
	return list
}

// sameNumbers reports whether numbers are the same; NaN equals NaN.
func sameNumbers(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || x != x && y != y })
}
