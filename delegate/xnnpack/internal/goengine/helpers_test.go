package goengine

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestMain checks that there is a row for each node type before any test: without one, those that run nodes of the type panic.
func TestMain(m *testing.M) {
	if missing := missingRows(); len(missing) > 0 {
		fmt.Printf("--- FAIL: no rows of node types %q\n", missing)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// missingRows names the node types without a row, and the tags of rows without a type.
func missingRows() (list []string) {
	own := []int{graph.TagSiLU, graph.TagTable, graph.TagRearrange, graph.TagResizePlanes} // not of files
	for tag, row := range types {
		n := graph.NodeTypes[tag]
		if (n != nil || slices.Contains(own, tag)) != (row.loop != nil) {
			list = append(list, fmt.Sprint(tag, " ", n))
		}
	}
	return list
}

// setPackedLeast sets the size from which panels are stored, until restore is called.
func setPackedLeast(n int64) (restore func()) {
	old := packedLeast
	packedLeast = n
	return func() { packedLeast = old }
}

// setPackedVersion sets the version of panels until restore is called.
func setPackedVersion(n int) (restore func()) {
	old := packedVersion
	packedVersion = n
	return func() { packedVersion = old }
}

// panelsOf returns the memory for the panels of a graph, packed.
func panelsOf(m *Image) []byte {
	w := filters.NewPacking(m.Graph, m.Shapes, nil)
	if m.packed.Memory == nil {
		return nil
	}
	data := m.packed.Memory.Bytes()
	return data[int64(len(data))-w.Size:]
}

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

// compile compiles a copy of a graph as the backend does. args describes its arguments, nil if they may have any sizes.
func compile(t testing.TB, g *graph.Graph, args []*delegate.ArgSpec) (*Image, error) {
	t.Helper()
	own, err := graph.ReadPayload(&delegate.Payload{Data: graphtest.Encode(g), Args: args}, args == nil)
	if err != nil {
		return nil, err
	}
	shapes, err := own.Repair()
	if err != nil {
		return nil, err
	}
	shapes = own.ConstantArguments(args, shapes)
	graph.Fuse(own, shapes, func(*graph.Graph, *graph.Node, []graph.Shape) string { return "" })
	return NewImage(t.Context(), &graph.Compilation{Graph: own, Shapes: shapes, Args: args}, graph.WeightsCache{})
}

// mustCompile is compile for graphs that the engine runs.
func mustCompile(t testing.TB, g *graph.Graph) *Image {
	t.Helper()
	m, err := compile(t, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mustUnit compiles a graph and creates a unit.
func mustUnit(t testing.TB, g *graph.Graph, in delegate.Instance) *unit {
	t.Helper()
	return newUnit(mustCompile(t, g), in)
}

func mustExecute(t testing.TB, u *unit, args []*tensor.Value) {
	t.Helper()
	if err := u.Execute(context.Background(), args); err != nil {
		t.Fatal(err)
	}
}

// openPacked compiles a graph with a cache, or without one if the folder is empty, and returns the image and its outputs.
func openPacked(t *testing.T, g *graph.Graph, c graph.WeightsCache) (*Image, []float64) {
	t.Helper()
	m, err := NewImage(t.Context(), compilation(t, g), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, outputsOf(t, m)
}

func outputsOf(t *testing.T, m *Image) (list []float64) {
	t.Helper()
	args := graphtest.NewMaker(3).Arguments(m.Graph)
	mustExecute(t, newUnit(m, delegate.Instance{}), args)
	for _, a := range args[m.Graph.Inputs:] {
		list = append(list, graphtest.NumbersOf(a.Tensor)...)
	}
	return list
}

// sameNumbers reports whether numbers are the same; NaN equals NaN.
func sameNumbers(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || x != x && y != y })
}
