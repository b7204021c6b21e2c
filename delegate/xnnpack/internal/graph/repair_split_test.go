package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// The library changes the number of dimensions that share a scale in a dynamically quantized value, for convolutions that it makes
// products of. Convolutions that it reads in several ways have a value each, at load and in the repaired payload.
func TestSharedDynamicValues(t *testing.T) {
	windows := map[string]graph.Window{
		"pixels":  {KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1},
		"strided": {KernelH: 1, KernelW: 1, StrideH: 2, StrideW: 2},
		"padded":  {KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1, Top: 1},
		"large":   {KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1, Top: 1, Left: 1, Bottom: 1, Right: 1},
		"groups":  {KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1, Groups: 2},
	}
	for _, c := range []struct {
		readers string
		values  int
	}{
		{"pixels", 1}, {"pixels pixels", 1}, {"large strided padded", 1}, {"groups groups", 1},
		{"pixels large", 2}, {"large pixels", 2}, {"strided pixels large", 2}, {"pixels padded", 2}, {"groups pixels", 2},
		{"large groups pixels large", 3},
	} {
		build := func(shared bool) *graph.Graph {
			m := graphtest.NewMaker(3)
			x, q := m.Input(graph.FP32, 1, 5, 6, 4), graph.None
			var outputs []int
			for i, name := range strings.Fields(c.readers) {
				w := windows[name]
				w.DilationH, w.DilationW, w.Groups = 1, 1, max(w.Groups, 1)
				w.GroupIn, w.GroupOut = 4/w.Groups, 4/w.Groups
				f, b := m.Constant(graph.QCInt8, 0, 4, w.KernelH, w.KernelW, w.GroupIn), m.Constant(graph.FP32, 0, 4)
				if i == 0 || !shared {
					q = m.Quantized(x, 3)
				}
				y := m.Value(graph.FP32, 1, (4+w.Top+w.Bottom-w.KernelH+1)/w.StrideH+1, (5+w.Left+w.Right-w.KernelW+1)/w.StrideW+1, 4)
				m.Node("Conv2d", []int{q, f, b}, []int{y}, graphtest.WithWindow(w))
				outputs = append(outputs, y)
			}
			return m.Done(outputs...)
		}
		run := func(data []byte) ([][]float32, *graph.Graph) {
			g, err := graph.ReadPayload(&delegate.Payload{Data: data}, true)
			if err != nil {
				t.Fatalf("%s: %v", c.readers, err)
			}
			shapes, err := g.Repair()
			if err != nil {
				t.Fatalf("%s: %v", c.readers, err)
			}
			args := graphtest.NewMaker(7).Arguments(g)
			if err := runGraph(t, g, shapes, args); err != nil {
				t.Fatalf("%s: %v", c.readers, err)
			}
			var out [][]float32
			for _, a := range args[g.Inputs:] {
				out = append(out, tensor.View[float32](a.Tensor.Data))
			}
			return out, g
		}
		want, _ := run(graphtest.Encode(build(false)))
		got, g := run(graphtest.Encode(build(true)))
		again, next := run(g.Payload(0))
		if !slices.EqualFunc(got, want, slices.Equal) || !slices.EqualFunc(again, want, slices.Equal) {
			t.Errorf("%s: outputs differ from those of values that are not shared", c.readers)
		}
		repaired := len(g.Repaired) > 0
		if n := conversions(g); n != c.values || repaired != (n > 1) || conversions(next) != n || len(next.Repaired) > 0 {
			t.Errorf("%s: %d conversions, want %d; repairs %q, then %q", c.readers, n, c.values, g.Repaired, next.Repaired)
		}
	}
}

func conversions(g *graph.Graph) (n int) {
	for i := range g.Nodes {
		if g.Nodes[i].Type.Tag == graph.TagConvert {
			n++
		}
	}
	return n
}

// Dimensions of size 1 have no order in memory. A payload that takes an argument for an order of other sizes than the program's is
// repaired for runtimes that compare sizes.
func TestArgumentOrdersOfOnes(t *testing.T) {
	for _, c := range []struct {
		sizes   []int
		order   []uint8
		payload []int
		repairs int
	}{
		{[]int{1, 1, 7, 5}, []uint8{0, 2, 1, 3}, []int{1, 1, 7, 5}, 1},
		{[]int{1, 1, 7, 5}, []uint8{0, 2, 3, 1}, []int{1, 1, 7, 5}, 1},
		{[]int{1, 1, 7, 5}, []uint8{0, 1, 2, 3}, []int{1, 7, 5, 1}, 1},
		{[]int{1, 6, 1, 1}, []uint8{0, 1, 2, 3}, []int{1, 1, 1, 6}, 1},
		{[]int{1, 3}, []uint8{1, 0}, []int{1, 3}, 1},
		{[]int{1, 1, 7, 5}, []uint8{0, 2, 3, 1}, []int{1, 7, 5, 1}, 0},
		{[]int{1, 6, 1, 2}, []uint8{0, 1, 2, 3}, []int{1, 6, 1, 2}, 0},
		{[]int{1, 6, 1, 2}, []uint8{0, 1, 2, 3}, []int{1, 1, 2, 6}, 0}, // other bytes
	} {
		g := graphtest.NewMaker(4)
		x, y := g.Input(graph.FP32, c.payload...), g.Value(graph.FP32, c.payload...)
		g.Node("Negate", []int{x}, []int{y})
		made := g.Done(y)
		specs := graphtest.ArgSpecs(made, false)
		for _, a := range specs {
			a.DType, a.Sizes, a.DimOrder = tensor.Float32, c.sizes, c.order
		}
		read, err := graph.ReadPayload(&delegate.Payload{Data: graphtest.Encode(made), Args: specs}, true)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(read.Repaired); n != 2*c.repairs {
			t.Errorf("sizes %v, order %v, payload %v: repairs %q, want %d", c.sizes, c.order, c.payload, read.Repaired, 2*c.repairs)
		}
		if c.repairs == 0 {
			continue
		}
		for _, v := range read.Args {
			for j, d := range c.order {
				if s := read.Values[v].Shape; s.Dim[j] != c.sizes[d] {
					t.Errorf("sizes %v, order %v: an argument of sizes %v", c.sizes, c.order, s)
				}
			}
		}
		again, err := graph.ReadPayload(&delegate.Payload{Data: read.Payload(0), Args: specs}, true)
		if err != nil || len(again.Repaired) > 0 {
			t.Errorf("sizes %v, order %v: the repaired payload: %v, repairs %q", c.sizes, c.order, err, again.Repaired)
		}
	}
}
