package cost

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
)

// quantities are what the time of a convolution depends on: their numbers, or the time of each in
// nanoseconds.
type quantities struct {
	node    float64 // one
	group   float64 // groups
	call    float64 // calls of a kernel
	row     float64 // output pixels, in each group
	tap     float64 // runs of windows that are addressed or copied one by one
	line    float64 // lines of the input or output that are prepared
	copied  float64 // elements that are copied
	tile    float64 // rows by tiles of output channels, in each pass over the output
	work    float64 // MACs, with channels rounded up to whole tiles
	element float64 // elements of the output
}

// times returns the sum of the products of numbers and times.
func (q *quantities) times(r *quantities) float64 {
	return q.node*r.node + q.group*r.group + q.call*r.call + q.row*r.row + q.tap*r.tap + q.line*r.line +
		q.copied*r.copied + q.tile*r.tile + q.work*r.work + q.element*r.element
}

// Times of convolutions in the library, fitted to 7,000 random convolutions of up to 3 million MACs, as
// are those of the Go engine. A transposed convolution with a stride is computed as one convolution
// for each position within the stride. One of floats with fewer output channels than a tile takes
// kernels of two channels.
var (
	libraryFloats      = quantities{node: 2, group: 23, row: 1.7, work: 0.0178, element: 0.015}
	libraryShort       = quantities{node: 2, group: 18, row: 1.88, work: 0.00485, element: 0.077}
	libraryDepth       = quantities{node: 7, tap: 0.53, work: 0.0427, element: 0.014}
	libraryDepthShort  = quantities{node: 10, tap: 0.4, work: 0.0563}
	libraryManyTaps    = quantities{node: 90, work: 0.7, element: 1.5}
	libraryPairs       = quantities{node: 4, group: 5, call: 9.3, row: 2.3, tap: 0.61, work: 0.04, element: 0.36}
	libraryPhases      = quantities{row: 9.9, tap: 0.15, work: 0.0263, element: 0.011}
	libraryPhasesShort = quantities{group: 30, call: 1.1, row: 10.9, tap: 0.38, work: 0.0065, element: 0.08}
)

// Times of convolutions in the Go engine.
var (
	goPixels     = quantities{node: 10, group: 40, tile: 1.1, work: 0.0171, element: 0.02}
	goBlocks     = quantities{call: 36, line: 9.7, copied: 0.009, tile: 0.81, work: 0.0162, element: 0.07}
	goLines      = quantities{call: 30.9, line: 33.5, tile: 1, work: 0.0179, element: 0.065}
	goWindows    = quantities{node: 65, row: 11.7, tap: 2.6, copied: 0.072, tile: 2, work: 0.0189}
	goTaps       = quantities{node: 11, group: 50, row: 7.9, tap: 5.4, copied: 0.084, tile: 1.6, work: 0.0186}
	goDepth      = quantities{node: 57, call: 25, row: 3.4, tap: 0.43, work: 0.036}
	goDepthShort = quantities{node: 2, call: 18, row: 2.2, tap: 1.04, line: 10.6, copied: 0.02, work: 0.0248, element: 0.11}
	goShort      = quantities{node: 14, call: 40, row: 1.05, line: 7.2, copied: 0.03, tile: 1.4, work: 0.00486}
	goUpsampled  = quantities{node: 60, call: 38, row: 2.4, tile: 1.4, work: 0.0164, element: 0.087}
	goUpsampled8 = quantities{node: 39, row: 10.3, tap: 10.3, copied: 0.16, work: 0.0059, element: 0.1}
)

const (
	goPanel    = 32  // output channels of a tile of floats
	goChannels = 32  // channels that a depthwise convolution of floats computes together
	goStalled  = 1.4 // per term of a gathered window, for each tile, if there is only one row
	goFew      = 8   // output channels up to which a row that is added to another takes goNarrow as long
	goNarrow   = 2.5
)

// goRest are the last columns of a product in the Go engine with AVX-512, up to goPanel of them, and how
// many columns of a panel take as long.
var goRest = [...]struct{ upTo, columns int }{{0, 0}, {4, 6}, {8, 12}, {16, 16}, {20, 22}, {24, 26}, {goPanel, goPanel}}

// goColumns returns how many columns of panels take as long as n columns in the Go engine.
func (e *Estimator) goColumns(n int) int {
	if e.tile < goPanel/2 {
		return graph.RoundUp(n, e.tile)
	}
	i := 0
	for n%goPanel > goRest[i].upTo {
		i++
	}
	return n/goPanel*goPanel + goRest[i].columns
}

// goTails has by their number how many pixels of whole tiles take as long as the last pixels of a line.
var goTails = [...]float64{0, 2.5, 3, 4.5, 4, 6, 6, 8.5}

// linePixels returns the work of a line of n pixels, relative to whole tiles.
func linePixels(n int) float64 {
	tile := len(goTails)
	return (float64(n/tile*tile) + goTails[n%tile]) / float64(max(n, 1))
}

