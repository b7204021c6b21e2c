package goengine

import (
	"bytes"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// movesGraph returns a random graph of transposes, reshapes, concatenations and functions of each element.
func movesGraph(seed uint64) *graph.Graph {
	c := &graphtest.Chain{Maker: graphtest.NewMaker(seed)}
	d := []graph.Datatype{graph.FP32, graph.FP16, graph.QInt8}[c.R.IntN(3)]
	dims := []int{1, 1 + c.R.IntN(6), 1 + c.R.IntN(6), 2 << c.R.IntN(5)}
	x := c.Input(d, dims...)
	if c.R.IntN(2) == 0 {
		axis := c.R.IntN(4)
		other := slices.Clone(dims)
		other[axis] *= 1 + c.R.IntN(2)
		y := c.Input(d, other...)
		c.Keep(y, x)
		dims[axis] += other[axis]
		x = joined(c, x, y, d, axis, dims)
	}
	for range 1 + c.R.IntN(7) {
		s := c.Graph.Values[x].Shape
		switch c.R.IntN(4) {
		case 0, 1:
			perm := c.R.Perm(s.Rank)
			y := c.Add("StaticTranspose", []int{x}, d, s.Permuted(perm), func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = perm })
			c.Keep(y, x)
			if c.R.IntN(3) == 0 {
				if c.R.IntN(2) == 0 {
					y = c.Add("Abs", []int{y}, d, s.Permuted(perm))
					c.Keep(y, x)
				}
				back := make([]int, s.Rank)
				for i, p := range perm {
					back[p] = i
				}
				c.Keep(c.Add("StaticTranspose", []int{y}, d, s, func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = back }), x)
				y = len(c.Graph.Values) - 1
			}
			x = y
		case 2:
			sizes := sizesOf(c, s)
			y := c.Add("StaticReshape", []int{x}, d, graph.ShapeOf(sizes...), func(n *graph.Node) { graph.Params[graph.ReshapeParams](n).Sizes = sizes })
			c.Keep(y, x)
			x = y
		default:
			if c.R.IntN(3) > 0 {
				continue
			}
			out := s.Dims()
			axis := c.R.IntN(s.Rank)
			out[axis] *= 2
			x = joined(c, x, x, d, axis, out)
		}
	}
	return c.Done(x)
}

// TestRearrange compares graphs whose nodes are merged, because sizes do not change, with the same ones that keep theirs.
func TestRearrange(t *testing.T) {
	merged, dropped, copied := 0, 0, 0
	for seed := range uint64(3000) {
		g := movesGraph(seed)
		var results [2][]*tensor.Value
		for i, specs := range [][]*delegate.ArgSpec{graphtest.ArgSpecs(g, true), graphtest.ArgSpecs(g, false)} {
			m, err := compile(t, g, specs)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			x := m.Graph
			results[i] = graphtest.NewMaker(seed).Arguments(x)
			if err := newUnit(m, delegate.Instance{}).Execute(t.Context(), results[i]); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if slices.ContainsFunc(x.Nodes, func(n graph.Node) bool { return n.Type.Tag == graph.TagRearrange }) {
				if merged++; i == 0 {
					t.Fatalf("seed %d: nodes are merged though sizes may change: %v", seed, typeNames(x))
				}
			}
			if i == 0 && slices.ContainsFunc(x.Nodes, func(n graph.Node) bool { return n.Type.Tag == graph.TagCopy }) {
				copied++
			}
			if i == 1 && len(x.Nodes) < len(g.Nodes) {
				dropped++
			}
		}
		for i := g.Inputs; i < len(g.Args); i++ {
			if got, want := results[1][i].Tensor, results[0][i].Tensor; !bytes.Equal(got.Data, want.Data) {
				t.Fatalf("seed %d: output %d: got %v, want %v", seed, i-g.Inputs, graphtest.NumbersOf(got), graphtest.NumbersOf(want))
			}
		}
	}
	if merged < 500 || dropped < merged {
		t.Errorf("nodes are merged in %d graphs, and fewer in %d", merged, dropped)
	}
	if copied < 100 {
		t.Errorf("two transposes are a copy in %d graphs of sizes that may change", copied)
	}
}

