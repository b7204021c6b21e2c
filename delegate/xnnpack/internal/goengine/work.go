package goengine

import (
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
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
	used lowering.Span
}

// workFunc adds the work of a node to w.
type workFunc func(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int)

// workAt returns the work of a unit at the given shapes.
func workAt(g *graph.Graph, s []graph.Shape, threads int) *work {
	all, own := &work{used: lowering.Span{First: len(g.Nodes), Last: graph.None}}, &work{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		*own = work{}
		if f := typeOf(n).work; f != nil {
			f(own, g, n, s, threads)
		}
		if own.shared(threads) > 0 {
			all.used = lowering.Span{First: min(all.used.First, i), Last: i}
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
	w.staged, w.line, w.tile, w.kept = max(w.staged, own.staged), max(w.line, own.line), max(w.tile, own.tile), graph.Plus(w.kept, own.kept)
}

// fitsIn reports whether the shared part fits in a block: in its bytes, and in the nodes that may use it.
func (w *work) fitsIn(block []byte, at lowering.Span, threads int) bool {
	n := w.shared(threads)
	return n == 0 || n <= int64(len(block)) && at.First <= w.used.First && w.used.Last <= at.Last
}

// shared returns the size of the part that units share; its parts are aligned.
func (w *work) shared(threads int) int64 {
	n := graph.Plus(graph.AlignUp(w.staged), graph.Repeat(threads, graph.AlignUp(w.line)))
	for _, slot := range w.slots {
		n = graph.Plus(n, graph.AlignUp(slot))
	}
	return n
}

func (w *work) slot(i int, bytes int64) { w.slots[i] = max(w.slots[i], bytes) }

// outSlot is the index of the output's slot.
const outSlot = 3

// divide cuts the work that units share from memory.
func (e *frame) divide(w *work, memory []byte) {
	cut := func(n int64) []byte {
		b := memory[:n:n]
		memory = memory[graph.AlignUp(n):]
		return b
	}
	for i, n := range w.slots[:outSlot] {
		e.slots[i] = tensor.View[float32](cut(n))
	}
	e.out = tensor.View[float32](cut(w.slots[outSlot]))
	e.staged = cut(w.staged)
	if len(e.workers) < e.threads() {
		e.workers = make([]worker, e.threads())
	}
	for i := range e.workers {
		e.workers[i].line = tensor.View[float32](cut(w.line))
	}
}

// decodeWork is of loops over floats. Packed filters are not read.
func decodeWork(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, _ int) {
	for k, v := range n.In {
		if v != graph.None && k < outSlot && !(k > 0 && typeOf(n).pack != nil && packsFloats(g, n)) {
			w.slot(k, numberBytes(g, v, s))
		}
	}
	w.slot(outSlot, numberBytes(g, n.Out[0], s))
}

// numberBytes returns the size of a value's float32 copy, 0 if it is float32 already.
func numberBytes(g *graph.Graph, v int, s []graph.Shape) int64 {
	if g.Values[v].Datatype == graph.FP32 {
		return 0
	}
	return graph.Times(4, s[v].Numel())
}

// elementWork is of functions of one operand, which are tables for bytes.
func elementWork(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	_, from := bytesAs(&g.Values[n.In[0]])
	if _, to := bytesAs(&g.Values[n.Out[0]]); from && to {
		w.kept = graph.Plus(w.kept, tableBytes)
		return
	}
	decodeWork(w, g, n, s, threads)
}

const tableBytes = 256

// convertWork is of conversions. A dynamically quantized value has a token for each group.
func convertWork(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	in, out := &g.Values[n.In[0]], &g.Values[n.Out[0]]
	_, from := bytesAs(in)
	_, to := bytesAs(out)
	switch {
	case out.Datatype == graph.QDInt8:
		w.slot(0, numberBytes(g, n.In[0], s))
		w.kept = graph.Plus(w.kept, graph.Times(8, s[n.Out[0]].Leading(max(0, s[n.Out[0]].Rank-out.Quant.Nonbatch))))
	case from && out.Datatype == graph.FP32, in.Datatype == graph.FP32 && to:
	default:
		elementWork(w, g, n, s, threads)
	}
}

// binaryWork is of functions of two operands, which are expanded piece by piece.
func binaryWork(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	out := s[n.Out[0]]
	a, b := repeated(s[n.In[0]], out), repeated(s[n.In[1]], out)
	_, bytes := bytesAs(&g.Values[n.Out[0]])
	if _, known := binaryOps[n.Type.Tag]; bytes && known {
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
	return func(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
		productWork(g, w, n, s, threads, floats)
	}
}

func productWork(g *graph.Graph, w *work, n *graph.Node, s []graph.Shape, threads int, floats workFunc) {
	switch {
	case supportsInt8(g, n):
		workInt8(g, w, n, s)
	default:
		decodeWork(w, g, n, s, threads)
		floats(w, g, n, s, threads)
	}
}

// filterRows returns how many elements of a filter a column of its products has.
func filterRows(g *graph.Graph, n *graph.Node, s []graph.Shape) int {
	if n.Type.Tag == graph.TagDepthwiseConv2d {
		return n.Window().KernelH * n.Window().KernelW
	}
	f := s[n.In[1]]
	return f.Numel() / max(1, f.Dim[0])
}

// runtimeFilter adds a filter that is packed in each run.
func runtimeFilter(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape) {
	if !packsFloats(g, n) {
		w.kept = graph.Plus(w.kept, graph.Times(4, panelElements(g, n, s)+s[n.Out[0]].Last()))
	}
}

func connectedWork(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, _ int) {
	runtimeFilter(w, g, n, s)
}

// windowWork is of convolutions, by lines or by gathered rows.
func windowWork(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, _ int) {
	runtimeFilter(w, g, n, s)
	r := n.Windows(s[n.In[0]], s[n.Out[0]])
	if hasWinograd(g, n, s) {
		w.line = max(w.line, graph.Times(4, r.WinogradWork()))
	}
	switch {
	case n.Type.Tag == graph.TagConvTranspose2d || r.IsPointwise():
	case r.ByLines():
		w.line = max(w.line, graph.Times(4, r.Copies()))
	default:
		w.line = max(w.line, graph.Times(4, min(graph.GatheredRows, max(1, r.Out.Leading(3))),
			min(graph.GatheredDepth, r.W.KernelH*r.W.KernelW*r.W.GroupIn)))
	}
}

// batchWork is of products of matrices, whose second ones are packed in each run.
func batchWork(w *work, _ *graph.Graph, n *graph.Node, s []graph.Shape, _ int) {
	b, out := s[n.In[1]], s[n.Out[0]]
	w.kept = graph.Plus(w.kept, graph.Plus(graph.Times(16, out.Leading(out.Rank-2)), graph.Times(4, out.FromEnd(0))))
	if n.Flags&graph.FlagTransposeWeights != 0 && out.FromEnd(1) > gemm.FewRows {
		w.staged = max(w.staged, graph.Times(4, b.Leading(b.Rank-2), gemm.Size(b.FromEnd(0), b.FromEnd(1), b.FromEnd(0))))
	}
}

// poolWork is of pools: a line of the input, lists of taps, what means are divided by, and for bytes the input with padding.
func poolWork(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	in := s[n.In[0]]
	var st stage
	_, bytes := bytesAs(&g.Values[n.In[0]])
	if bytes && n.Type.Tag == graph.TagMaxPooling2d && st.plan(n, in, s[n.Out[0]], -in.Dim[3]&(simd.DotCols-1)) {
		w.staged = max(w.staged, st.bytes())
		if n.Min == -graph.Inf && n.Max == graph.Inf {
			return
		}
	}
	decodeWork(w, g, n, s, threads)
	var p linePool
	p.plan(n, in, s[n.Out[0]], n.Type.Tag != graph.TagMaxPooling2d)
	w.line = max(w.line, graph.Times(4, p.Line()))
	w.kept = graph.Plus(w.kept, graph.Plus(graph.Times(threads, 8*p.Listed()), graph.Times(4, 1+p.Out[1]+p.Out[2])))
}

// resizeWork is of resizes: two lines of the output, and the positions of its pixels.
func resizeWork(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	decodeWork(w, g, n, s, threads)
	out := graph.Params[graph.ResizeParams](n).Shape(s[n.In[0]])
	w.line = max(w.line, graph.Times(8, out.Dim[2], out.Dim[3]))
	w.kept = graph.Plus(w.kept, graph.Times(24, out.Dim[2]))
}

// workInt8 adds the work of a product of bytes.
func workInt8(g *graph.Graph, w *work, n *graph.Node, s []graph.Shape) {
	in, out, segments := s[n.In[0]], s[n.Out[0]], 1
	cols, k := s[n.Out[0]].Last(), filterRows(g, n, s)
	gathers := false
	if o := n.Window(); o != nil {
		var st stage
		gathers = n.Type.Tag == graph.TagConvTranspose2d || !st.plan(n, in, out, 0)
		if segments = 2 * o.KernelH * o.KernelW; !gathers && st.needed {
			w.staged = max(w.staged, st.bytes())
		}
		w.kept = graph.Plus(w.kept, graph.Times(st.Cols, in.Dim[3]))
		cols = o.GroupOut
	}
	if byNibbles(g, n) {
		k, group := n.InputChannels(g), nibbleGroup(g, n)
		row := simd.Nibbles{Groups: k / group, K: group}
		w.staged = max(w.staged, graph.Times(in.Numel()/k, row.RowBytes()))
	} else if g.Values[n.In[0]].Arg != graph.None { // its bytes may end with the last element
		w.staged = max(w.staged, graph.Plus(int64(in.Numel()), overread))
	}
	w.kept = graph.Plus(w.kept, graph.Times(8, segments))
	if byDepth(g, n) {
		if gathers {
			w.tile = max(w.tile, graph.Plus(graph.Times(k, in.Dim[3]), overread))
		}
		return
	}
	rows := out.Numel() / max(1, out.Last())
	if n.Type.Tag == graph.TagBatchMatrixMultiply {
		rows, k = out.FromEnd(1), in.Last()
	}
	if !gathers {
		w.kept = graph.Plus(w.kept, graph.Times(8, min(rows, maxTable)))
	}
	tile := max(1, min(rows, 64))
	sums := tile * simd.DotCols * min(max(tileSums/simd.DotCols/tile, 4), graph.RoundUp(cols, simd.DotCols)/simd.DotCols)
	bytes := graph.Times(8, sums+2*tile)
	if gathers {
		bytes = graph.Plus(bytes, graph.Times(tile, graph.RoundUp(k, 4)+4*segments))
	}
	w.tile = max(w.tile, bytes)
}

// packedForGo returns the size of the constants that the Go engine packs.
func packedForGo(g *graph.Graph, s []graph.Shape) (n int64) {
	for i := range g.Nodes {
		node := &g.Nodes[i]
		switch {
		case !node.Type.Packs:
		case supportsInt8(g, node):
			n = graph.Plus(n, packedInt8(g, node))
		case typeOf(node).pack != nil && packsFloats(g, node):
			n = graph.Plus(n, packedFloats(g, node, s))
		}
	}
	return n
}

// packedFloats returns the size of a node's panels, or taps, and bias. Constants of floats are used
// as they are, except in panels.
func packedFloats(g *graph.Graph, n *graph.Node, s []graph.Shape) int64 {
	bytes := graph.Times(4, panelElements(g, n, s))
	if n.IsDepthwise() {
		bytes = numberBytes(g, n.In[1], s)
	}
	if len(n.In) < 3 || n.In[2] == graph.None || g.Values[n.In[2]].Datatype != graph.FP32 {
		bytes = graph.Plus(bytes, graph.Times(4, s[n.Out[0]].Last()))
	}
	if hasWinograd(g, n, s) {
		bytes = graph.Plus(bytes, graph.Times(4, s[n.Out[0]].Last()))
	}
	return bytes
}

// needsOf returns the memory of an image and a unit of the Go engine, with values in places.
func needsOf(g *graph.Graph, p *placement, threads int) graph.Needs {
	return needsWith(g, workAt(g, p.shapes, threads), p.shapes, p.bytes, threads)
}

// needsWith returns the memory of an image and a unit with this work and this many bytes of values.
func needsWith(g *graph.Graph, w *work, s []graph.Shape, values int64, threads int) graph.Needs {
	n := graph.Needs{Weights: packedForGo(g, s), Timed: graph.Times(8, len(g.Nodes))}
	n.Shared = graph.Plus(graph.AlignUp(values), w.shared(threads))
	n.Scratch = graph.Plus(graph.Plus(n.Shared, w.kept), graph.Repeat(threads, w.tile))
	return n
}