// convolutionTime returns the time of a convolution.
func (e *Estimator) convolutionTime(n *graph.Node) float64 {
	w, out := n.Window(), e.Shapes[n.Out[0]]
	switch inGo, short := e.Engine == ByGo, e.isShort(n); {
	case inGo && n.IsDepthwise():
		return e.goDepthwise(n, w, out)
	case inGo && n.Type.Tag == graph.TagConvTranspose2d:
		return e.goTransposed(n, w, out)
	case inGo && short:
		return e.goProduct8(n, w, out)
	case inGo:
		return e.goFloats(n)
	case n.IsDepthwise():
		return e.libraryDepthwise(n, w, out)
	}
	return e.libraryConvolution(n, w, out)
}

// libraryConvolution returns the time of a convolution in the library.
func (e *Estimator) libraryConvolution(n *graph.Node, w *graph.Window, out graph.Shape) float64 {
	depth, tile, r := 1, e.tile, &libraryFloats
	if e.narrow && tile > narrowTile {
		tile = max(e.tile/2, 8)
	}
	if e.isShort(n) {
		depth, tile, r = 8, max(e.tile/2, 8), &libraryShort
	}
	rows, taps, lines := out.Leading(3)*w.Groups, float64(w.KernelH*w.KernelW), 0
	if phases := phases(w); n.Type.Tag == graph.TagConvTranspose2d {
		switch {
		case depth == 1 && w.GroupOut < tile:
			tile, r = 2, &libraryPairs
		case phases > 1 && depth == 1:
			r = &libraryPhases
		case phases > 1:
			r = &libraryPhasesShort
		}
		if phases > 1 {
			taps, lines = taps/float64(phases), out.Leading(2)*w.StrideW*w.Groups
		}
	}
	q := quantities{node: 1, group: float64(w.Groups), call: float64(lines), row: float64(rows), element: float64(out.Numel())}
	q.tap = q.row * taps * float64(graph.CeilDiv(w.GroupOut, tile))
	q.work = q.row * taps * float64(graph.RoundUp(w.GroupIn, depth)*graph.RoundUp(w.GroupOut, tile))
	return q.times(r)
}

// phases returns the number of convolutions into which the library divides a transposed one.
func phases(w *graph.Window) int {
	if w.StrideH > w.KernelH || w.StrideW > w.KernelW || w.DilationH*w.DilationW > 1 {
		return 1
	}
	return w.StrideH * w.StrideW
}

// Numbers of taps of the library's depthwise kernels. One of 8 bits has 3, 9 or 25.
var depthwiseTaps = [...]int{3, 4, 9, 25}

// libraryDepthwise returns the time of a depthwise convolution in the library. Windows with more taps
// than its kernels have are computed channel by channel.
func (e *Estimator) libraryDepthwise(n *graph.Node, w *graph.Window, out graph.Shape) float64 {
	rows, taps, short := float64(out.Leading(3)), w.KernelH*w.KernelW, e.isShort(n)
	q, r := quantities{node: 1, element: float64(out.Numel())}, &libraryDepth
	i := slices.IndexFunc(depthwiseTaps[:], func(n int) bool { return n >= taps && !(short && n == 4) })
	if i < 0 {
		q.work = rows * float64(taps*w.Groups)
		return q.times(&libraryManyTaps)
	}
	if short {
		r = &libraryDepthShort
	}
	q.tap = rows * float64(depthwiseTaps[i])
	q.work = q.tap * float64(graph.RoundUp(w.Groups, max(e.tile/2, 8)))
	if !short && taps*w.Groups > nearTaps {
		q.work *= farTaps
	}
	return q.times(r)
}

// goFloats returns the time of a convolution of floats in the Go engine.
func (e *Estimator) goFloats(n *graph.Node) float64 {
	s := n.Windows(e.Shapes[n.In[0]], e.Shapes[n.Out[0]])
	w, rows := s.W, s.Out.Leading(3)*s.W.Groups
	taps := w.KernelH * w.KernelW
	columns, passes := e.goColumns(w.GroupOut), graph.CeilDiv(w.GroupOut, goPanel)
	q := quantities{node: 1, group: float64(w.Groups), row: float64(rows), tile: float64(rows * passes), element: float64(s.Out.Numel())}
	q.copied = q.row * float64(taps*w.GroupIn)
	q.work = q.copied * float64(columns) * e.slower
	calls := taps / s.W.ContiguousTaps()
	switch {
	case s.IsPointwise():
		return q.times(&goPixels) + goLate(rows, w.GroupIn, w.GroupOut)
	case s.ByLines() && s.Block() > 0:
		lines := s.Out.Leading(2)
		q.call, q.copied = float64(lines), 0
		q.work *= linePixels(s.Out.Dim[2])
		if n := s.Block(); s.Copied() > 0 {
			q.line = float64(lines*s.LinesOf(n)) / float64(n)
			q.copied = q.line * float64(s.Copied())
		}
		return q.times(&goBlocks)
	case s.ByLines():
		q.line = float64(s.Out.Leading(2))
		q.call, q.tile = q.line*float64(calls*w.Groups), q.tile*float64(calls)*narrow(w)
		return q.times(&goLines)
	}
	late := 0.0
	if rows == w.Groups {
		late = goStalled * q.copied * float64(passes)
	}
	if w.Groups == 1 && w.DilationW == 1 && taps*w.GroupIn <= graph.GatheredDepth {
		q.tap = float64(rows * w.KernelH)
		return q.times(&goWindows) + late
	}
	q.tap = float64(rows * calls)
	q.tile *= float64(graph.CeilDiv(taps*w.GroupIn, graph.GatheredDepth))
	return q.times(&goTaps) + late
}

