package xnnpack

import (
	"bytes"
	"math"
	"sync"

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
	twice        bool // the filter is stored as a sum of two, one after the other
	result       requantizer
	init         []int32   // static: initial values of the sums, padded to whole panels per group
	scales       []float32 // static: scales of the sums; dynamic: scales of the filter; padded likewise
	bias         []float32 // dynamic: bias, padded likewise
	dynamic      bool      // scales and zero points of the activations are found at run time
	given        bool      // the bias is computed at run time
}

// int8Store contains the weights of an image's nodes, by node; nil for nodes that run the loops on
// floats.
type int8Store struct {
	once  sync.Once
	nodes []*int8Weights
}

// of returns the weights. The first call packs them.
func (s *int8Store) of(g *graph) []*int8Weights {
	s.once.Do(func() {
		s.nodes = make([]*int8Weights, len(g.Nodes))
		for i := range g.Nodes {
			if g.takesInt8(&g.Nodes[i]) {
				s.nodes[i] = g.packInt8(&g.Nodes[i])
			}
		}
	})
	return s.nodes
}

// takesInt8 reports whether a node's products are of 8-bit activations and a constant filter.
func (g *graph) takesInt8(n *node) bool {
	if !n.Type.packs {
		return false
	}
	in, f := &g.Values[n.In[0]], &g.Values[n.In[1]]
	switch in.Datatype {
	case qint8, quint8, qdint8:
	default:
		return false
	}
	if !f.isConst() {
		return false
	}
	if f.Datatype.info().bits == 4 && (f.Quant.ZeroPoint != 8 || n.nibbleRows(g) > simd.MaxNibbleRows) {
		return false
	}
	if f.Datatype == quint8 && f.Quant.ZeroPoint == 0 && bytes.IndexByte(f.Data, 255) >= 0 {
		return false // 255 is not a sum of two int8 values
	}
	return g.packedInt8(n) <= int64(16*f.Shape.numel()+1<<20) // otherwise it is mostly padding
}

// nibbleRows returns the number of rows of a 4-bit filter that share a scale.
func (n *node) nibbleRows(g *graph) int {
	if f := &g.Values[n.In[1]]; f.Datatype == qbint4 {
		return f.Quant.GroupSize
	}
	return n.inputChannels(g)
}

// packedInt8 returns the approximate size of a node's packed weights in bytes.
func (g *graph) packedInt8(n *node) int64 {
	f := &g.Values[n.In[1]]
	matrices, segments, columns := 1, 1, 0
	switch o := n.window(); {
	case n.Type.tag == tagBatchMatrixMultiply:
		matrices, columns = f.Shape.leading(f.Shape.rank-2), f.Shape.fromEnd(0)
		if n.Flags&flagTransposeWeights != 0 {
			columns = f.Shape.fromEnd(1)
		}
	case o != nil && n.Type.tag == tagDepthwiseConv2d && o.groupOut == 1:
		return times(roundUp(o.groups, simd.DotCols), 4, o.kernelH*o.kernelW/2+3)
	case o != nil:
		matrices, segments, columns = o.groups, o.kernelH*o.kernelW, o.groupOut
	default:
		columns = n.outputChannels(g)
	}
	k := f.Shape.numel() / (matrices * segments * columns) // rows of a segment
	bytes := times(segments, roundUp(k, 4))
	if f.Datatype.info().bits == 4 {
		rows := n.nibbleRows(g)
		bytes = times(k/rows, roundUp(rows, 8)/2+8)
	}
	if f.Datatype == quint8 {
		bytes = times(2, int(min(bytes, maxElements)))
	}
	return times(matrices, roundUp(columns, simd.DotCols), int(min(bytes, maxElements))+20)
}

