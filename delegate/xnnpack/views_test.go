package xnnpack

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// movesMaker makes graphs of fp32 nodes that move elements.
type movesMaker struct{ *graphtest.Maker }

func (m movesMaker) reshape(x int, dims ...int) int {
	y := m.Value(graph.FP32, dims...)
	m.Node("StaticReshape", []int{x}, []int{y}, func(n *graph.Node) { graph.Params[graph.ReshapeParams](n).Sizes = dims })
	return y
}

func (m movesMaker) transpose(x int, perm ...int) int {
	y := m.Value(graph.FP32, m.Graph.Values[x].Shape.Permuted(perm).Dims()...)
	m.Node("StaticTranspose", []int{x}, []int{y}, func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = perm })
	return y
}

func (m movesMaker) unary(name string, x int) int {
	y := m.Value(graph.FP32, m.Graph.Values[x].Shape.Dims()...)
	m.Node(name, []int{x}, []int{y})
	return y
}

// TestViews checks which nodes that only copy remain, and that all graphs compute what they do if sizes may change, when most nodes
// remain.
func TestViews(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(m movesMaker, x int) (outputs []int)
		want []string
	}{
		{"reshapes at both ends", func(m movesMaker, x int) []int {
			return []int{m.reshape(m.unary("Abs", m.reshape(x, 6, 4)), 24)}
		}, []string{"Abs"}},
		{"a reshape of a reshape, from an input to an output", func(m movesMaker, x int) []int {
			return []int{m.reshape(m.reshape(x, 6, 4), 24)}
		}, []string{"StaticReshape"}},
		{"a reshape to the same sizes", func(m movesMaker, x int) []int {
			return []int{m.unary("Abs", m.reshape(m.unary("Negate", x), 1, 2, 3, 4))}
		}, []string{"Negate", "Abs"}},
		{"a transpose of dimensions of size 1", func(m movesMaker, x int) []int {
			return []int{m.unary("Abs", m.transpose(m.unary("Negate", x), 1, 2, 0, 3))}
		}, []string{"Negate", "StaticReshape", "Abs"}},
		{"an input with two readers", func(m movesMaker, x int) []int {
			y := m.reshape(x, 6, 4)
			return []int{m.unary("Abs", y), m.unary("Negate", m.reshape(x, 6, 4)), m.unary("Square", m.reshape(x, 24)), m.unary("Copy", x)}
		}, []string{"Abs", "Negate", "StaticReshape", "Square", "StaticReshape"}},
		{"an input that another node reads", func(m movesMaker, x int) []int {
			return []int{m.unary("Abs", m.reshape(x, 6, 4)), m.unary("Negate", x)}
		}, []string{"StaticReshape", "Abs", "Negate"}},
		{"a value that is copied to two outputs", func(m movesMaker, x int) []int {
			y := m.unary("Abs", x)
			return []int{m.reshape(y, 24), m.reshape(y, 4, 6), m.unary("Negate", y)}
		}, []string{"Abs", "StaticReshape", "Negate"}},
		{"an output that is read", func(m movesMaker, x int) []int {
			y := m.reshape(m.unary("Abs", x), 4, 6)
			return []int{y, m.unary("Negate", y)}
		}, []string{"Abs", "StaticReshape", "Negate"}},
		{"a copy of an input", func(m movesMaker, x int) []int { return []int{m.unary("Copy", x)} }, []string{"Copy"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			forEngines(t, func(t *testing.T, engine Engine) {
				m := movesMaker{graphtest.NewMaker(1)}
				g := m.Done(c.make(m, m.Input(graph.FP32, 1, 2, 3, 4))...)
				kept, want := runMoves(t, g, EngineGo, true)
				if len(kept) < len(c.want) {
					t.Fatalf("nodes %v of sizes that may change", kept)
				}
				names, got := runMoves(t, g, engine, false)
				if !slices.Equal(names, c.want) {
					t.Errorf("nodes %v, want %v", names, c.want)
				}
				for i := range want {
					if a, b := got[i].Tensor, want[i].Tensor; !bytes.Equal(a.Data, b.Data) || !slices.Equal(a.Sizes, b.Sizes) {
						t.Errorf("argument %d: got %v %v, want %v %v", i, a.Sizes, graphtest.NumbersOf(a), b.Sizes, graphtest.NumbersOf(b))
					}
				}
			})
		})
	}
}

// runMoves returns the nodes of a compiled graph, and the arguments after two calls of it.
func runMoves(t *testing.T, g *graph.Graph, engine Engine, dynamic bool) (names []string, args []*tensor.Value) {
	t.Helper()
	p := &delegate.Payload{Data: graphtest.Encode(g), Args: graphtest.ArgSpecs(g, dynamic), AsWritten: true}
	img, err := Backend{Engine: engine}.Compile(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	for _, n := range img.(*image).Graph.Nodes {
		names = append(names, n.Type.Name)
	}
	args = graphtest.NewMaker(2).Arguments(g)
	u, err := img.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	mustExecute(t, u, args)
	args = graphtest.NewMaker(3).Arguments(g)
	mustExecute(t, u, args)
	return names, args
}

// TestViewsOfOtherSizes requires errors for tensors whose sizes are not those of the payload's arguments.
func TestViewsOfOtherSizes(t *testing.T) {
	forEngines(t, func(t *testing.T, engine Engine) {
		m := movesMaker{graphtest.NewMaker(1)}
		g := m.Done(m.reshape(m.unary("Abs", m.reshape(m.Input(graph.FP32, 2, 3, 4), 6, 4)), 24))
		img, err := Backend{Engine: engine}.Compile(context.Background(), &delegate.Payload{Data: graphtest.Encode(g), Args: graphtest.ArgSpecs(g, false)})
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		for i := range g.Args {
			args := graphtest.NewMaker(2).Arguments(g)
			args[i].Tensor = tensor.New(tensor.Float32, 6, 4)
			if err := runOnce(img, args); !errors.Is(err, delegate.ErrArgument) {
				t.Errorf("argument %d: got %v, want %v", i, err, delegate.ErrArgument)
			}
		}
		args := graphtest.NewMaker(2).Arguments(g)
		args[0].Tensor = tensor.New(tensor.Float32, 2, 1, 3, 4)
		args[1].Tensor = tensor.New(tensor.Float32, 1, 24)
		if err := runOnce(img, args); err != nil {
			t.Errorf("dimensions of size 1: %v", err)
		}
	})
}
