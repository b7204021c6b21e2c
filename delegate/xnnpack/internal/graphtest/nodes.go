package graphtest

import (
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Given adds a constant with a tensor's data.
func (m *Maker) Given(t *tensor.Tensor, dims ...int) int {
	v := m.Value(graph.FP32, dims...)
	m.Graph.Values[v].Data = t.Data
	return v
}

// Fixed is fix but returns nil if the shapes are inconsistent.
func (m *Maker) Fixed(outputs ...int) *graph.Graph {
	g := m.Done(outputs...)
	s, err := g.Declared()
	if err != nil {
		return nil
	}
	for _, v := range outputs {
		g.Values[v].Shape = s[v]
	}
	return g
}

// ClampBehind makes a graph of a node and a clamp of its output.
func (m *Maker) ClampBehind(kind string, d graph.Datatype) *graph.Graph {
	types := map[graph.Datatype]graph.Weighted{graph.FP32: {In: graph.FP32, Filter: graph.FP32, Bias: graph.FP32, Out: graph.FP32}, graph.QInt8: {In: graph.QInt8, Filter: graph.QCInt8, Bias: graph.QCInt32, Out: graph.QInt8}, graph.QUInt8: {In: graph.QUInt8, Filter: graph.QUInt8, Bias: graph.QInt32, Out: graph.QUInt8}}[d]
	w := windows[m.R.IntN(3)].w
	var g *graph.Graph
	switch kind {
	case "FullyConnected":
		g = m.fullyConnectedSample(types, 0)
	case "MaxPooling2d":
		x, y := m.Input(d, 1, 5, 5, 3), m.Value(d, 1, 4, 4, 3)
		m.Graph.Values[y].Quant = m.Graph.Values[x].Quant
		m.Node(kind, []int{x}, []int{y}, WithWindow(graph.Window{KernelH: 2, KernelW: 2, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}))
		g = m.Done(y)
	case "Clamp":
		g = m.UnarySample(kind, d)
	case "Add":
		g = m.BinarySample(kind, d)
	default:
		g = m.convolutionSample(kind, w, false, types, m.R.IntN(2) == 0)
	}
	last := &g.Nodes[len(g.Nodes)-1]
	last.Min, last.Max = m.bounds(d)
	m.clamp(last.Out[0], d)
	if m.R.IntN(3) == 0 {
		m.clamp(len(g.Values)-1, d)
	}
	return g
}

// clamp adds a clamp of output v, which becomes an intermediate value.
func (m *Maker) clamp(v int, d graph.Datatype) {
	g := m.Graph
	y := m.Value(d, g.Values[v].Shape.Dims()...)
	x := &g.Values[v]
	if m.R.IntN(2) == 0 {
		g.Values[y].Quant = x.Quant
	}
	g.Values[y].Output, g.Values[y].Arg, g.Args[x.Arg] = true, x.Arg, y
	x.Output, x.Arg = false, graph.None
	lo, hi := m.bounds(d)
	m.Node("Clamp", []int{v}, []int{y}, func(n *graph.Node) { n.Min, n.Max = lo, hi })
}

// bounds returns bounds that are random, half open, equal, or outside the range of quantized elements.
func (m *Maker) bounds(d graph.Datatype) (lo, hi float32) {
	switch m.R.IntN(6) {
	case 0:
		return -graph.Inf, graph.Inf
	case 1:
		return 0, graph.Inf
	case 2:
		return 0.3, 0.3
	case 3:
		return 6, 128
	case 4:
		return -500, -100
	}
	lo = m.number()
	return lo, lo + float32(math.Abs(float64(m.number())))
}

// WideValue returns a graph with an intermediate value of size×size×8.
func (m *Maker) WideValue(size int) *graph.Graph {
	x, wide, y := m.Input(graph.FP32, 1, 1, 1, 8), m.Value(graph.FP32, 1), m.Value(graph.FP32, 1)
	m.Node("StaticConstantPad", []int{x}, []int{wide}, func(n *graph.Node) {
		p := graph.Params[graph.PadParams](n)
		p.Before, p.After = make([]int, 4), []int{0, size, size, 0}
	})
	m.Node("StaticSlice", []int{wide}, []int{y}, func(n *graph.Node) {
		*graph.Params[graph.SliceParams](n) = graph.SliceParams{Offsets: make([]int, 4), Sizes: []int{1, 1, 1, 1}}
	})
	return m.Fixed(y)
}

// WideTable returns a graph with a 64x64 pool, which needs a pointer per window element.
func (m *Maker) WideTable(size int) *graph.Graph {
	x, y := m.Input(graph.FP32, 1, size, size/4, 1), m.Value(graph.FP32, 1)
	m.Node("MaxPooling2d", []int{x}, []int{y}, WithWindow(graph.Window{KernelH: 64, KernelW: 64, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}))
	return m.Fixed(y)
}

// WideImage returns a graph that resizes a pixel to size×size.
func (m *Maker) WideImage(size int) *graph.Graph {
	x, y := m.Input(graph.FP32, 1, 1, 1, 1), m.Value(graph.FP32, 1)
	m.Node("StaticResizeBilinear2D", []int{x}, []int{y}, func(n *graph.Node) {
		*graph.Params[graph.ResizeParams](n) = graph.ResizeParams{Height: size, Width: size}
	})
	return m.Fixed(y)
}

// TransposedLike adds a transpose of v with v's datatype and quantization.
func (m *Maker) TransposedLike(v int, perm []int) int {
	x := &m.Graph.Values[v]
	y := m.Value(x.Datatype, x.Shape.Permuted(perm).Dims()...)
	m.Graph.Values[y].Quant = m.Graph.Values[v].Quant
	m.Node("StaticTranspose", []int{v}, []int{y}, func(n *graph.Node) { *graph.Params[graph.TransposeParams](n) = graph.TransposeParams{Perm: perm} })
	return y
}

// Sigmoid adds a Sigmoid node that reads x and returns its output.
func (m *Maker) Sigmoid(x int) int {
	v := m.Value(graph.FP32, m.Graph.Values[x].Shape.Dims()...)
	m.Node("Sigmoid", []int{x}, []int{v})
	return v
}