// goProduct8 returns the time of a convolution of 8-bit elements in the Go engine.
func (e *Estimator) goProduct8(n *graph.Node, w *graph.Window, out graph.Shape) float64 {
	rows, segments := out.Leading(3), w.KernelH
	if !n.Joined() {
		segments *= w.KernelW
	}
	k := w.KernelH * w.KernelW * w.GroupIn / segments
	tasks := graph.CeilDiv(rows, 64) * graph.CeilDiv(w.GroupOut, 64) * w.Groups
	q := quantities{node: 1, call: float64(tasks), row: float64(rows * w.Groups)}
	q.tile = q.row * float64(graph.CeilDiv(w.GroupOut, simd.DotCols))
	q.work = q.row * float64(segments*graph.RoundUp(k, 4)) * float64(graph.RoundUp(w.GroupOut, simd.DotCols)) * e.slower
	e.staged(&q, n, w, k%4 > 0)
	return q.times(&goShort)
}

// staged adds the copy of the input of an 8-bit convolution that has padding, or an odd size.
func (e *Estimator) staged(q *quantities, n *graph.Node, w *graph.Window, odd bool) {
	in := e.Shapes[n.In[0]]
	top, left := n.Padding(in.Dim[1], in.Dim[2])
	if odd || top+left+w.Bottom+w.Right > 0 {
		q.line, q.copied = float64(in.Dim[0]*(in.Dim[1]+2*top)), float64(in.Numel())
	}
}

// goDepthwise returns the time of a depthwise convolution in the Go engine. A line of floats is computed
// in runs of pixels that have the same taps inside of the input.
func (e *Estimator) goDepthwise(n *graph.Node, w *graph.Window, out graph.Shape) float64 {
	in, taps, lines := e.Shapes[n.In[0]], w.KernelH*w.KernelW, out.Leading(2)
	q := quantities{node: 1, row: float64(out.Leading(3))}
	if e.isShort(n) {
		channels := graph.RoundUp(w.Groups, simd.DotCols)
		q.call, q.tap = float64(lines), float64(lines*taps)
		q.work, q.element = q.row*float64(graph.RoundUp(taps, 2)*channels), q.row*float64(channels)
		e.staged(&q, n, w, w.Groups%simd.DotCols > 0)
		return q.times(&goDepthShort)
	}
	runs := 1
	if _, left := n.Padding(in.Dim[1], in.Dim[2]); left > 0 && (out.Dim[2] > graph.NarrowLine || taps <= graph.ManyWindowTaps) {
		runs += min(out.Dim[2], (w.KernelW-1)*w.DilationW/w.StrideW)
	}
	q.call, q.tap = float64(lines*runs), float64(lines*runs*taps)
	q.work = q.row * float64(taps*graph.RoundUp(w.Groups, goChannels))
	return q.times(&goDepth)
}

// goTransposed returns the time of a transposed convolution in the Go engine.
func (e *Estimator) goTransposed(n *graph.Node, w *graph.Window, out graph.Shape) float64 {
	taps, q := w.KernelH*w.KernelW, quantities{node: 1, element: float64(out.Numel())}
	if e.isShort(n) {
		q.row = float64(out.Leading(3) * w.Groups)
		q.tap, q.copied = q.row*float64(taps), q.row*float64(taps*w.GroupIn)
		q.work = q.row * float64(graph.RoundUp(taps*w.GroupIn, 4)) * float64(graph.RoundUp(w.GroupOut, simd.DotCols)) * e.slower
		return q.times(&goUpsampled8)
	}
	in := e.Shapes[n.In[0]]
	q.row, q.call = float64(out.Leading(3)), float64(in.Leading(2)*taps*w.Groups)
	rows := q.call * float64(in.Dim[2])
	q.tile = rows * float64(graph.CeilDiv(w.GroupOut, goPanel)) * narrow(w)
	q.work = rows * float64(w.GroupIn*e.goColumns(w.GroupOut)) * e.slower
	return q.times(&goUpsampled)
}

// narrow returns how much longer it takes to add a row to another if groups have few output channels.
func narrow(w *graph.Window) float64 {
	if w.GroupOut <= goFew {
		return goNarrow
	}
	return 1
}
