package integers

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/nhwc"
)

// stage is the activations of a convolution in the form that its products read: surrounded by padding, and followed by
// readable bytes. If the input already has that form, it is used instead.
type stage struct {
	nhwc.Padded[uint8]
	needed bool
}

// plan sets the stage up for windows over an input of [N, H, W, C]; tail is the number of bytes
// that products read past what they use. It reports whether the stage has a reasonable size.
func (s *stage) plan(n *graph.Node, in, out graph.Shape, tail int) bool {
	s.Plan(frame.ImagesOf(n, in, out), in.Dim[0])
	s.needed = tail > 0 || s.Differs()
	return s.bytes() <= stageLimit(in, out)
}

// bytes returns the size of the stage.
func (s *stage) bytes() int64 { return graph.Plus(s.Numel(), numbers.Overread) }

// stageLimit returns the largest reasonable size of a stage: a larger one is mostly padding.
func stageLimit(in, out graph.Shape) int64 { return int64(4*(in.Numel()+out.Numel())) + 1<<16 }

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
