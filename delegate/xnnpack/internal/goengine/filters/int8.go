package filters

import (
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Int8 are the filter of a node with 8-bit activations, packed for products: one of dot for
// each group or matrix, or nibbles, or depth. The units of an image share them.
type Int8 struct {
	Dot     []*simd.DotWeights
	Nibbles *simd.Nibbles
	Depth   *simd.Depthwise

	Signed       bool // the activations are signed
	Groups, K, N int  // k and n are per group: elements of a row, and output channels
	Segments     int  // number of equally long segments in a row
	Terms        int  // number of filters whose sum is the filter, one after the other
	Result       numbers.Requantizer
	Init         []int32   // static: initial values of the sums, padded to whole panels per group
	Scales       []float32 // static: scales of the sums; dynamic: scales of the filter; padded likewise
	Bias         []float32 // dynamic: bias, padded likewise
	Dynamic      bool      // scales and zero points of the activations are found at run time
	RuntimeBias  bool      // the bias is computed at run time
}

// PacksInt8 reports whether a node's products are of 8-bit activations and a constant filter.
func PacksInt8(g *graph.Graph, n *graph.Node) bool {
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
	if f.Datatype.Info().Bits == 4 && (f.Quant.ZeroPoint != 8 || NibbleGroup(g, n) > simd.MaxNibbleRows) {
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
		rows := NibbleGroup(g, n)
		bytes = int64(simd.NibblesSize(simd.DotCols, k/rows, rows) / simd.DotCols)
	}
	if f.Datatype == graph.QUInt8 { // see Int8.Terms
		bytes = graph.Repeat(2, bytes)
		if f.Quant.ZeroPoint == 0 {
			bytes = graph.Repeat(3, bytes) / 2
		}
	}
	return graph.Repeat(matrices, graph.Repeat(graph.RoundUp(columns, simd.DotCols), graph.Plus(bytes, 20)))
}

// layoutInt8 returns weights without elements, and the number of their matrices: one for each group, or matrix of a
// batch.
func layoutInt8(g *graph.Graph, n *graph.Node) (x *Int8, matrices int) {
	in, f, o := &g.Values[n.In[0]], &g.Values[n.In[1]], n.Window()
	x = &Int8{Groups: 1, Segments: 1, Terms: 1, Signed: in.Datatype != graph.QUInt8, Dynamic: in.Datatype == graph.QDInt8,
		Result: numbers.RequantizerOf(g, n)}
	x.split(f)
	switch {
	case n.Type.Tag == graph.TagBatchMatrixMultiply:
		x.K, x.N = f.Shape.FromEnd(1), f.Shape.FromEnd(0)
		if n.Flags&graph.FlagTransposeWeights != 0 {
			x.K, x.N = x.N, x.K
		}
		return x, f.Shape.Leading(f.Shape.Rank - 2)
	case o != nil:
		x.Groups, x.N, x.K, x.Segments = o.Groups, o.GroupOut, o.KernelH*o.KernelW*o.GroupIn, o.KernelH*o.KernelW
		if n.Joined() {
			x.Segments = o.KernelH
		}
		return x, x.Groups
	}
	x.K, x.N = n.InputChannels(g), n.OutputChannels(g)
	return x, 1
}

// ByDepth reports whether the products of a node's bytes are those of a depthwise convolution.
func ByDepth(g *graph.Graph, n *graph.Node) bool {
	return n.Type.Tag == graph.TagDepthwiseConv2d && n.Window().GroupOut == 1 && g.Values[n.In[0]].Datatype != graph.QDInt8
}

// ByNibbles reports whether a node has a matrix of 4-bit elements.
func ByNibbles(g *graph.Graph, n *graph.Node) bool {
	return n.Window() == nil && g.Values[n.In[1]].Datatype.Info().Bits == 4
}

// panelBytes8 returns the size of the panels of a node's weights, each with the alignment of partition.cut.
func panelBytes8(g *graph.Graph, n *graph.Node) int64 {
	x, matrices := layoutInt8(g, n)
	switch {
	case ByDepth(g, n):
		return 0
	case ByNibbles(g, n):
		groups := x.K / NibbleGroup(g, n)
		return graph.AlignUp(int64(simd.NibblesSize(x.N, groups, x.K/groups)))
	}
	return int64(matrices) * graph.AlignUp(int64(simd.DotSize(x.N, x.parts(), x.K/x.Segments)))
}

// parts returns the number of segments of a column.
func (x *Int8) parts() int { return x.Terms * x.Segments }

// NibbleGroup returns the number of rows that share a scale in packed form: all if a column has one.
func NibbleGroup(g *graph.Graph, n *graph.Node) int {
	if f := &g.Values[n.In[1]]; f.Datatype == graph.QBInt4 {
		return f.Quant.GroupSize
	}
	return n.InputChannels(g)
}

// packInt8 packs a node's weights: those of panels by parts of w, the rest by the returned function, after them.
func packInt8(w *partition, n *graph.Node) (*Int8, func()) {
	g := w.Graph
	x, matrices := layoutInt8(g, n)
	switch {
	case ByDepth(g, n):
		return x, func() { packDepthwise8(g, x, n) }
	case ByNibbles(g, n):
		packNibbles(w, x, n)
	default:
		for m := range matrices {
			packMatrix(w, x, n, m)
		}
	}
	if x.Dynamic {
		return x, func() { dynamicScales(g, x, n) }
	}
	return x, func() { staticScales(g, x, n) }
}

// packMatrix packs matrix m of a batch, or the filter of a group: [groups·output channels, kernel H, kernel W, input
// channels of a group], [output, input channels], or their transposes. Segments are the parts of a window that are
// contiguous in the input.
func packMatrix(w *partition, x *Int8, n *graph.Node, m int) {
	transposed := n.Flags&graph.FlagTransposeWeights != 0
	switch {
	case n.Type.Tag == graph.TagDepthwiseConv2d: // [1, kernel H, kernel W, groups·output channels]
		x.pack(w, n.In[1], func(i, j int) int { return (i*x.Groups+m)*x.N + j })
	case n.Window() != nil, transposed == (n.Type.Tag == graph.TagBatchMatrixMultiply):
		x.packColumns(w, n.In[1], m*x.N*x.K)
	default:
		x.pack(w, n.In[1], func(i, j int) int { return (m*x.K+i)*x.N + j })
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
func (x *Int8) pack(w *partition, v int, at func(i, j int) int) {
	read := int32Filter(w.Graph, v)
	x.add(w, func(dst []int8, j int) []int8 {
		for i := range x.K {
			element := read(at(i, j))
			for t := range x.Terms {
				part := max(-128, min(127, element))
				dst[t*x.K+i] = int8(part)
				element -= part
			}
		}
		return dst
	})
}

// packColumns is pack for columns that are contiguous in the filter, starting at element from.
func (x *Int8) packColumns(w *partition, v, from int) {
	f := &w.Graph.Values[v]
	if f.Datatype == graph.QUInt8 {
		x.pack(w, v, func(i, j int) int { return from + j*x.K + i })
		return
	}
	elements := tensor.View[int8](f.Data)[from:]
	x.add(w, func(_ []int8, j int) []int8 { return elements[j*x.K:][:x.K] })
}

// add packs a matrix in segments.
func (x *Int8) add(w *partition, column func(buffer []int8, j int) []int8) {
	segments, k := x.parts(), x.K/x.Segments
	memory := w.cut(simd.DotSize(x.N, segments, k))
	dot := simd.NewDot(memory, x.N, segments, k)
	x.Dot = append(x.Dot, dot)
	w.parts(memory, dot.Panels(), segments*k*simd.DotCols, func(from, to int) { dot.Pack(from, to, column) })
}

// split sets the number of terms: elements of a filter of bytes may not fit int8, and 255 is no sum of two.
func (w *Int8) split(x *graph.Value) {
	if x.Datatype != graph.QUInt8 {
		return
	}
	for _, v := range x.Data {
		q := int32(v) - x.Quant.ZeroPoint
		switch {
		case q > 2*127:
			w.Terms = 3
			return
		case q < -128 || q > 127:
			w.Terms = 2
		}
	}
}

// packDepthwise8 packs [1, kernel H, kernel W, channels].
func packDepthwise8(g *graph.Graph, w *Int8, n *graph.Node) {
	o, in := n.Window(), &g.Values[n.In[0]]
	taps, channels := o.KernelH*o.KernelW, o.Groups
	w.N, w.K = channels, taps
	read := int32Filter(g, n.In[1])
	init, scales := make([]int32, channels), numbers.FilterScales(g, n, channels)
	bias := int32Bias(g, n)
	for c := range channels {
		for t := range taps {
			init[c] -= in.Quant.ZeroPoint * int32(read(t*channels+c))
		}
		if bias != nil {
			init[c] += bias[c]
		}
		scales[c] = w.Result.Scale(scales[c])
	}
	w.Depth = simd.PackDepthwise(channels, taps, func(t, c int) int16 { return read(t*channels + c) }, init, scales)
}

// packNibbles packs 4-bit rows of output channels, whose elements have the zero point 8.
func packNibbles(w *partition, x *Int8, n *graph.Node) {
	f, groups := &w.Graph.Values[n.In[1]], x.K/NibbleGroup(w.Graph, n)
	var scales []uint16
	if f.Datatype == graph.QBInt4 {
		scales = f.Quant.Blocks
	}
	memory := w.cut(simd.NibblesSize(x.N, groups, x.K/groups))
	x.Nibbles = simd.NewNibbles(memory, x.N, groups, x.K/groups)
	w.parts(memory, x.Nibbles.Panels(), x.K*simd.DotCols, func(from, to int) { x.Nibbles.Pack(from, to, f.Data, scales) })
}

// int32Bias returns the bias of quantized sums, nil if there is none.
func int32Bias(g *graph.Graph, n *graph.Node) []int32 {
	if len(n.In) < 3 || n.In[2] == graph.None {
		return nil
	}
	return tensor.View[int32](g.Values[n.In[2]].Data)
}

// Columns returns the distance between the columns of groups, in whole panels.
func (w *Int8) Columns() int { return graph.RoundUp(w.N, simd.DotCols) }

// staticScales computes the initial value and the scale of the sums of every column.
func staticScales(g *graph.Graph, w *Int8, n *graph.Node) {
	bias, scales := int32Bias(g, n), numbers.FilterScales(g, n, w.Groups*w.N)
	w.Init, w.Scales = make([]int32, w.Groups*w.Columns()), make([]float32, w.Groups*w.Columns())
	zero := w.Zero(g.Values[n.In[0]].Quant.ZeroPoint)
	for group := range w.Groups {
		for j := range w.N {
			to, from := group*w.Columns()+j, group*w.N+j
			w.Init[to] = -zero * w.Dot[group].Sums[j]
			if bias != nil {
				w.Init[to] += bias[from]
			}
			w.Scales[to] = w.Result.Scale(scales[from])
		}
	}
}

// Zero returns the zero point of the activations in the form that products use.
func (w *Int8) Zero(zero int32) int32 {
	switch {
	case w.Nibbles != nil:
		return w.Nibbles.Zero(zero)
	case w.Signed:
		return zero + 128
	}
	return zero
}

// dynamicScales copies the scales and bias of float outputs to the padded columns.
func dynamicScales(g *graph.Graph, w *Int8, n *graph.Node) {
	w.Scales, w.Bias = make([]float32, w.Groups*w.Columns()), make([]float32, w.Groups*w.Columns())
	scales := numbers.FilterScales(g, n, w.Groups*w.N)
	var bias []float32
	if len(n.In) > 2 && n.In[2] != graph.None {
		x := &g.Values[n.In[2]]
		if w.RuntimeBias = !x.IsConst(); !w.RuntimeBias {
			bias = make([]float32, w.Groups*w.N)
			graph.DecodeFloats(bias, x.Datatype, x.Data)
		}
	}
	for i := range w.Bias {
		w.Bias[i] = float32(math.Copysign(0, -1)) // adding -0 keeps every x, zeros as well
	}
	for group := range w.Groups {
		copy(w.Scales[group*w.Columns():], scales[group*w.N:][:w.N])
		if bias != nil {
			copy(w.Bias[group*w.Columns():], bias[group*w.N:][:w.N])
		}
	}
}
