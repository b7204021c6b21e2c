package xnnpack

import (
	"slices"

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
func (e *estimator) goColumns(n int) int {
	if e.tile < goPanel/2 {
		return roundUp(n, e.tile)
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
func (e *estimator) convolutionTime(n *node) float64 {
	w, out := n.window(), e.shapes[n.Out[0]]
	switch inGo, short := e.engine == byGo, e.isShort(n); {
	case inGo && n.isDepthwise():
		return e.goDepthwise(n, w, out)
	case inGo && n.Type.tag == tagConvTranspose2d:
		return e.goTransposed(n, w, out)
	case inGo && short:
		return e.goProduct8(n, w, out)
	case inGo:
		return e.goFloats(n)
	case n.isDepthwise():
		return e.libraryDepthwise(n, w, out)
	}
	return e.libraryConvolution(n, w, out)
}

// libraryConvolution returns the time of a convolution in the library.
func (e *estimator) libraryConvolution(n *node, w *window, out shape) float64 {
	depth, tile, r := 1, e.tile, &libraryFloats
	if e.narrow && tile > narrowTile {
		tile = max(e.tile/2, 8)
	}
	if e.isShort(n) {
		depth, tile, r = 8, max(e.tile/2, 8), &libraryShort
	}
	rows, taps, lines := out.leading(3)*w.groups, float64(w.kernelH*w.kernelW), 0
	if phases := phases(w); n.Type.tag == tagConvTranspose2d {
		switch {
		case depth == 1 && w.groupOut < tile:
			tile, r = 2, &libraryPairs
		case phases > 1 && depth == 1:
			r = &libraryPhases
		case phases > 1:
			r = &libraryPhasesShort
		}
		if phases > 1 {
			taps, lines = taps/float64(phases), out.leading(2)*w.strideW*w.groups
		}
	}
	q := quantities{node: 1, group: float64(w.groups), call: float64(lines), row: float64(rows), element: float64(out.numel())}
	q.tap = q.row * taps * float64(ceilDiv(w.groupOut, tile))
	q.work = q.row * taps * float64(roundUp(w.groupIn, depth)*roundUp(w.groupOut, tile))
	return q.times(r)
}

// phases returns the number of convolutions into which the library divides a transposed one.
func phases(w *window) int {
	if w.strideH > w.kernelH || w.strideW > w.kernelW || w.dilationH*w.dilationW > 1 {
		return 1
	}
	return w.strideH * w.strideW
}

// Numbers of taps of the library's depthwise kernels. One of 8 bits has 3, 9 or 25.
var depthwiseTaps = [...]int{3, 4, 9, 25}

// libraryDepthwise returns the time of a depthwise convolution in the library. Windows with more taps
// than its kernels have are computed channel by channel.
func (e *estimator) libraryDepthwise(n *node, w *window, out shape) float64 {
	rows, taps, short := float64(out.leading(3)), w.kernelH*w.kernelW, e.isShort(n)
	q, r := quantities{node: 1, element: float64(out.numel())}, &libraryDepth
	i := slices.IndexFunc(depthwiseTaps[:], func(n int) bool { return n >= taps && !(short && n == 4) })
	if i < 0 {
		q.work = rows * float64(taps*w.groups)
		return q.times(&libraryManyTaps)
	}
	if short {
		r = &libraryDepthShort
	}
	q.tap = rows * float64(depthwiseTaps[i])
	q.work = q.tap * float64(roundUp(w.groups, max(e.tile/2, 8)))
	if !short && taps*w.groups > nearTaps {
		q.work *= farTaps
	}
	return q.times(r)
}

// goFloats returns the time of a convolution of floats in the Go engine.
func (e *estimator) goFloats(n *node) float64 {
	s := n.windows(e.shapes[n.In[0]], e.shapes[n.Out[0]])
	w, rows := s.w, s.out.leading(3)*s.w.groups
	taps := w.kernelH * w.kernelW
	columns, passes := e.goColumns(w.groupOut), ceilDiv(w.groupOut, goPanel)
	q := quantities{node: 1, group: float64(w.groups), row: float64(rows), tile: float64(rows * passes), element: float64(s.out.numel())}
	q.copied = q.row * float64(taps*w.groupIn)
	q.work = q.copied * float64(columns) * e.slower
	calls := taps / s.w.contiguousTaps()
	switch {
	case s.isPointwise():
		return q.times(&goPixels) + goLate(rows, w.groupIn, w.groupOut)
	case s.suitsLines() && s.block() > 0:
		lines := s.out.leading(2)
		q.call, q.copied = float64(lines), 0
		q.work *= linePixels(s.out.dim[2])
		if n := s.block(); s.copied() > 0 {
			q.line = float64(lines*s.linesOf(n)) / float64(n)
			q.copied = q.line * float64(s.copied())
		}
		return q.times(&goBlocks)
	case s.suitsLines():
		q.line = float64(s.out.leading(2))
		q.call, q.tile = q.line*float64(calls*w.groups), q.tile*float64(calls)*narrow(w)
		return q.times(&goLines)
	}
	late := 0.0
	if rows == w.groups {
		late = goStalled * q.copied * float64(passes)
	}
	if w.groups == 1 && w.dilationW == 1 && taps*w.groupIn <= gatheredDepth {
		q.tap = float64(rows * w.kernelH)
		return q.times(&goWindows) + late
	}
	q.tap = float64(rows * calls)
	q.tile *= float64(ceilDiv(taps*w.groupIn, gatheredDepth))
	return q.times(&goTaps) + late
}

// goProduct8 returns the time of a convolution of 8-bit elements in the Go engine.
func (e *estimator) goProduct8(n *node, w *window, out shape) float64 {
	rows, segments := out.leading(3), w.kernelH
	if !n.joined() {
		segments *= w.kernelW
	}
	k := w.kernelH * w.kernelW * w.groupIn / segments
	tasks := ceilDiv(rows, 64) * ceilDiv(w.groupOut, 64) * w.groups
	q := quantities{node: 1, call: float64(tasks), row: float64(rows * w.groups)}
	q.tile = q.row * float64(ceilDiv(w.groupOut, simd.DotCols))
	q.work = q.row * float64(segments*roundUp(k, 4)) * float64(roundUp(w.groupOut, simd.DotCols)) * e.slower
	e.staged(&q, n, w, k%4 > 0)
	return q.times(&goShort)
}

// staged adds the copy of the input of an 8-bit convolution that has padding, or an odd size.
func (e *estimator) staged(q *quantities, n *node, w *window, odd bool) {
	in := e.shapes[n.In[0]]
	top, left := n.padding(in.dim[1], in.dim[2])
	if odd || top+left+w.bottom+w.right > 0 {
		q.line, q.copied = float64(in.dim[0]*(in.dim[1]+2*top)), float64(in.numel())
	}
}

// goDepthwise returns the time of a depthwise convolution in the Go engine. A line of floats is computed
// in runs of pixels that have the same taps inside of the input.
func (e *estimator) goDepthwise(n *node, w *window, out shape) float64 {
	in, taps, lines := e.shapes[n.In[0]], w.kernelH*w.kernelW, out.leading(2)
	q := quantities{node: 1, row: float64(out.leading(3))}
	if e.isShort(n) {
		channels := roundUp(w.groups, simd.DotCols)
		q.call, q.tap = float64(lines), float64(lines*taps)
		q.work, q.element = q.row*float64(roundUp(taps, 2)*channels), q.row*float64(channels)
		e.staged(&q, n, w, w.groups%simd.DotCols > 0)
		return q.times(&goDepthShort)
	}
	runs := 1
	if _, left := n.padding(in.dim[1], in.dim[2]); left > 0 && (out.dim[2] > narrowLine || taps <= manyWindowTaps) {
		runs += min(out.dim[2], (w.kernelW-1)*w.dilationW/w.strideW)
	}
	q.call, q.tap = float64(lines*runs), float64(lines*runs*taps)
	q.work = q.row * float64(taps*roundUp(w.groups, goChannels))
	return q.times(&goDepth)
}

// goTransposed returns the time of a transposed convolution in the Go engine.
func (e *estimator) goTransposed(n *node, w *window, out shape) float64 {
	taps, q := w.kernelH*w.kernelW, quantities{node: 1, element: float64(out.numel())}
	if e.isShort(n) {
		q.row = float64(out.leading(3) * w.groups)
		q.tap, q.copied = q.row*float64(taps), q.row*float64(taps*w.groupIn)
		q.work = q.row * float64(roundUp(taps*w.groupIn, 4)) * float64(roundUp(w.groupOut, simd.DotCols)) * e.slower
		return q.times(&goUpsampled8)
	}
	in := e.shapes[n.In[0]]
	q.row, q.call = float64(out.leading(3)), float64(in.leading(2)*taps*w.groups)
	rows := q.call * float64(in.dim[2])
	q.tile = rows * float64(ceilDiv(w.groupOut, goPanel)) * narrow(w)
	q.work = rows * float64(w.groupIn*e.goColumns(w.groupOut)) * e.slower
	return q.times(&goUpsampled)
}

// narrow returns how much longer it takes to add a row to another if groups have few output channels.
func narrow(w *window) float64 {
	if w.groupOut <= goFew {
		return goNarrow
	}
	return 1
}
