package goengine

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// randomProduct returns a graph of one product of 8-bit activations, or nil if the shapes are invalid.
func randomProduct(m *graphtest.Maker) (string, *graph.Graph) {
	m.Lo, m.Hi = -1, 1
	var types []graph.Weighted
	for _, w := range append(graph.ConvolutionTypes, graph.FullyConnectedTypes...) {
		if !w.In.IsFloat() {
			types = append(types, w)
		}
	}
	w := types[m.R.IntN(len(types))]
	if w.Filter.Info().Bits == 4 || m.R.IntN(3) == 0 {
		return randomConnected(m, w)
	}
	return randomConvolution(m, w)
}

func randomConnected(m *graphtest.Maker, w graph.Weighted) (string, *graph.Graph) {
	rows, k, cols := upTo(m, 80), upTo(m, 200), upTo(m, 150)
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
		group := upTo(m, k)
		for k%group != 0 {
			group--
		}
		regroup(m, filter, cols, k, group)
	}
	y := m.Value(w.Out, rows, cols)
	m.Node("FullyConnected", []int{x, filter, bias}, []int{y}, someBounds(m))
	return fmt.Sprintf("%v of %d rows, %d to %d channels", w, rows, k, cols), m.Done(y)
}

func randomConvolution(m *graphtest.Maker, w graph.Weighted) (string, *graph.Graph) {
	kind := []string{"Conv2d", "DepthwiseConv2d", "ConvTranspose2d"}[m.R.IntN(3)]
	o := graph.Window{Top: m.R.IntN(3), Right: m.R.IntN(3), Bottom: m.R.IntN(3), Left: m.R.IntN(3), KernelH: upTo(m, 5), KernelW: upTo(m, 5),
		StrideH: upTo(m, 3), StrideW: upTo(m, 3), DilationH: upTo(m, 2), DilationW: upTo(m, 2),
		Groups: upTo(m, 4), GroupIn: upTo(m, 40), GroupOut: upTo(m, 50)}
	if kind == "DepthwiseConv2d" {
		o.Groups, o.GroupIn, o.GroupOut = upTo(m, 70), 1, max(1, upTo(m, 9)-6)
	}
	if m.R.IntN(3) == 0 { // 1x1: a product of the pixels
		o = graph.Window{KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
			Groups: o.Groups, GroupIn: o.GroupIn, GroupOut: o.GroupOut}
	}
	dims, out := []int{upTo(m, 2), upTo(m, 14), upTo(m, 14), o.Groups * o.GroupIn}, o.Groups*o.GroupOut
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
	m.Node(kind, []int{x, filter, bias}, []int{y}, graphtest.WithWindow(o), someBounds(m))
	name := fmt.Sprintf("%s %v %+v of %v", kind, w, o, dims)
	g := m.Done(y)
	s, err := g.Declared()
	if err != nil {
		return name, nil
	}
	g.Values[y].Shape = s[y]
	return name, g
}

// upTo returns a random number from 1 to n, often a small one.
func upTo(m *graphtest.Maker, n int) int {
	if m.R.IntN(3) == 0 {
		return 1 + m.R.IntN(min(n, 3))
	}
	return 1 + m.R.IntN(n)
}

// regroup sets a group size, which divides k, and random scales of a 4-bit filter.
func regroup(m *graphtest.Maker, v, cols, k, group int) {
	q := &m.Graph.Values[v].Quant
	q.GroupSize, q.Blocks = group, nil
	for range cols * (k / group) {
		q.Blocks = append(q.Blocks, uint16(math.Float32bits(m.R.Float32()*0.05+0.001)>>16))
	}
}

// someBounds returns what sets random bounds of a node, or none.
func someBounds(m *graphtest.Maker) func(n *graph.Node) {
	return func(n *graph.Node) {
		if m.R.IntN(2) == 0 {
			n.Min, n.Max = -1.5, 2
		}
	}
}
