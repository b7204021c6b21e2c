package goengine

import (
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// int8Weights are the filter of a node with 8-bit activations, packed for products: one of dot for
// each group or matrix, or nibbles, or depth. The units of an image share them.
type int8Weights struct {
	dot     []*simd.DotWeights
	nibbles *simd.Nibbles
	depth   *simd.Depthwise

	signed       bool // the activations are signed
	groups, k, n int  // k and n are per group: elements of a row, and output channels
	segments     int  // number of equally long segments in a row
	terms        int  // number of filters whose sum is the filter, one after the other
	result       requantizer
	init         []int32   // static: initial values of the sums, padded to whole panels per group
	scales       []float32 // static: scales of the sums; dynamic: scales of the filter; padded likewise
	bias         []float32 // dynamic: bias, padded likewise
	dynamic      bool      // scales and zero points of the activations are found at run time
	runtimeBias  bool      // the bias is computed at run time
}

// supportsInt8 reports whether a node's products are of 8-bit activations and a constant filter.
func supportsInt8(g *graph.Graph, n *graph.Node) bool {
	if !n.Type.Packs {
		return false
	}
	in, f := &g.Values[n.In[0]], &g.Values[n.In[1]]
	switch in.Datatype {
	case graph.QInt8, graph.QUInt8, graph.QDInt8:
	default:
		return false
	}
	if !f.IsConst() {
		return false
	}
	if f.Datatype.Info().Bits == 4 && (f.Quant.ZeroPoint != 8 || nibbleGroup(g, n) > simd.MaxNibbleRows) {
		return false
	}
	return packedInt8(g, n) <= int64(16*f.Shape.Numel()+1<<20) // otherwise it is mostly padding
}

// packedInt8 returns the approximate size of a node's packed weights in bytes.
func packedInt8(g *graph.Graph, n *graph.Node) int64 {
	f := &g.Values[n.In[1]]
	matrices, segments, columns := 1, 1, 0
	switch o := n.Window(); {
	case n.Type.Tag == graph.TagBatchMatrixMultiply:
		matrices, columns = f.Shape.Leading(f.Shape.Rank-2), f.Shape.FromEnd(0)
		if n.Flags&graph.FlagTransposeWeights != 0 {
			columns = f.Shape.FromEnd(1)
		}
	case o != nil && n.Type.Tag == graph.TagDepthwiseConv2d && o.GroupOut == 1:
		return graph.Times(graph.RoundUp(o.Groups, simd.DotCols), 4, o.KernelH*o.KernelW/2+3)
	case o != nil:
		matrices, segments, columns = o.Groups, o.KernelH*o.KernelW, o.GroupOut
	default:
		columns = n.OutputChannels(g)
	}
	k := f.Shape.Numel() / (matrices * segments * columns) // rows of a segment
	bytes := graph.Times(segments, graph.RoundUp(k, 4), simd.DotBytes())
	if f.Datatype.Info().Bits == 4 {
		rows := nibbleGroup(g, n)
		bytes = int64(simd.NibblesSize(simd.DotCols, k/rows, rows) / simd.DotCols)
	}
	if f.Datatype == graph.QUInt8 { // see int8Weights.terms
		bytes = graph.Repeat(2, bytes)
		if f.Quant.ZeroPoint == 0 {
			bytes = graph.Repeat(3, bytes) / 2
		}
	}
	return graph.Repeat(matrices, graph.Repeat(graph.RoundUp(columns, simd.DotCols), graph.Plus(bytes, 20)))
}

// layoutInt8 returns weights without elements, and the number of their matrices: one for each group, or matrix of a
// batch.
func layoutInt8(g *graph.Graph, n *graph.Node) (x *int8Weights, matrices int) {
	in, f, o := &g.Values[n.In[0]], &g.Values[n.In[1]], n.Window()
	x = &int8Weights{groups: 1, segments: 1, terms: 1, signed: in.Datatype != graph.QUInt8, dynamic: in.Datatype == graph.QDInt8,
		result: requantizerOf(g, n)}
	x.split(f)
	switch {
	case n.Type.Tag == graph.TagBatchMatrixMultiply:
		x.k, x.n = f.Shape.FromEnd(1), f.Shape.FromEnd(0)
		if n.Flags&graph.FlagTransposeWeights != 0 {
			x.k, x.n = x.n, x.k
		}
		return x, f.Shape.Leading(f.Shape.Rank - 2)
	case o != nil:
		x.groups, x.n, x.k, x.segments = o.Groups, o.GroupOut, o.KernelH*o.KernelW*o.GroupIn, o.KernelH*o.KernelW
		if n.Joined() {
			x.segments = o.KernelH
		}
		return x, x.groups
	}
	x.k, x.n = n.InputChannels(g), n.OutputChannels(g)
	return x, 1
}

// byDepth reports whether the products of a node's bytes are those of a depthwise convolution.
func byDepth(g *graph.Graph, n *graph.Node) bool {
	return n.Type.Tag == graph.TagDepthwiseConv2d && n.Window().GroupOut == 1 && g.Values[n.In[0]].Datatype != graph.QDInt8
}

// byNibbles reports whether a node has a matrix of 4-bit elements.
func byNibbles(g *graph.Graph, n *graph.Node) bool {
	return n.Window() == nil && g.Values[n.In[1]].Datatype.Info().Bits == 4
}

// panelBytes8 returns the size of the panels of a node's weights, each with the alignment of packWork.cut.
func panelBytes8(g *graph.Graph, n *graph.Node) int64 {
	x, matrices := layoutInt8(g, n)
	switch {
	case byDepth(g, n):
		return 0
	case byNibbles(g, n):
		groups := x.k / nibbleGroup(g, n)
		return graph.AlignUp(int64(simd.NibblesSize(x.n, groups, x.k/groups)))
	}
	return int64(matrices) * graph.AlignUp(int64(simd.DotSize(x.n, x.parts(), x.k/x.segments)))
}

// parts returns the number of segments of a column.
func (x *int8Weights) parts() int { return x.terms * x.segments }

// nibbleGroup returns the number of rows that share a scale in packed form: all if a column has one.
func nibbleGroup(g *graph.Graph, n *graph.Node) int {
	if f := &g.Values[n.In[1]]; f.Datatype == graph.QBInt4 {
		return f.Quant.GroupSize
	}
	return n.InputChannels(g)
}

// packInt8 packs a node's weights: those of panels by parts of w, the rest by the returned function, after them.
func packInt8(w *packing, n *graph.Node) (*int8Weights, func()) {
	g := w.graph
	x, matrices := layoutInt8(g, n)
	switch {
	case byDepth(g, n):
		return x, func() { packDepthwise8(g, x, n) }
	case byNibbles(g, n):
		packNibbles(w, x, n)
	default:
		for m := range matrices {
			packMatrix(w, x, n, m)
		}
	}
	if x.dynamic {
		return x, func() { dynamicScales(g, x, n) }
	}
	return x, func() { staticScales(g, x, n) }
}

// packMatrix packs matrix m of a batch, or the filter of a group: [groups·output channels, kernel H, kernel W, input
// channels of a group], [output, input channels], or their transposes. Segments are the parts of a window that are
// contiguous in the input.
func packMatrix(w *packing, x *int8Weights, n *graph.Node, m int) {
	transposed := n.Flags&graph.FlagTransposeWeights != 0
	switch {
	case n.Type.Tag == graph.TagDepthwiseConv2d: // [1, kernel H, kernel W, groups·output channels]
		x.pack(w, n.In[1], func(i, j int) int { return (i*x.groups+m)*x.n + j })
	case n.Window() != nil, transposed == (n.Type.Tag == graph.TagBatchMatrixMultiply):
		x.packColumns(w, n.In[1], m*x.n*x.k)
	default:
		x.pack(w, n.In[1], func(i, j int) int { return (m*x.k+i)*x.n + j })
	}
}

// int32Filter returns a function that reads elements of a filter as integers.
func int32Filter(g *graph.Graph, v int) func(i int) int16 {
	x := &g.Values[v]
	if x.Datatype == graph.QUInt8 {
		return func(i int) int16 { return int16(x.Data[i]) - int16(x.Quant.ZeroPoint) }
	}
	elements := tensor.View[int8](x.Data)
	return func(i int) int16 { return int16(elements[i]) }
}

// pack packs a matrix of k rows and n columns. at returns the index of an element in the filter.
func (x *int8Weights) pack(w *packing, v int, at func(i, j int) int) {
	read := int32Filter(w.graph, v)
	x.add(w, func(dst []int8, j int) []int8 {
		for i := range x.k {
			element := read(at(i, j))
			for t := range x.terms {
				part := max(-128, min(127, element))
				dst[t*x.k+i] = int8(part)
				element -= part
			}
		}
		return dst
	})
}

// packColumns is pack for columns that are contiguous in the filter, starting at element from.
func (x *int8Weights) packColumns(w *packing, v, from int) {
	f := &w.graph.Values[v]
	if f.Datatype == graph.QUInt8 {
		x.pack(w, v, func(i, j int) int { return from + j*x.k + i })
		return
	}
	elements := tensor.View[int8](f.Data)[from:]
	x.add(w, func(_ []int8, j int) []int8 { return elements[j*x.k:][:x.k] })
}

// add packs a matrix in segments.
func (x *int8Weights) add(w *packing, column func(buffer []int8, j int) []int8) {
	segments, k := x.parts(), x.k/x.segments
	memory := w.cut(simd.DotSize(x.n, segments, k))
	dot := simd.NewDot(memory, x.n, segments, k)
	x.dot = append(x.dot, dot)
	w.parts(memory, dot.Panels(), segments*k*simd.DotCols, func(from, to int) { dot.Pack(from, to, column) })
}

// split sets the number of terms: elements of a filter of bytes may not fit int8, and 255 is no sum of two.
func (w *int8Weights) split(x *graph.Value) {
	if x.Datatype != graph.QUInt8 {
		return
	}
	for _, v := range x.Data {
		q := int32(v) - x.Quant.ZeroPoint
		switch {
		case q > 2*127:
			w.terms = 3
			return
		case q < -128 || q > 127:
			w.terms = 2
		}
	}
}

// packDepthwise8 packs [1, kernel H, kernel W, channels].
func packDepthwise8(g *graph.Graph, w *int8Weights, n *graph.Node) {
	o, in := n.Window(), &g.Values[n.In[0]]
	taps, channels := o.KernelH*o.KernelW, o.Groups
	w.n, w.k = channels, taps
	read := int32Filter(g, n.In[1])
	init, scales := make([]int32, channels), filterScales(g, n, channels)
	bias := int32Bias(g, n)
	for c := range channels {
		for t := range taps {
			init[c] -= in.Quant.ZeroPoint * int32(read(t*channels+c))
		}
		if bias != nil {
			init[c] += bias[c]
		}
		scales[c] = w.result.scale(scales[c])
	}
	w.depth = simd.PackDepthwise(channels, taps, func(t, c int) int16 { return read(t*channels + c) }, init, scales)
}

// packNibbles packs 4-bit rows of output channels, whose elements have the zero point 8.
func packNibbles(w *packing, x *int8Weights, n *graph.Node) {
	f, groups := &w.graph.Values[n.In[1]], x.k/nibbleGroup(w.graph, n)
	var scales []uint16
	if f.Datatype == graph.QBInt4 {
		scales = f.Quant.Blocks
	}
	memory := w.cut(simd.NibblesSize(x.n, groups, x.k/groups))
	x.nibbles = simd.NewNibbles(memory, x.n, groups, x.k/groups)
	w.parts(memory, x.nibbles.Panels(), x.k*simd.DotCols, func(from, to int) { x.nibbles.Pack(from, to, f.Data, scales) })
}

// int32Bias returns the bias of quantized sums, nil if there is none.
func int32Bias(g *graph.Graph, n *graph.Node) []int32 {
	if len(n.In) < 3 || n.In[2] == graph.None {
		return nil
	}
	return tensor.View[int32](g.Values[n.In[2]].Data)
}

// columns returns the distance between the columns of groups, in whole panels.
func (w *int8Weights) columns() int { return graph.RoundUp(w.n, simd.DotCols) }

// staticScales computes the initial value and the scale of the sums of every column.
func staticScales(g *graph.Graph, w *int8Weights, n *graph.Node) {
	bias, scales := int32Bias(g, n), filterScales(g, n, w.groups*w.n)
	w.init, w.scales = make([]int32, w.groups*w.columns()), make([]float32, w.groups*w.columns())
	zero := w.zero(g.Values[n.In[0]].Quant.ZeroPoint)
	for group := range w.groups {
		for j := range w.n {
			to, from := group*w.columns()+j, group*w.n+j
			w.init[to] = -zero * w.dot[group].Sums[j]
			if bias != nil {
				w.init[to] += bias[from]
			}
			w.scales[to] = w.result.scale(scales[from])
		}
	}
}

// zero returns the zero point of the activations in the form that products use.
func (w *int8Weights) zero(zero int32) int32 {
	switch {
	case w.nibbles != nil:
		return w.nibbles.Zero(zero)
	case w.signed:
		return zero + 128
	}
	return zero
}

// dynamicScales copies the scales and bias of float outputs to the padded columns.
func dynamicScales(g *graph.Graph, w *int8Weights, n *graph.Node) {
	w.scales, w.bias = make([]float32, w.groups*w.columns()), make([]float32, w.groups*w.columns())
	scales := filterScales(g, n, w.groups*w.n)
	var bias []float32
	if len(n.In) > 2 && n.In[2] != graph.None {
		x := &g.Values[n.In[2]]
		if w.runtimeBias = !x.IsConst(); !w.runtimeBias {
			bias = make([]float32, w.groups*w.n)
			graph.DecodeFloats(bias, x.Datatype, x.Data)
		}
	}
	for i := range w.bias {
		w.bias[i] = float32(math.Copysign(0, -1)) // adding -0 keeps every x, zeros as well
	}
	for group := range w.groups {
		copy(w.scales[group*w.columns():], scales[group*w.n:][:w.n])
		if bias != nil {
			copy(w.bias[group*w.columns():], bias[group*w.n:][:w.n])
		}
	}
}

// requantizer converts sums of quantized products to elements of the output.
type requantizer struct {
	in, out      float32 // scales
	zero, lo, hi int32
}

func (r *requantizer) quantized(signed bool) simd.Quantized {
	return simd.Quantized{Signed: signed, Zero: r.zero, Lo: r.lo, Hi: r.hi}
}

func (r *requantizer) scale(filter float32) float32 { return float32(r.in*filter) / r.out }

// requantizerOf returns the conversion of a node from the scale of its input to that of its output.
func requantizerOf(g *graph.Graph, n *graph.Node) requantizer {
	in, out := &g.Values[n.In[0]], &g.Values[n.Out[0]]
	r := requantizer{in: in.Quant.Scale, out: out.Quant.Scale, zero: out.Quant.ZeroPoint}
	switch out.Datatype {
	case graph.QInt8:
		r.lo, r.hi = -128, 127
	case graph.QUInt8:
		r.lo, r.hi = 0, 255
	default:
		return r
	}
	lo, hi := r.lo, r.hi
	if !math.IsInf(float64(n.Min), -1) {
		r.lo = graph.Quantize(n.Min/r.out, r.zero, lo, hi)
	}
	if !math.IsInf(float64(n.Max), 1) {
		r.hi = graph.Quantize(n.Max/r.out, r.zero, lo, hi)
	}
	return r
}
