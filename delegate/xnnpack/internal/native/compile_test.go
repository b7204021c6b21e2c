package native

import (
	"context"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// open reads a payload and opens it in the library.
func open(p *delegate.Payload, cache graph.WeightsCache, fail func(error)) (*Image, error) {
	g, err := graph.ReadPayload(p, true)
	if err != nil {
		return nil, err
	}
	return openGraph(g, &graph.Compilation{Args: p.Args, Limits: p.Limits, Release: p.Release, Scratch: p.Scratch}, cache, fail)
}

// openGraph fuses a graph and opens it in the library. If that fails, it returns the image, too.
func openGraph(g *graph.Graph, c *graph.Compilation, cache graph.WeightsCache, fail func(error)) (*Image, error) {
	shapes, err := g.Repair()
	if err != nil {
		return nil, err
	}
	c.Graph, c.Shapes = g, g.ConstantArguments(c.Args, shapes)
	graph.Fuse(g, c.Shapes, RefusesNode)
	m := &Image{Compilation: c, Cost: g.Cost(c.Shapes), InGo: &goengine.Image{Compilation: c}, Fail: fail}
	return m, m.Open(context.Background(), xnntest.Path(), cache)
}

// compile opens a payload in the library, without anything said of its calls.
func compile(data []byte) (*Image, error) {
	return open(&delegate.Payload{Data: data}, graph.WeightsCache{}, func(error) {})
}

// mustCompile opens a payload, which is closed at the end of the test.
func mustCompile(t testing.TB, p *delegate.Payload) *Image {
	t.Helper()
	m, err := open(p, graph.WeightsCache{}, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// unitOf creates a unit, which is closed at the end of the test.
func unitOf(t testing.TB, m *Image, in delegate.Instance) *Unit {
	t.Helper()
	u, err := m.Unit(in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	return u.(*Unit)
}

// run runs a unit once.
func run(t testing.TB, u delegate.Unit, args []*tensor.Value) {
	t.Helper()
	if err := u.Execute(context.Background(), args); err != nil {
		t.Fatal(err)
	}
}

// mustUnit creates a unit of a graph, which is closed at the end of the test.
func mustUnit(t testing.TB, g *graph.Graph) (*Unit, *graph.Graph) {
	t.Helper()
	m := mustCompile(t, &delegate.Payload{Data: graphtest.Encode(g)})
	return unitOf(t, m, delegate.Instance{}), m.Graph
}
