package graphtest

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// ProductSample makes a graph of a fully connected node.
func (m *Maker) ProductSample(types graph.Weighted, rows, k, cols int) *graph.Graph {
	m.Lo, m.Hi = -1, 1
	x := m.Activations(types, 1, rows, k)
	filter, bias := m.Constant(types.Filter, 0, cols, k), m.Constant(types.Bias, 0, cols)
	y := m.Value(types.Out, rows, cols)
	m.Node("FullyConnected", []int{x, filter, bias}, []int{y})
	return m.Done(y)
}

// PixelSample returns a convolution of two images of one line.
func (m *Maker) PixelSample(kind string, types graph.Weighted, width, channels, out, side int) *graph.Graph {
	m.Lo, m.Hi = -1, 1
	x := m.Activations(types, 3, 2, 1, width, channels)
	filter, bias := m.Constant(types.Filter, 0, out, side, side, channels), m.Constant(types.Bias, 0, out)
	y := m.Value(types.Out, 2, 1, 1, out)
	w := graph.Window{KernelH: side, KernelW: side, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Groups: 1, GroupIn: channels, GroupOut: out}
	w.Top, w.Left, w.Bottom, w.Right = side/2, side/2, side/2, side/2
	m.Node(kind, []int{x, filter, bias}, []int{y}, WithWindow(w))
	return m.Fix(y)
}

// Activations returns an input of a weighted node, quantized at run time along the last dimensions if
// the node takes such values.
func (m *Maker) Activations(types graph.Weighted, dynamic int, dims ...int) int {
	if types.In == graph.QDInt8 {
		return m.Quantized(m.Input(types.Out, dims...), dynamic)
	}
	return m.Input(types.In, dims...)
}

// UpTo returns a random number from 1 to n, often a small one.
func (m *Maker) UpTo(n int) int {
	if m.R.IntN(3) == 0 {
		return 1 + m.R.IntN(min(n, 3))
	}
	return 1 + m.R.IntN(n)
}

// RandomProduct returns a graph of one product of 8-bit activations, or nil if the shapes are invalid.
func (m *Maker) RandomProduct() (string, *graph.Graph) {
	m.Lo, m.Hi = -1, 1
	var types []graph.Weighted
	for _, w := range append(graph.ConvolutionTypes, graph.FullyConnectedTypes...) {
		if !w.In.IsFloat() {
			types = append(types, w)
		}
	}
	w := types[m.R.IntN(len(types))]
	if w.Filter.Info().Bits == 4 || m.R.IntN(3) == 0 {
		return m.randomConnected(w)
	}
	return m.randomConvolution(w)
}

func (m *Maker) randomConnected(w graph.Weighted) (string, *graph.Graph) {
	rows, k, cols := m.UpTo(80), m.UpTo(200), m.UpTo(150)
	var x int
	if w.In == graph.QDInt8 {
		x = m.Quantized(m.Input(w.Out, rows, k), 1)
	} else {
		x = m.Input(w.In, rows, k)
	}
	filter, bias := 0, graph.None
	if filter = m.Constant(w.Filter, 0, cols, k); m.R.IntN(2) == 0 {
		bias = m.Constant(w.Bias, 0, cols)
	}
	if w.Filter == graph.QBInt4 {
		group := m.UpTo(k)
		for k%group != 0 {
			group--
		}
		m.Regroup(filter, cols, k, group)
	}
	y := m.Value(w.Out, rows, cols)
	m.Node("FullyConnected", []int{x, filter, bias}, []int{y}, m.SomeBounds)
	return fmt.Sprintf("%v of %d rows, %d to %d channels", w, rows, k, cols), m.Done(y)
}

// Regroup sets a group size, which divides k, and random scales of a 4-bit filter.
func (m *Maker) Regroup(v, cols, k, group int) {
	q := &m.Graph.Values[v].Quant
	q.GroupSize, q.Blocks = group, nil
	for range cols * (k / group) {
		q.Blocks = append(q.Blocks, uint16(math.Float32bits(m.R.Float32()*0.05+0.001)>>16))
	}
}