// TestRearrangeShuffle checks the nodes of the shuffle of channels after a concatenation.
func TestRearrangeShuffle(t *testing.T) {
	m := graphtest.NewMaker(1)
	a, b := m.Input(graph.FP32, 1, 28, 28, 24), m.Input(graph.FP32, 1, 28, 28, 24)
	both, planes, y := m.Value(graph.FP32, 1, 28, 28, 48), m.Value(graph.FP32, 1, 48, 28, 28), m.Value(graph.FP32, 1, 48, 28, 28)
	split, turned := m.Value(graph.FP32, 1, 2, 24, 28, 28), m.Value(graph.FP32, 1, 24, 2, 28, 28)
	m.Node("Concatenate2", []int{a, b}, []int{both}, func(n *graph.Node) { graph.Params[graph.ConcatenateParams](n).Axis = 3 })
	transpose := func(x, y int, perm ...int) {
		m.Node("StaticTranspose", []int{x}, []int{y}, func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = perm })
	}
	reshape := func(x, y int) {
		m.Node("StaticReshape", []int{x}, []int{y}, func(n *graph.Node) {
			graph.Params[graph.ReshapeParams](n).Sizes = slices.Clone(m.Graph.Values[y].Shape.Dims())
		})
	}
	transpose(both, planes, 0, 3, 1, 2)
	reshape(planes, split)
	transpose(split, turned, 0, 2, 1, 3, 4)
	reshape(turned, y)
	g := m.Done(y)
	own, err := compile(t, g, graphtest.ArgSpecs(g, false))
	if err != nil {
		t.Fatal(err)
	}
	x := own.Graph
	if len(x.Nodes) != 1 || x.Nodes[0].Type.Tag != graph.TagRearrange {
		t.Fatalf("nodes %v", typeNames(x))
	}
	args := graphtest.NewMaker(2).Arguments(x)
	if err := newUnit(own, delegate.Instance{}).Execute(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	for i, got := range tensor.View[float32](args[2].Tensor.Data) {
		channel, pixel := i/784, i%784
		want := tensor.View[float32](args[channel%2].Tensor.Data)[pixel*24+channel/2]
		if got != want {
			t.Fatalf("element %d: got %v, want %v", i, got, want)
		}
	}
	wrong := graphtest.NewMaker(2).Arguments(x)
	wrong[0].Tensor = tensor.New(tensor.Float32, 1, 14, 28, 24)
	if err := newUnit(own, delegate.Instance{}).Execute(t.Context(), wrong); err == nil {
		t.Error("no error for other sizes than the declared ones")
	}
}

// joined adds a concatenation of two values.
func joined(c *graphtest.Chain, x, y int, d graph.Datatype, axis int, dims []int) int {
	z := c.Add("Concatenate2", []int{x, y}, d, graph.ShapeOf(dims...), func(n *graph.Node) { graph.Params[graph.ConcatenateParams](n).Axis = axis })
	c.Keep(z, x)
	return z
}

// sizesOf splits and merges the sizes of a shape.
func sizesOf(c *graphtest.Chain, s graph.Shape) (sizes []int) {
	for _, n := range s.Dims() {
		if n%2 == 0 && c.R.IntN(3) == 0 && len(sizes) < 4 {
			sizes = append(sizes, 2, n/2)
			continue
		}
		sizes = append(sizes, n)
	}
	for i := 0; i+1 < len(sizes); i++ {
		if len(sizes) > 5 || c.R.IntN(4) == 0 {
			sizes[i] *= sizes[i+1]
			sizes = slices.Delete(sizes, i+1, i+2)
		}
	}
	if len(sizes) > 6 {
		return []int{s.Numel()}
	}
	return sizes
}
