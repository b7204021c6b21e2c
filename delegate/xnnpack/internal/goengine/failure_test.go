package goengine

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestGraphAfterFailure checks that a graph for which the Go engine has no memory is as it was: the library does not know the nodes
// that fusing makes, and would not compute the functions that it merges.
func TestGraphAfterFailure(t *testing.T) {
	maker := graphtest.NewMaker(1)
	x := maker.Input(graph.FP32, 2, 32)
	y, s, z := maker.Value(graph.FP32, 2, 48), maker.Value(graph.FP32, 2, 48), maker.Value(graph.FP32, 2, 48)
	maker.Node("FullyConnected", []int{x, maker.Constant(graph.FP32, 0, 48, 32), graph.None}, []int{y})
	maker.Node("Sigmoid", []int{y}, []int{s})
	maker.Node("Multiply", []int{y, s}, []int{z})
	g := maker.Done(z)
	c := compilation(t, g)
	c.Limits = delegate.Limits{Memory: 64, Scratch: 64}
	want := typeNames(c.Graph)
	if _, err := NewImage(context.Background(), c, graph.WeightsCache{}); !errors.Is(err, delegate.ErrMemory) {
		t.Fatalf("got %v, want ErrMemory", err)
	}
	if got := typeNames(c.Graph); !slices.Equal(got, want) {
		t.Errorf("got the nodes %q, want %q", got, want)
	}
	for i := range c.Graph.Nodes {
		if n := &c.Graph.Nodes[i]; n.Then != nil {
			t.Errorf("%s still has a merged function", n.Location())
		}
	}
	c.Limits = delegate.Limits{}
	m, err := NewImage(context.Background(), c, graph.WeightsCache{})
	if err != nil || len(m.Graph.Nodes) == len(want) {
		t.Errorf("without limits: %v, want fewer than %d nodes", err, len(want))
	}
}

func typeNames(g *graph.Graph) (list []string) {
	for i := range g.Nodes {
		list = append(list, g.Nodes[i].Type.Name)
	}
	return list
}