// SomeBounds sets random bounds of a node, or none.
func (m *Maker) SomeBounds(n *graph.Node) {
	if m.R.IntN(2) == 0 {
		n.Min, n.Max = -1.5, 2
	}
}

func (m *Maker) randomConvolution(w graph.Weighted) (string, *graph.Graph) {
	kind := []string{"Conv2d", "DepthwiseConv2d", "ConvTranspose2d"}[m.R.IntN(3)]
	o := graph.Window{Top: m.R.IntN(3), Right: m.R.IntN(3), Bottom: m.R.IntN(3), Left: m.R.IntN(3), KernelH: m.UpTo(5), KernelW: m.UpTo(5),
		StrideH: m.UpTo(3), StrideW: m.UpTo(3), DilationH: m.UpTo(2), DilationW: m.UpTo(2),
		Groups: m.UpTo(4), GroupIn: m.UpTo(40), GroupOut: m.UpTo(50)}
	if kind == "DepthwiseConv2d" {
		o.Groups, o.GroupIn, o.GroupOut = m.UpTo(70), 1, max(1, m.UpTo(9)-6)
	}
	if m.R.IntN(3) == 0 { // 1x1: a product of the pixels
		o = graph.Window{KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
			Groups: o.Groups, GroupIn: o.GroupIn, GroupOut: o.GroupOut}
	}
	dims, out := []int{m.UpTo(2), m.UpTo(14), m.UpTo(14), o.Groups * o.GroupIn}, o.Groups*o.GroupOut
	var x int
	if w.In == graph.QDInt8 {
		x = m.Quantized(m.Input(w.Out, dims...), 3)
	} else {
		x = m.Input(w.In, dims...)
	}
	filter, bias := 0, graph.None
	if kind == "DepthwiseConv2d" {
		filter = m.Constant(w.Filter, 3, 1, o.KernelH, o.KernelW, out)
	} else {
		filter = m.Constant(w.Filter, 0, out, o.KernelH, o.KernelW, o.GroupIn)
	}
	if m.R.IntN(2) == 0 {
		bias = m.Constant(w.Bias, 0, out)
	}
	y := m.Value(w.Out, dims[0], 1, 1, out)
	m.Node(kind, []int{x, filter, bias}, []int{y}, WithWindow(o), m.SomeBounds)
	name := fmt.Sprintf("%s %v %+v of %v", kind, w, o, dims)
	g := m.Done(y)
	s, err := g.Declared()
	if err != nil {
		return name, nil
	}
	g.Values[y].Shape = s[y]
	return name, g
}

// Filled adds a constant of n equal elements.
func (m *Maker) Filled(x float32, n int) int {
	lo, hi := m.Lo, m.Hi
	m.Lo, m.Hi = x, x
	v := m.Constant(graph.FP32, 0, n)
	m.Lo, m.Hi = lo, hi
	return v
}

// ManyPixels makes a graph of a convolution of a square image.
func (m *Maker) ManyPixels(kind string, types graph.Weighted, side, stride, groups int) *graph.Graph {
	m.Lo, m.Hi = -1, 1
	w := graph.Window{KernelH: side, KernelW: side, StrideH: stride, StrideW: stride, DilationH: 1, DilationW: 1,
		Groups: groups, GroupIn: 128, GroupOut: 136}
	x := m.Activations(types, 3, 1, 15/side, 14/side, groups*w.GroupIn)
	filter := m.Constant(types.Filter, 0, groups*w.GroupOut, side, side, w.GroupIn)
	y := m.Value(types.Out, 1, 1, 1, groups*w.GroupOut)
	m.Node(kind, []int{x, filter, m.Constant(types.Bias, 0, groups*w.GroupOut)}, []int{y}, WithWindow(w))
	return m.Fix(y)
}
