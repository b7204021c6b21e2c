package integers

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
)

// TableWork is of functions of bytes.
func TableWork(w *frame.Work, _ *graph.Graph, _ *graph.Node, _ []graph.Shape, _ int) {
	w.Kept = graph.Plus(w.Kept, tableBytes)
}

const tableBytes = 256

// ConvertWork is of conversions. A dynamically quantized value has a token for each group.
func ConvertWork(w *frame.Work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	out := &g.Values[n.Out[0]]
	switch {
	case out.Datatype == graph.QDInt8:
		w.Slot(0, numbers.NumberBytes(g, n.In[0], s))
		w.Kept = graph.Plus(w.Kept, graph.Times(8, s[n.Out[0]].Leading(max(0, s[n.Out[0]].Rank-out.Quant.Nonbatch))))
	case numbers.MapsBytes(g, n):
		TableWork(w, g, n, s, threads)
	}
}

// BinaryWork is of functions of two operands of bytes.
func BinaryWork(w *frame.Work, _ *graph.Graph, _ *graph.Node, _ []graph.Shape, _ int) {
	w.Tile = max(w.Tile, 2*byteChunk)
}

// MaxPoolWork is of largest bytes: the input with padding. Those with bounds, or windows that are mostly padding, are decoded, too.
func MaxPoolWork(floats frame.WorkFunc) frame.WorkFunc {
	return func(w *frame.Work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
		in := s[n.In[0]]
		var st stage
		if st.plan(n, in, s[n.Out[0]], -in.Dim[3]&(simd.DotCols-1)) {
			w.Staged = max(w.Staged, st.bytes())
			if n.Min == -graph.Inf && n.Max == graph.Inf {
				return
			}
		}
		floats(w, g, n, s, threads)
	}
}

// ProductWork adds the work of a product of bytes.
func ProductWork(w *frame.Work, g *graph.Graph, n *graph.Node, s []graph.Shape, _ int) {
	in, out, segments := s[n.In[0]], s[n.Out[0]], 1
	cols, k := s[n.Out[0]].Last(), filterRows(g, n, s)
	gathers := false
	if o := n.Window(); o != nil {
		var st stage
		gathers = n.Type.Tag == graph.TagConvTranspose2d || !st.plan(n, in, out, 0)
		if segments = 2 * o.KernelH * o.KernelW; !gathers && st.needed {
			w.Staged = max(w.Staged, st.bytes())
		}
		w.Kept = graph.Plus(w.Kept, graph.Times(st.Cols, in.Dim[3]))
		cols = o.GroupOut
	}
	if filters.ByNibbles(g, n) {
		k, group := n.InputChannels(g), filters.NibbleGroup(g, n)
		row := simd.Nibbles{Groups: k / group, K: group}
		w.Staged = max(w.Staged, graph.Times(in.Numel()/k, row.RowBytes()))
	} else if g.Values[n.In[0]].Arg != graph.None { // its bytes may end with the last element
		w.Staged = max(w.Staged, graph.Plus(int64(in.Numel()), numbers.Overread))
	}
	w.Kept = graph.Plus(w.Kept, graph.Times(8, segments))
	if filters.ByDepth(g, n) {
		if gathers {
			w.Tile = max(w.Tile, graph.Plus(graph.Times(k, in.Dim[3]), numbers.Overread))
		}
		return
	}
	rows := out.Numel() / max(1, out.Last())
	if n.Type.Tag == graph.TagBatchMatrixMultiply {
		rows, k = out.FromEnd(1), in.Last()
	}
	if !gathers {
		w.Kept = graph.Plus(w.Kept, graph.Times(8, min(rows, maxTable)))
	}
	tile := max(1, min(rows, 64))
	sums := tile * simd.DotCols * min(max(tileSums/simd.DotCols/tile, 4), graph.RoundUp(cols, simd.DotCols)/simd.DotCols)
	bytes := graph.Times(8, sums+2*tile)
	if gathers {
		bytes = graph.Plus(bytes, graph.Times(tile, graph.RoundUp(k, 4)+4*segments))
	}
	w.Tile = max(w.Tile, bytes)
}

// filterRows returns how many elements of a filter a column of its products has.
func filterRows(g *graph.Graph, n *graph.Node, s []graph.Shape) int {
	if n.Type.Tag == graph.TagDepthwiseConv2d {
		return n.Window().KernelH * n.Window().KernelW
	}
	f := s[n.In[1]]
	return f.Numel() / max(1, f.Dim[0])
}
