package graph

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// splitPhases replaces transposed convolutions of bytes whose windows do not overlap. Each element of such a window is a product of a pixel
// of the input: one product computes all windows, whose elements are then put into their lines. It returns the shapes of all values.
func (g *Graph) splitPhases(shapes []Shape) []Shape {
	if !g.Static || !slices.ContainsFunc(g.Nodes, g.hasPhases) {
		return shapes
	}
	var nodes []Node
	shapes = slices.Clone(shapes)
	for _, n := range g.Nodes {
		if g.hasPhases(n) {
			nodes = append(nodes, g.phases(n, &shapes)...)
		} else {
			nodes = append(nodes, n)
		}
	}
	g.Nodes = nodes
	g.removeMerged()
	return shapes
}

func (g *Graph) hasPhases(n Node) bool {
	if n.Type.Tag != TagConvTranspose2d || g.Values[n.In[0]].Datatype.IsFloat() || !g.Values[n.In[1]].IsConst() ||
		n.In[2] != None && !g.Values[n.In[2]].IsConst() {
		return false
	}
	w := *n.Window()
	return w.Groups == 1 && w.KernelH == w.StrideH && w.KernelW == w.StrideW && w.DilationH == 1 && w.DilationW == 1 &&
		w.KernelH*w.KernelW > 1 && w.Top+w.Bottom+w.Left+w.Right+w.AdjustH+w.AdjustW == 0
}

// phases returns the nodes of a transposed convolution without overlaps.
func (g *Graph) phases(n Node, shapes *[]Shape) []Node {
	w, in, out := *n.Window(), (*shapes)[n.In[0]], (*shapes)[n.Out[0]]
	images, height, width, channels := in.Dim[0], in.Dim[1], in.Dim[2], w.GroupOut
	taps := w.KernelH * w.KernelW
	add := func(x Value, s Shape) int {
		x.ID, x.Arg, x.Input, x.Output, x.Shape = uint32(len(g.Values)), None, false, false, s
		g.Values, *shapes = append(g.Values, x), append(*shapes, s)
		return len(g.Values) - 1
	}
	like := func(sizes ...int) int { return add(g.Values[n.Out[0]], ShapeOf(sizes...)) }
	product, windows := like(images, height, width, taps*channels), like(images, height, width, w.KernelH, w.KernelW*channels)
	lines := like(images, height, w.KernelH, width, w.KernelW*channels)
	filter, bias := add(g.tapsFirst(n.In[1], w), ShapeOf(taps*channels, 1, 1, w.GroupIn)), None
	if n.In[2] != None {
		bias = add(repeated(g.Values[n.In[2]], taps), ShapeOf(taps*channels))
	}
	pixel := Window{KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Groups: 1, GroupIn: w.GroupIn, GroupOut: taps * channels}
	move := func(tag uint8, from, to int, params any) Node {
		return Node{Type: NodeTypes[tag], In: []int{from}, Out: []int{to}, Min: -Inf, Max: Inf, Params: params, Index: n.Index, DebugHandle: n.DebugHandle}
	}
	all := n
	all.Type, all.In, all.Out, all.Params = NodeTypes[TagConv2d], []int{n.In[0], filter, bias}, []int{product}, &pixel
	return []Node{all,
		move(TagStaticReshape, product, windows, &ReshapeParams{(*shapes)[windows].Dims()}),
		move(TagStaticTranspose, windows, lines, &TransposeParams{[]int{0, 1, 3, 2, 4}}),
		move(TagStaticReshape, lines, n.Out[0], &ReshapeParams{out.Dims()})}
}

// tapsFirst returns the filter [channels, kernel H, kernel W, input channels] with the channels of each tap together.
func (g *Graph) tapsFirst(v int, w Window) Value {
	x, taps := g.Values[v], w.KernelH*w.KernelW
	from, size := x.Data, x.Datatype.Bytes(ShapeOf(w.GroupIn))
	x.Quant.Scales = slices.Repeat(x.Quant.Scales, taps)
	x.Data, x.Found, x.Lent = tensor.AlignedBytes(len(from)), nil, false
	for tap := range taps {
		for c := range w.GroupOut {
			copy(x.Data[(tap*w.GroupOut+c)*size:][:size], from[(c*taps+tap)*size:])
		}
	}
	return x
}

// repeated returns a constant of channels that are repeated.
func repeated(x Value, times int) Value {
	x.Quant.Scales = slices.Repeat(x.Quant.Scales, times)
	data := slices.Repeat(x.Data, times)
	x.Data, x.Found, x.Lent = tensor.AlignedBytes(len(data)), nil, false
	copy(x.Data, data)
	return x
}
