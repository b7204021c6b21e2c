package xnnpack

import (
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// work is the memory of a unit of the Go engine in addition to values and packed filters, in bytes.
// Nodes run one after the other, so they share it, except what they keep. Units of an instance
// share all but tile and kept. What a node needs depends on the sizes, and may be more at smaller
// ones: operands that are repeated, padded or packed.
type work struct {
	slots  [4]int64 // operands and output as float32, see load and result
	staged int64    // an operand in the form that products read
	line   int64    // rows or lines of floats, for each worker
	tile   int64    // rows and sums of 8-bit products, for each worker
	kept   int64    // what loops keep between runs
	// used are the nodes from the first to the last one that uses the shared part; none if Last is before First.
	used delegate.Span
}

// workFunc adds the work of a node to w.
type workFunc func(w *work, g *graph, n *node, s []shape, threads int)

// workAt returns the work of a unit at the given shapes.
func workAt(g *graph, s []shape, threads int) *work {
	all, own := &work{used: delegate.Span{First: len(g.Nodes), Last: none}}, &work{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		*own = work{}
		if f := goTypeOf(n).work; f != nil {
			f(own, g, n, s, threads)
		}
		if own.shared(threads) > 0 {
			all.used = delegate.Span{First: min(all.used.First, i), Last: i}
		}
		all.add(own)
	}
	return all
}

// add adds the work of a node.
func (w *work) add(own *work) {
	for i, bytes := range own.slots {
		w.slot(i, bytes)
	}
	w.staged, w.line, w.tile, w.kept = max(w.staged, own.staged), max(w.line, own.line), max(w.tile, own.tile), plus(w.kept, own.kept)
}

// suits reports whether the shared part fits in a block: in its bytes, and in the nodes that may use it.
func (w *work) suits(block []byte, at delegate.Span, threads int) bool {
	n := w.shared(threads)
	return n == 0 || n <= int64(len(block)) && at.First <= w.used.First && w.used.Last <= at.Last
}

// shared returns the size of the part that units share; its parts are aligned.
func (w *work) shared(threads int) int64 {
	n := plus(lineUp(w.staged), repeat(threads, lineUp(w.line)))
	for _, slot := range w.slots {
		n = plus(n, lineUp(slot))
	}
	return n
}

func (w *work) slot(i int, bytes int64) { w.slots[i] = max(w.slots[i], bytes) }

// outSlot is the index of the output's slot.
const outSlot = 3

// divide cuts the work that units share from memory.
func (e *reference) divide(w *work, memory []byte) {
	cut := func(n int64) []byte {
		b := memory[:n:n]
		memory = memory[lineUp(n):]
		return b
	}
	for i, n := range w.slots[:outSlot] {
		e.slots[i] = tensor.View[float32](cut(n))
	}
	e.out = tensor.View[float32](cut(w.slots[outSlot]))
	e.staged = cut(w.staged)
	e.lines = grow(e.lines, e.threads())
	for i := range e.lines {
		e.lines[i] = tensor.View[float32](cut(w.line))
	}
}

// reserve makes sure that each worker has so many floats in e.lines. Only loops that work cannot
// know, those of tests, allocate.
func (e *reference) reserve(floats int) {
	for i := range e.lines {
		e.lines[i] = grow(e.lines[i], floats)
	}
}

// decodeWork is of loops over floats. Packed filters are not read.
func decodeWork(w *work, g *graph, n *node, s []shape, _ int) {
	for k, v := range n.In {
		if v != none && k < outSlot && !(k > 0 && goTypeOf(n).pack != nil && packsFloats(g, n)) {
			w.slot(k, numberBytes(g, v, s))
		}
	}
	w.slot(outSlot, numberBytes(g, n.Out[0], s))
}

// numberBytes returns the size of a value's float32 copy, 0 if it is float32 already.
func numberBytes(g *graph, v int, s []shape) int64 {
	if g.Values[v].Datatype == fp32 {
		return 0
	}
	return times(4, s[v].numel())
}

// elementWork is of functions of one operand, which are tables for bytes.
func elementWork(w *work, g *graph, n *node, s []shape, threads int) {
	_, from := bytesAs(&g.Values[n.In[0]])
	if _, to := bytesAs(&g.Values[n.Out[0]]); from && to {
		w.kept = plus(w.kept, tableBytes)
		return
	}
	decodeWork(w, g, n, s, threads)
}

const tableBytes = 256

// convertWork is of conversions. A dynamically quantized value has a token for each group.
func convertWork(w *work, g *graph, n *node, s []shape, threads int) {
	in, out := &g.Values[n.In[0]], &g.Values[n.Out[0]]
	_, from := bytesAs(in)
	_, to := bytesAs(out)
	switch {
	case out.Datatype == qdint8:
		w.slot(0, numberBytes(g, n.In[0], s))
		w.kept = plus(w.kept, times(8, s[n.Out[0]].leading(max(0, s[n.Out[0]].rank-out.Quant.Nonbatch))))
	case from && out.Datatype == fp32, in.Datatype == fp32 && to:
	default:
		elementWork(w, g, n, s, threads)
	}
}

// binaryWork is of functions of two operands, which are expanded piece by piece.
func binaryWork(w *work, g *graph, n *node, s []shape, threads int) {
	out := s[n.Out[0]]
	a, b := repeated(s[n.In[0]], out), repeated(s[n.In[1]], out)
	_, bytes := bytesAs(&g.Values[n.Out[0]])
	if _, known := binaryOps[n.Type.tag]; bytes && known {
		w.tile = max(w.tile, 2*byteChunk)
		return
	}
	decodeWork(w, g, n, s, threads)
	var l binaryLoop
	l.plan(out, a, b)
	if l.repeats {
		w.line = max(w.line, 4*int64(l.expanded(0)+l.expanded(1)))
	}
}

// products returns the work of products and convolutions, whose loops over floats have their own.
func products(floats workFunc) workFunc {
	return func(w *work, g *graph, n *node, s []shape, threads int) { productWork(g, w, n, s, threads, floats) }
}

func productWork(g *graph, w *work, n *node, s []shape, threads int, floats workFunc) {
	switch {
	case takesInt8(g, n) && !staysFloat(g, n, s):
		workInt8(g, w, n, s)
	case hasQuantizedInput(g, n):
		w.slot(0, times(4, s[n.In[0]].numel()))
		if n.Type.tag == tagBatchMatrixMultiply {
			w.slot(1, numberBytes(g, n.In[1], s))
			w.kept = plus(w.kept, times(4, s[n.In[1]].numel()))
		}
		k, cols := filterRows(g, n, s), s[n.Out[0]].last()
		w.tile = max(w.tile, times(4*tileRows, k+3*cols))
	default:
		decodeWork(w, g, n, s, threads)
		floats(w, g, n, s, threads)
	}
}

// filterRows returns how many elements of a filter a column of its products has.
func filterRows(g *graph, n *node, s []shape) int {
	if n.Type.tag == tagDepthwiseConv2d {
		return n.window().kernelH * n.window().kernelW
	}
	f := s[n.In[1]]
	return f.numel() / max(1, f.dim[0])
}

// runtimeFilter adds a filter that is packed in each run.
func runtimeFilter(w *work, g *graph, n *node, s []shape) {
	if !packsFloats(g, n) {
		w.kept = plus(w.kept, times(4, panelElements(g, n, s)+s[n.Out[0]].last()))
	}
}

func connectedWork(w *work, g *graph, n *node, s []shape, _ int) { runtimeFilter(w, g, n, s) }

// windowWork is of convolutions, by lines or by gathered rows.
func windowWork(w *work, g *graph, n *node, s []shape, _ int) {
	runtimeFilter(w, g, n, s)
	r := n.windows(s[n.In[0]], s[n.Out[0]])
	switch {
	case n.Type.tag == tagConvTranspose2d || r.isPointwise():
	case r.suitsLines():
		w.line = max(w.line, times(4, r.copies()))
	default:
		w.line = max(w.line, times(4, min(gatheredRows, max(1, r.out.leading(3))), min(gatheredDepth, r.w.kernelH*r.w.kernelW*r.w.groupIn)))
	}
}

// depthwiseWork is of depthwise convolutions: lists of taps, and a padded copy of the input.
func depthwiseWork(w *work, g *graph, n *node, s []shape, threads int) {
	if n.window().groupOut > 1 {
		windowWork(w, g, n, s, threads)
		return
	}
	runtimeFilter(w, g, n, s)
	d := depthwiseLines{windowRows: windowRows{windowGrid: n.windows(s[n.In[0]], s[n.Out[0]])}}
	taps := d.w.kernelH * d.w.kernelW
	sides := d.listSides(taps)
	w.kept = plus(w.kept, times(threads, sides[0]*sides[1], 16*taps))
	if h, v, ok := d.paddedSize(); ok {
		w.staged = max(w.staged, times(4, d.in.dim[0], h, v, d.in.dim[3]))
	}
}

// batchWork is of products of matrices, whose second ones are packed in each run.
func batchWork(w *work, _ *graph, n *node, s []shape, _ int) {
	b, out := s[n.In[1]], s[n.Out[0]]
	w.kept = plus(w.kept, plus(times(16, out.leading(out.rank-2)), times(4, out.fromEnd(0))))
	if n.Flags&flagTransposeWeights != 0 && out.fromEnd(1) > gemm.FewRows {
		w.staged = max(w.staged, times(4, b.leading(b.rank-2), gemm.Size(b.fromEnd(0), b.fromEnd(1), b.fromEnd(0))))
	}
}

// poolWork is of pools: a line of the input, and for bytes the input with padding.
func poolWork(w *work, g *graph, n *node, s []shape, threads int) {
	in := s[n.In[0]]
	var st stage
	_, bytes := bytesAs(&g.Values[n.In[0]])
	if bytes && n.Type.tag == tagMaxPooling2d && st.plan(n, in, s[n.Out[0]], -in.dim[3]&(simd.DotCols-1)) {
		w.staged = max(w.staged, st.bytes())
		if n.Min == -inf && n.Max == inf {
			return
		}
	}
	decodeWork(w, g, n, s, threads)
	w.line = max(w.line, times(4, in.dim[2], in.dim[3]))
}

// meanWork is of global pools: the offsets of pixels.
func meanWork(w *work, g *graph, n *node, s []shape, threads int) {
	decodeWork(w, g, n, s, threads)
	w.kept = plus(w.kept, times(8, s[n.In[0]].dim[1], s[n.In[0]].dim[2]))
}

// resizeWork is of resizes: two lines of the output, and the positions of its pixels.
func resizeWork(w *work, g *graph, n *node, s []shape, threads int) {
	decodeWork(w, g, n, s, threads)
	out := params[resizeParams](n).shape(s[n.In[0]])
	w.line = max(w.line, times(8, out.dim[2], out.dim[3]))
	w.kept = plus(w.kept, times(24, out.dim[2]))
}

// workInt8 adds the work of a product of bytes.
func workInt8(g *graph, w *work, n *node, s []shape) {
	in, out, segments := s[n.In[0]], s[n.Out[0]], 1
	cols, k := s[n.Out[0]].last(), filterRows(g, n, s)
	gathers := false
	if o := n.window(); o != nil {
		var st stage
		gathers = n.Type.tag == tagConvTranspose2d || !st.plan(n, in, out, 0)
		if segments = 2 * o.kernelH * o.kernelW; !gathers && st.needed {
			w.staged = max(w.staged, st.bytes())
		}
		w.kept = plus(w.kept, times(st.cols, in.dim[3]))
		cols = o.groupOut
	}
	if g.Values[n.In[0]].Arg != none { // its bytes may end with the last element
		w.staged = max(w.staged, plus(int64(in.numel()), overread))
	}
	w.kept = plus(w.kept, times(8, segments))
	if n.isDepthwise() && g.Values[n.In[0]].Datatype != qdint8 {
		return
	}
	rows := out.numel() / max(1, out.last())
	if n.Type.tag == tagBatchMatrixMultiply {
		rows, k = out.fromEnd(1), in.last()
	}
	if !gathers {
		w.kept = plus(w.kept, times(8, min(rows, maxTable)))
	}
	tile := max(1, min(rows, 64))
	sums := tile * simd.DotCols * min(max(tileSums/simd.DotCols/tile, 2), roundUp(cols, simd.DotCols)/simd.DotCols)
	bytes := times(8, sums+2*tile)
	if gathers {
		bytes = plus(bytes, times(tile, roundUp(k, 4)+4*segments))
	}
	w.tile = max(w.tile, bytes)
}

// staysFloat reports whether the products of a depthwise convolution of bytes are computed in floats
// because its input is mostly padding.
func staysFloat(g *graph, n *node, s []shape) bool {
	var st stage
	return n.isDepthwise() && g.Values[n.In[0]].Datatype != qdint8 && !st.plan(n, s[n.In[0]], s[n.Out[0]], simd.DotCols-1)
}

// packedForGo returns the size of the constants that the Go engine packs.
func packedForGo(g *graph, s []shape) (n int64) {
	for i := range g.Nodes {
		node := &g.Nodes[i]
		switch {
		case !node.Type.packs:
		case takesInt8(g, node):
			n = plus(n, packedInt8(g, node))
			if staysFloat(g, node, s) {
				n = plus(n, times(4, s[node.In[1]].numel()))
			}
		case goTypeOf(node).pack != nil && packsFloats(g, node):
			n = plus(n, packedFloats(g, node, s))
		case hasQuantizedInput(g, node):
			n = plus(n, plus(times(4, s[node.In[1]].numel()), times(8, s[node.Out[0]].last())))
		}
	}
	return n
}

// packedFloats returns the size of a node's panels, or taps, and bias. Constants of floats are used
// as they are, except in panels.
func packedFloats(g *graph, n *node, s []shape) int64 {
	bytes := times(4, panelElements(g, n, s))
	if n.isDepthwise() {
		bytes = numberBytes(g, n.In[1], s)
	}
	if len(n.In) < 3 || n.In[2] == none || g.Values[n.In[2]].Datatype != fp32 {
		bytes = plus(bytes, times(4, s[n.Out[0]].last()))
	}
	return bytes
}

// referenceNeeds returns the memory of an image and a unit of the Go engine, with values in places.
func referenceNeeds(g *graph, p *places, threads int) needs {
	return needsWith(g, workAt(g, p.shapes, threads), p.shapes, p.bytes, threads)
}

// needsWith returns the memory of an image and a unit with this work and this many bytes of values.
func needsWith(g *graph, w *work, s []shape, values int64, threads int) needs {
	n := needs{weights: packedForGo(g, s), timed: times(8, len(g.Nodes))}
	n.shared = plus(lineUp(values), w.shared(threads))
	n.scratch = plus(plus(n.shared, w.kept), repeat(threads, w.tile))
	return n
}
