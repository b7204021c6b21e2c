package quantize

import (
	"testing"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// pixelLayer is a convolution of single pixels of four channels.
func pixelLayer(m *graphtest.Maker, x int, height, width int) int {
	y := m.Value(graph.FP32, 1, height, width, 4)
	m.Node("Conv2d", []int{x, m.Constant(graph.FP32, 0, 4, 1, 1, 4), m.Constant(graph.FP32, 0, 4)}, []int{y},
		graphtest.WithWindow(graph.Window{KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Groups: 1, GroupIn: 4, GroupOut: 4}))
	return y
}

// A clamp behind reshapes of a layer's result is a bound of the layer, unless something else reads it.
func TestFuseClamps(t *testing.T) {
	for _, c := range []struct {
		name    string
		between func(m *graphtest.Maker, y int) (next int, outputs []int)
		fused   bool
	}{
		{"none", func(_ *graphtest.Maker, y int) (int, []int) { return y, nil }, true},
		{"a transpose", func(m *graphtest.Maker, y int) (int, []int) { return m.TransposedLike(y, []int{0, 3, 1, 2}), nil }, true},
		{"two transposes", func(m *graphtest.Maker, y int) (int, []int) {
			return m.TransposedLike(m.TransposedLike(y, []int{0, 3, 1, 2}), []int{0, 2, 3, 1}), nil
		}, true},
		{"an output", func(m *graphtest.Maker, y int) (int, []int) { return m.TransposedLike(y, []int{0, 3, 1, 2}), []int{y} }, false},
		{"another reader", func(m *graphtest.Maker, y int) (int, []int) {
			z := m.TransposedLike(y, []int{0, 3, 1, 2})
			return z, []int{m.Sigmoid(z)}
		}, false},
		{"a function", func(m *graphtest.Maker, y int) (int, []int) {
			return m.Sigmoid(m.TransposedLike(y, []int{0, 3, 1, 2})), nil
		}, false},
	} {
		m := graphtest.NewMaker(2)
		y := pixelLayer(m, m.Input(graph.FP32, 1, 3, 2, 4), 3, 2)
		next, outputs := c.between(m, y)
		clamped := m.Value(graph.FP32, m.Graph.Values[next].Shape.Dims()...)
		m.Node("Clamp", []int{next}, []int{clamped}, func(n *graph.Node) { n.Min, n.Max = 0, 6 })
		g := m.Done(append(outputs, clamped)...)
		before := len(g.Nodes)
		fuseClamps(g)
		fused := len(g.Nodes) < before
		if bound := g.Nodes[0].Min == 0 && g.Nodes[0].Max == 6; fused != c.fused || bound != c.fused {
			t.Errorf("%s: fused %v, bounds %v to %v, want %v", c.name, fused, g.Nodes[0].Min, g.Nodes[0].Max, c.fused)
		}
		if _, err := g.Declared(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Means are smaller than the elements, and have a scale of their own.
func TestMeansScale(t *testing.T) {
	m := graphtest.NewMaker(3)
	x := m.Input(graph.FP32, 1, 8, 8, 4)
	y := pixelLayer(m, x, 8, 8)
	mean := m.Value(graph.FP32, 1, 1, 1, 4)
	m.Node("GlobalAvgPooling2d", []int{y}, []int{mean})
	z := pixelLayer(m, mean, 1, 1)
	p := New(m.Done(z), lowering.Scheme{Name: lowering.Static8, Observer: lowering.ObserveMinMax})
	p.Refuses = func(*graph.Graph, *graph.Node, []graph.Shape) string { return "" }
	for v, most := range map[int]float32{x: 1, y: 100, mean: 1, z: 1} {
		p.Observe(v, []float32{-most, most})
	}
	b, err := p.Build(func(int) lowering.SchemeName { return lowering.Static8 })
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.Graph.Nodes {
		n := &b.Graph.Nodes[i]
		if n.Type.Name != "GlobalAvgPooling2d" {
			continue
		}
		in, out := b.Graph.Values[n.In[0]].Quant.Scale, b.Graph.Values[n.Out[0]].Quant.Scale
		if in < 0.5 || out > 0.01 {
			t.Errorf("scales %v and %v, want those of 100 and of 1", in, out)
		}
		return
	}
	t.Error("no 8-bit mean")
}
