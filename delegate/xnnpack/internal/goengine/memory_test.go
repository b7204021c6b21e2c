package goengine

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// plannedGraphs returns graphs of one node and some of more.
func plannedGraphs() []graphtest.Sample {
	list := graphtest.Samples(1)
	for i, g := range []*graph.Graph{
		chainGraph(16), chainGraph(512), planesGraph(3, 7, 5, 14, 15, 0, false), graphtest.RandomGraph(12, 7),
	} {
		list = append(list, graphtest.Sample{Name: fmt.Sprint("graph ", i), Graph: g})
	}
	return list
}

// allocated returns memory for the blocks of a workspace. It has no capacity beyond the blocks.
func allocated(w *lowering.Workspace) (blocks [][]byte) {
	for _, b := range w.Blocks {
		blocks = append(blocks, slices.Clip(tensor.AlignedBytes(int(b.Bytes))))
	}
	return blocks
}

// TestBlocks runs units with blocks of a memory plan, at the declared sizes and at other ones.
func TestBlocks(t *testing.T) {
	inBlocks, elsewhere := 0, 0
	list := plannedGraphs()
	for _, s := range list {
		m, err := compile(t, s.Graph, nil)
		if err != nil {
			continue
		}
		defer m.Close()
		w := m.Workspace()
		if w == nil {
			continue
		}
		g, u, maker := m.Graph, newUnit(m, delegate.Instance{Blocks: allocated(w)}), graphtest.NewMaker(3)
		for i, args := range [][]*tensor.Value{maker.Arguments(g), maker.Resized(g), maker.Arguments(g), maker.Resized(g)} {
			if err := u.Execute(context.Background(), args); err != nil && i%2 == 0 {
				t.Fatalf("%s: %v", s.Name, err)
			}
			if u.placement == u.planned {
				inBlocks++
			} else {
				elsewhere++
			}
		}
	}
	if inBlocks < len(list) || elsewhere == 0 {
		t.Errorf("%d runs in blocks and %d elsewhere, of %d graphs", inBlocks, elsewhere, len(list))
	}
}

// TestOtherBlocks runs units with fewer or shorter blocks than declared. They then have memory of their own.
func TestOtherBlocks(t *testing.T) {
	shorter := func(list [][]byte, i, by int) [][]byte {
		list[i] = slices.Clip(list[i][:max(0, len(list[i])-by)])
		return list
	}
	changes := []struct {
		name     string
		change   func(list [][]byte) [][]byte
		inBlocks bool
	}{
		{"as declared", func(list [][]byte) [][]byte { return list }, true},
		{"none", func([][]byte) [][]byte { return nil }, false},
		{"an empty list", func(list [][]byte) [][]byte { return list[:0] }, false},
		{"without the first", func(list [][]byte) [][]byte { return list[1:] }, false},
		{"without the last", func(list [][]byte) [][]byte { return list[:len(list)-1] }, false},
		{"the last only", func(list [][]byte) [][]byte { return list[len(list)-1:] }, false},
		{"one more", func(list [][]byte) [][]byte { return append(list, list[0]) }, false},
		{"a short first", func(list [][]byte) [][]byte { return shorter(list, 0, 64) }, false},
		{"an empty first", func(list [][]byte) [][]byte { return shorter(list, 0, 1<<30) }, false},
		{"a short last", func(list [][]byte) [][]byte { return shorter(list, len(list)-1, 64) }, false},
	}
	m := graphtest.NewMaker(7)
	x, a, b, y := m.Input(graph.FP16, 2, 4096), m.Value(graph.FP16, 2, 4096), m.Value(graph.FP16, 4, 4096), m.Value(graph.FP16, 4, 4096)
	m.Node("Square", []int{x}, []int{a})
	m.Node("Concatenate2", []int{a, a}, []int{b})
	m.Node("Softmax", []int{b}, []int{y})
	own := mustCompile(t, m.Done(y))
	defer own.Close()
	w, g := own.Workspace(), own.Graph
	if len(w.Blocks) != 4 || w.Blocks[3].Bytes == 0 {
		t.Fatalf("got blocks %v, want two of values and two of working memory", w.Blocks)
	}
	args, want := graphtest.NewMaker(5).Arguments(g), graphtest.NewMaker(5).Arguments(g)
	mustExecute(t, newUnit(own, delegate.Instance{}), want)
	for _, c := range changes {
		u := newUnit(own, delegate.Instance{Blocks: c.change(allocated(w))})
		mustExecute(t, u, args)
		if !bytes.Equal(args[1].Tensor.Data, want[1].Tensor.Data) {
			t.Errorf("%s: the output differs", c.name)
		}
		if got := u.arena.bytes == nil; got != c.inBlocks {
			t.Errorf("%s: values in blocks: got %v, want %v", c.name, got, c.inBlocks)
		}
	}
}

// TestWorkspaceSpans checks when the arguments of a chain are used, and each part of the working memory.
func TestWorkspaceSpans(t *testing.T) {
	m := graphtest.NewMaker(7)
	x, y := m.Input(graph.FP16, 2, 64), m.Input(graph.FP32, 2, 1)
	a, b, c, d := m.Value(graph.FP32, 2, 64), m.Value(graph.FP32, 2, 64), m.Value(graph.FP32, 2, 64), m.Value(graph.FP32, 2, 64)
	m.Node("Convert", []int{x}, []int{a})
	m.Node("Add", []int{a, y}, []int{b})
	m.Node("Softmax", []int{b}, []int{c})
	m.Node("Softmax", []int{b}, []int{d})
	own := mustCompile(t, m.Done(b, c, d))
	defer own.Close()
	w := own.Workspace()
	if got, want := fmt.Sprint(w.Moments, w.Args, w.Blocks[1].Span, w.Blocks[2].Span), "4 [{0 0} {0 1} {1 3} {2 3} {3 3}] {0 0} {1 1}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
