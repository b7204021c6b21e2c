package graph_test

import (
	"context"
	"errors"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// runGraph runs a repaired graph once on the Go engine.
func runGraph(t *testing.T, g *graph.Graph, shapes []graph.Shape, args []*tensor.Value) error {
	t.Helper()
	m, err := goengine.NewImage(t.Context(), &graph.Compilation{Graph: g, Shapes: shapes}, graph.WeightsCache{})
	if err != nil {
		return err
	}
	defer m.Close()
	u, err := m.Unit(delegate.Instance{})
	if err != nil {
		return err
	}
	defer u.Close()
	return u.Execute(context.Background(), args)
}

// runPayload reads, repairs and runs a payload once with random inputs. It returns the arguments and the repairs.
func runPayload(t *testing.T, p *delegate.Payload) ([]*tensor.Value, []string, error) {
	t.Helper()
	g, err := graph.ReadPayload(p, !p.AsWritten)
	if err != nil {
		return nil, nil, err
	}
	shapes, err := g.Repair()
	if err != nil {
		return nil, nil, err
	}
	args := graphtest.NewMaker(7).Arguments(g)
	return args, g.Repaired, runGraph(t, g, shapes, args)
}

// payloadOf returns a graph as a payload whose arguments are float32 in contiguous (channels first) dim order.
func payloadOf(g *graph.Graph) *delegate.Payload {
	return &delegate.Payload{Data: graphtest.Encode(g), Args: specsOf(g)}
}

// specsOf returns specs of a graph's arguments.
func specsOf(g *graph.Graph) []*delegate.ArgSpec {
	list := graphtest.ArgSpecs(g, false)
	for _, a := range list {
		a.DType = tensor.Float32
		for d := range a.Sizes {
			a.DimOrder = append(a.DimOrder, uint8(d))
		}
	}
	return list
}

// runZeros runs a graph with inputs of zeros. Graphs that need much memory do not run.
func runZeros(t *testing.T, g *graph.Graph, shapes []graph.Shape) {
	bytes := 0
	for v := range shapes {
		bytes += g.Values[v].Datatype.Bytes(shapes[v])
	}
	if bytes > 1<<22 {
		return
	}
	var args []*tensor.Value
	for _, v := range g.Args {
		args = append(args, new(tensor.TensorValue(tensor.New(g.Values[v].Datatype.Info().Tensor, shapes[v].Dims()...))))
	}
	if err := runGraph(t, g, shapes, args); err != nil && !errors.Is(err, delegate.ErrArgument) && !errors.Is(err, delegate.ErrUnsupported) {
		t.Fatal(err)
	}
}