// packInt8 packs a node's weights.
func (g *graph) packInt8(n *node) *int8Weights {
	in := &g.Values[n.In[0]]
	w := &int8Weights{groups: 1, segments: 1, signed: in.Datatype != quint8, dynamic: in.Datatype == qdint8, result: g.requantizer(n)}
	switch {
	case n.Type.tag == tagBatchMatrixMultiply:
		g.packMatrices(w, n)
	case n.Type.tag == tagDepthwiseConv2d && n.window().groupOut == 1 && !w.dynamic:
		g.packDepthwise(w, n)
		return w
	case n.Type.convolution:
		g.packWindow(w, n)
	case g.Values[n.In[1]].Datatype.info().bits == 4:
		g.packNibbles(w, n)
	default:
		g.packConnected(w, n)
	}
	if w.dynamic {
		g.dynamicScales(w, n)
	} else {
		g.staticScales(w, n)
	}
	return w
}

// wholeFilter returns a function that reads elements of a filter as integers.
func (g *graph) wholeFilter(v int) func(i int) int16 {
	x := &g.Values[v]
	if x.Datatype == quint8 {
		return func(i int) int16 { return int16(x.Data[i]) - int16(x.Quant.ZeroPoint) }
	}
	elements := tensor.View[int8](x.Data)
	return func(i int) int16 { return int16(elements[i]) }
}

// pack packs a matrix of k rows and n columns. at returns the index of an element in the filter.
func (w *int8Weights) pack(g *graph, v int, at func(i, j int) int) {
	read := g.wholeFilter(v)
	w.add(func(dst []int8, j int) {
		for i := range w.k {
			x := read(at(i, j))
			first := max(-128, min(127, x))
			if dst[i] = int8(first); w.twice {
				dst[w.k+i] = int8(x - first)
			}
		}
	})
}

// packColumns is pack for columns that are contiguous in the filter, starting at element from.
func (w *int8Weights) packColumns(g *graph, v, from int) {
	x := &g.Values[v]
	if x.Datatype == quint8 {
		w.pack(g, v, func(i, j int) int { return from + j*w.k + i })
		return
	}
	elements := tensor.View[int8](x.Data)[from:]
	w.add(func(dst []int8, j int) { copy(dst, elements[j*w.k:][:w.k]) })
}

// add packs a matrix in segments.
func (w *int8Weights) add(column func(dst []int8, j int)) {
	segments := w.segments
	if w.twice {
		segments *= 2
	}
	w.dot = append(w.dot, simd.PackDot(w.n, segments, w.k/w.segments, column))
}

// split sets w.twice if elements of a filter do not fit int8.
func (w *int8Weights) split(x *value) {
	if x.Datatype != quint8 {
		return
	}
	for _, v := range x.Data {
		q := int32(v) - x.Quant.ZeroPoint
		w.twice = w.twice || q < -128 || q > 127
	}
}

// packConnected packs [output, input channels] or its transpose.
func (g *graph) packConnected(w *int8Weights, n *node) {
	w.k, w.n = n.inputChannels(g), n.outputChannels(g)
	w.split(&g.Values[n.In[1]])
	if n.Flags&flagTransposeWeights == 0 {
		w.packColumns(g, n.In[1], 0)
		return
	}
	w.pack(g, n.In[1], func(i, j int) int { return i*w.n + j })
}

// packMatrices packs every matrix of a constant second operand.
func (g *graph) packMatrices(w *int8Weights, n *node) {
	s := g.Values[n.In[1]].Shape
	w.k, w.n = s.fromEnd(1), s.fromEnd(0)
	transposed := n.Flags&flagTransposeWeights != 0
	if transposed {
		w.k, w.n = w.n, w.k
	}
	for m := range s.leading(s.rank - 2) {
		if transposed {
			w.packColumns(g, n.In[1], m*w.n*w.k)
			continue
		}
		w.pack(g, n.In[1], func(i, j int) int { return (m*w.k+i)*w.n + j })
	}
}

// packWindow packs [groups·output channels, kernel H, kernel W, input channels of a group], or [1,
// kernel H, kernel W, groups·output channels] for depthwise nodes. Segments are the parts of a
// window that are contiguous in the input.
func (g *graph) packWindow(w *int8Weights, n *node) {
	o := n.window()
	w.groups, w.n, w.k = o.groups, o.groupOut, o.kernelH*o.kernelW*o.groupIn
	w.segments = o.kernelH * o.kernelW
	if n.joined() {
		w.segments = o.kernelH
	}
	w.split(&g.Values[n.In[1]])
	for group := range w.groups {
		if n.Type.tag != tagDepthwiseConv2d {
			w.packColumns(g, n.In[1], group*w.n*w.k)
			continue
		}
		w.pack(g, n.In[1], func(i, j int) int { return (i*w.groups+group)*w.n + j })
	}
}

