package goengine

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// Transposed convolutions of bytes whose windows do not overlap are computed as a product, with the same results.
func TestTransposedPhases(t *testing.T) {
	window := func(kernelH, kernelW, strideH, strideW, top, adjust int) graph.Window {
		return graph.Window{KernelH: kernelH, KernelW: kernelW, StrideH: strideH, StrideW: strideW, DilationH: 1, DilationW: 1, Top: top, AdjustH: adjust}
	}
	for _, types := range graph.ConvolutionTypes {
		for _, c := range []struct {
			window graph.Window
			bias   bool
			split  bool
		}{
			{window(2, 2, 2, 2, 0, 0), true, true}, {window(2, 2, 2, 2, 0, 0), false, true}, {window(1, 3, 1, 3, 0, 0), true, true},
			{window(3, 2, 3, 2, 0, 0), true, true}, {window(3, 3, 2, 2, 0, 0), true, false}, {window(2, 2, 2, 2, 1, 0), true, false},
			{window(2, 2, 2, 2, 0, 1), true, false}, {window(2, 2, 3, 3, 0, 0), true, false},
		} {
			name := fmt.Sprintf("%v, %+v", types, c.window)
			m := graphtest.NewMaker(9)
			g := transposedSample(m, c.window, types, c.bias)
			var got [2][]byte
			split := false
			for i, unfused := range []bool{true, false} {
				shapes, err := g.Declared()
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				img, err := NewImage(t.Context(), &graph.Compilation{Graph: g, Shapes: shapes, Unfused: unfused}, graph.WeightsCache{})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for k := range img.Graph.Nodes {
					split = split || img.Graph.Nodes[k].Type.Tag == graph.TagConv2d
				}
				args := graphtest.NewMaker(4).Arguments(g)
				u, err := img.Unit(delegate.Instance{})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if err := u.Execute(t.Context(), args); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got[i] = args[len(args)-1].Tensor.Data
				u.Close()
				img.Close()
			}
			if want := c.split && !types.In.IsFloat(); split != want || !bytes.Equal(got[0], got[1]) {
				t.Errorf("%s: a product %v, want %v; equal %v", name, split, want, bytes.Equal(got[0], got[1]))
			}
		}
	}
}

// transposedSample is a transposed convolution of one group.
func transposedSample(m *graphtest.Maker, w graph.Window, types graph.Weighted, bias bool) *graph.Graph {
	w.Groups, w.GroupIn, w.GroupOut = 1, 6, 5
	var x int
	if types.In == graph.QDInt8 {
		x = m.Quantized(m.Input(types.Out, 2, 4, 3, 6), 3)
	} else {
		x = m.Input(types.In, 2, 4, 3, 6)
	}
	f, b := m.Constant(types.Filter, 0, 5, w.KernelH, w.KernelW, 6), graph.None
	if bias {
		b = m.Constant(types.Bias, 0, 5)
	}
	y := m.Value(types.Out, 2, 1, 1, 5)
	m.Node("ConvTranspose2d", []int{x, f, b}, []int{y}, graphtest.WithWindow(w))
	g := m.Fix(y)
	g.Static = true
	return g
}
