package xnnpack

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// movesGraph returns a random graph of transposes, reshapes, concatenations and functions of each element.
func movesGraph(seed uint64) *graph.Graph {
	c := &chain{maker: newMaker(seed)}
	d := []graph.Datatype{graph.FP32, graph.FP16, graph.QInt8}[c.r.IntN(3)]
	dims := []int{1, 1 + c.r.IntN(6), 1 + c.r.IntN(6), 2 << c.r.IntN(5)}
	x := c.input(d, dims...)
	if c.r.IntN(2) == 0 {
		axis := c.r.IntN(4)
		other := slices.Clone(dims)
		other[axis] *= 1 + c.r.IntN(2)
		y := c.input(d, other...)
		c.keep(y, x)
		dims[axis] += other[axis]
		x = c.joined(x, y, d, axis, dims)
	}
	for range 1 + c.r.IntN(7) {
		s := c.Graph.Values[x].Shape
		switch c.r.IntN(4) {
		case 0, 1:
			perm := c.r.Perm(s.Rank)
			y := c.add("StaticTranspose", []int{x}, d, s.Permuted(perm), func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = perm })
			c.keep(y, x)
			if c.r.IntN(3) == 0 {
				y = c.add("Abs", []int{y}, d, s.Permuted(perm))
				c.keep(y, x)
				back := make([]int, s.Rank)
				for i, p := range perm {
					back[p] = i
				}
				c.keep(c.add("StaticTranspose", []int{y}, d, s, func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = back }), x)
				y = len(c.Graph.Values) - 1
			}
			x = y
		case 2:
			sizes := c.sizesOf(s)
			y := c.add("StaticReshape", []int{x}, d, graph.ShapeOf(sizes...), func(n *graph.Node) { graph.Params[graph.ReshapeParams](n).Sizes = sizes })
			c.keep(y, x)
			x = y
		default:
			if c.r.IntN(3) > 0 {
				continue
			}
			out := s.Dims()
			axis := c.r.IntN(s.Rank)
			out[axis] *= 2
			x = c.joined(x, x, d, axis, out)
		}
	}
	return c.done(x)
}

func (c *chain) joined(x, y int, d graph.Datatype, axis int, dims []int) int {
	z := c.add("Concatenate2", []int{x, y}, d, graph.ShapeOf(dims...), func(n *graph.Node) { graph.Params[graph.ConcatenateParams](n).Axis = axis })
	c.keep(z, x)
	return z
}

// sizesOf splits and merges the sizes of a shape.
func (c *chain) sizesOf(s graph.Shape) (sizes []int) {
	for _, n := range s.Dims() {
		if n%2 == 0 && c.r.IntN(3) == 0 && len(sizes) < 4 {
			sizes = append(sizes, 2, n/2)
			continue
		}
		sizes = append(sizes, n)
	}
	for i := 0; i+1 < len(sizes); i++ {
		if len(sizes) > 5 || c.r.IntN(4) == 0 {
			sizes[i] *= sizes[i+1]
			sizes = slices.Delete(sizes, i+1, i+2)
		}
	}
	if len(sizes) > 6 {
		return []int{s.Numel()}
	}
	return sizes
}

// TestRearrange compares graphs whose nodes are merged, because sizes do not change, with the same ones that keep theirs.
func TestRearrange(t *testing.T) {
	merged, dropped := 0, 0
	for seed := range uint64(3000) {
		g := movesGraph(seed)
		var results [2][]*tensor.Value
		for i, specs := range [][]*delegate.ArgSpec{staticArgs(g, true), staticArgs(g, false)} {
			img, err := Backend{Engine: EngineGo}.Compile(context.Background(), &delegate.Payload{Data: encode(g), Args: specs, AsWritten: true})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			x := img.(*image).Graph
			results[i] = newMaker(seed).arguments(x)
			if err := runOnce(img, results[i]); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if slices.ContainsFunc(x.Nodes, func(n graph.Node) bool { return n.Type == &graph.RearrangeNode }) {
				if merged++; i == 0 {
					t.Fatalf("seed %d: nodes are merged though sizes may change: %v", seed, nodeNames(x))
				}
			}
			if i == 1 && len(x.Nodes) < len(g.Nodes) {
				dropped++
			}
			img.Close()
		}
		for i := g.Inputs; i < len(g.Args); i++ {
			if got, want := results[1][i].Tensor, results[0][i].Tensor; !bytes.Equal(got.Data, want.Data) {
				t.Fatalf("seed %d: output %d: got %v, want %v", seed, i-g.Inputs, numbersOf(got), numbersOf(want))
			}
		}
	}
	if merged < 500 || dropped < merged {
		t.Errorf("nodes are merged in %d graphs, and fewer in %d", merged, dropped)
	}
}

// TestRearrangeShuffle checks the nodes of the shuffle of channels after a concatenation.
func TestRearrangeShuffle(t *testing.T) {
	m := newMaker(1)
	a, b := m.input(graph.FP32, 1, 28, 28, 24), m.input(graph.FP32, 1, 28, 28, 24)
	both, planes, y := m.value(graph.FP32, 1, 28, 28, 48), m.value(graph.FP32, 1, 48, 28, 28), m.value(graph.FP32, 1, 48, 28, 28)
	split, turned := m.value(graph.FP32, 1, 2, 24, 28, 28), m.value(graph.FP32, 1, 24, 2, 28, 28)
	m.node("Concatenate2", []int{a, b}, []int{both}, func(n *graph.Node) { graph.Params[graph.ConcatenateParams](n).Axis = 3 })
	transpose := func(x, y int, perm ...int) {
		m.node("StaticTranspose", []int{x}, []int{y}, func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = perm })
	}
	reshape := func(x, y int) {
		m.node("StaticReshape", []int{x}, []int{y}, func(n *graph.Node) {
			graph.Params[graph.ReshapeParams](n).Sizes = slices.Clone(m.Graph.Values[y].Shape.Dims())
		})
	}
	transpose(both, planes, 0, 3, 1, 2)
	reshape(planes, split)
	transpose(split, turned, 0, 2, 1, 3, 4)
	reshape(turned, y)
	g := m.done(y)
	img, err := Backend{Engine: EngineGo}.Compile(context.Background(), &delegate.Payload{Data: encode(g), Args: staticArgs(g, false), AsWritten: true})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	x := img.(*image).Graph
	if len(x.Nodes) != 1 || x.Nodes[0].Type != &graph.RearrangeNode {
		t.Fatalf("nodes %v", nodeNames(x))
	}
	args := newMaker(2).arguments(x)
	if err := runOnce(img, args); err != nil {
		t.Fatal(err)
	}
	for i, got := range tensor.View[float32](args[2].Tensor.Data) {
		channel, pixel := i/784, i%784
		want := tensor.View[float32](args[channel%2].Tensor.Data)[pixel*24+channel/2]
		if got != want {
			t.Fatalf("element %d: got %v, want %v", i, got, want)
		}
	}
	wrong := newMaker(2).arguments(x)
	wrong[0].Tensor = tensor.New(tensor.Float32, 1, 14, 28, 24)
	if err := runOnce(img, wrong); err == nil {
		t.Error("no error for other sizes than the declared ones")
	}
}