// joined reports whether the pixels of a kernel row are contiguous in the input.
func (n *node) joined() bool {
	w := n.window()
	return n.Type.tag != tagConvTranspose2d && w.groups == 1 && (w.dilationW == 1 || w.kernelW == 1)
}

// packDepthwise packs [1, kernel H, kernel W, channels].
func (g *graph) packDepthwise(w *int8Weights, n *node) {
	o, in := n.window(), &g.Values[n.In[0]]
	taps, channels := o.kernelH*o.kernelW, o.groups
	w.n, w.k = channels, taps
	read := g.wholeFilter(n.In[1])
	init, scales := make([]int32, channels), g.filterScales(n, channels)
	bias := g.wholeBias(n)
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

// packNibbles packs 4-bit rows of output channels.
func (g *graph) packNibbles(w *int8Weights, n *node) {
	x := &g.Values[n.In[1]]
	w.k, w.n = n.inputChannels(g), n.outputChannels(g)
	groups, row := 1, (w.k+1)/2
	if x.Datatype == qbint4 {
		groups = w.k / x.Quant.GroupSize
	}
	w.nibbles = simd.PackNibbles(w.n, groups, w.k/groups, func(dst []int8, scales []float32, j int) {
		for i := range dst {
			dst[i] = int8(x.Data[j*row+i/2]>>(4*(i&1))&15) - 8
		}
		for b := range scales {
			if scales[b] = 1; x.Datatype == qbint4 {
				scales[b] = math.Float32frombits(uint32(x.Quant.Blocks[j*groups+b]) << 16)
			}
		}
	})
}

// filterScales returns the scales of the columns, which are 1 if groups of rows have their own.
func (g *graph) filterScales(n *node, columns int) []float32 {
	x, scales := &g.Values[n.In[1]], make([]float32, columns)
	for i := range scales {
		switch x.Datatype.info().quant {
		case perTensor:
			scales[i] = x.Quant.Scale
		case perChannel:
			scales[i] = x.Quant.Scales[i]
		default:
			scales[i] = 1
		}
	}
	return scales
}

// wholeBias returns the bias of quantized sums, nil if there is none.
func (g *graph) wholeBias(n *node) []int32 {
	if len(n.In) < 3 || n.In[2] == none {
		return nil
	}
	return tensor.View[int32](g.Values[n.In[2]].Data)
}

// columns returns the distance between the columns of groups, in whole panels.
func (w *int8Weights) columns() int { return roundUp(w.n, simd.DotCols) }

// staticScales computes the initial value and the scale of the sums of every column.
func (g *graph) staticScales(w *int8Weights, n *node) {
	bias, scales := g.wholeBias(n), g.filterScales(n, w.groups*w.n)
	w.init, w.scales = make([]int32, w.groups*w.columns()), make([]float32, w.groups*w.columns())
	zero := w.unsigned(g.Values[n.In[0]].Quant.ZeroPoint)
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

// unsigned returns a zero point of the activations in the unsigned form that products use.
func (w *int8Weights) unsigned(zero int32) int32 {
	if w.signed {
		zero += 128
	}
	return zero
}

// dynamicScales copies the scales and bias of float outputs to the padded columns.
func (g *graph) dynamicScales(w *int8Weights, n *node) {
	w.scales, w.bias = make([]float32, w.groups*w.columns()), make([]float32, w.groups*w.columns())
	scales := g.filterScales(n, w.groups*w.n)
	var bias []float32
	if len(n.In) > 2 && n.In[2] != none {
		x := &g.Values[n.In[2]]
		if w.given = !x.isConst(); !w.given {
			bias = make([]float32, w.groups*w.n)
			decodeFloats(bias, x.Datatype, x.Data)
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
