package lowering_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// The graphs of the tests.
type (
	calls = callstest.Calls
	val   = callstest.Val
	vals  = callstest.Vals
	out   = callstest.Out
)

// rejected returns why a call is not lowered, "" if it is.
func rejected(g *regions.Graph, i int) string {
	return lowering.Reject(g, i, native.Refuses, func(*graph.Graph) string { return "" })
}

// lowered returns the graph of all calls and its shapes.
func lowered(in *regions.Graph) (*graph.Graph, []graph.Shape, error) {
	l := lowering.New(in, false, native.Refuses)
	g, err := l.LowerAll()
	if err != nil {
		return nil, nil, err
	}
	shapes, err := g.Repair()
	if err != nil {
		return nil, nil, err
	}
	return g, shapes, l.CheckOutputs(g, shapes, in.Outputs)
}

// engine runs lowered graphs.
type engine struct {
	name string
	open func(*graph.Compilation) (graph.Engine, error)
}

// engines are those that are available.
func engines() []engine {
	list := []engine{{"go", func(c *graph.Compilation) (graph.Engine, error) {
		return goengine.NewImage(context.Background(), c, graph.WeightsCache{})
	}}}
	if _, err := xnn.Open(xnntest.Path()); err == nil {
		list = append(list, engine{"native", openNative})
	}
	return list
}

func openNative(c *graph.Compilation) (graph.Engine, error) {
	m := &native.Image{Compilation: c, Cost: c.Graph.Cost(c.Shapes), InGo: &goengine.Image{Compilation: c}, Fail: func(error) {}}
	if err := m.Open(context.Background(), xnntest.Path(), graph.WeightsCache{}); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// compile lowers a graph for the engine.
func (e engine) compile(in *regions.Graph) (graph.Engine, error) {
	g, shapes, err := lowered(in)
	if err != nil {
		return nil, err
	}
	graph.Fuse(g, shapes, native.RefusesNode)
	return e.open(&graph.Compilation{Graph: g, Shapes: shapes, Limits: in.Limits, Region: true})
}

// checkCalls compiles the graph for each engine and compares its outputs with those of the
// portable kernels. Every call must be lowered.
func checkCalls(t *testing.T, c *calls, tolerance float64) {
	t.Helper()
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	for i := range c.Graph.Calls {
		if reason := rejected(c.Graph, i); reason != "" {
			t.Fatalf("%s: got %q, want it lowered", c.Graph.Calls[i].Place, reason)
		}
	}
	for _, e := range engines() {
		if err := compareCalls(c, e, tolerance); err != nil && !graphtest.IsFault(err) {
			t.Errorf("%s: %v", e.name, err)
		}
	}
}

// compareCalls runs the graph on an engine, and compares its outputs with those of the portable kernels.
func compareCalls(c *calls, e engine, tolerance float64) error {
	img, err := e.compile(c.Graph)
	if err != nil {
		return err
	}
	defer img.Close()
	args := c.Arguments()
	if err := execute(img, args); err != nil {
		return err
	}
	for i, v := range c.Graph.Outputs {
		if c.Allowed > 0 {
			tolerance = c.Allowed / max(1, graphtest.Largest(graphtest.NumbersOf(c.Tensors[v])))
		}
		if err := callstest.Near(args[len(c.Graph.Inputs)+i].Tensor, c.Tensors[v], tolerance); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}

// execute runs a graph once.
func execute(img graph.Engine, args []*tensor.Value) error {
	u, err := img.Unit(delegate.Instance{Pool: cpu.NewPool(1)})
	if err != nil {
		return err
	}
	defer u.Close()
	return u.Execute(context.Background(), args)
}
