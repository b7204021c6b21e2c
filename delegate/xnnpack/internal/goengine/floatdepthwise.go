package goengine

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// floatDepthwise computes a depthwise convolution. With several output channels per input channel, it
// is a grouped convolution with one input channel per group.
func (e *Unit) floatDepthwise(n *graph.Node) {
	if n.Window().GroupOut > 1 {
		e.floatConvolution(n)
		return
	}
	d, stale := loopOf[depthwiseLines](e, n, e.direct[n.At])
	if stale {
		d.set(e, n)
	}
	d.pad()
	e.Parallel(d.lines, d.grain, d)
	e.store(n.Out[0])
}

// depthwiseLines computes lines of a depthwise convolution's output.
type depthwiseLines struct {
	windowRows
	node   *graph.Node
	taps   []float32 // of the filter, and its bias: of few channels, copies that vector loops can read behind
	bias   []float32
	longer [2][]float32 // these copies
	y      []float32
	work   []tapLists
	sides  [2]int     // the number of lists is their product
	plain  windowRows // the input without padding, if windowRows refers to a padded copy
	copied []float32  // the padded copy, nil for none

	lines, grain int // of the parallel loop
}

// tapLists caches lists of a worker: a line has one for the pixels in the middle, and others at the
// borders, as the lines themselves do. Windows that end at different borders differ in the sum of their bounds.
type tapLists []tapList

// A worker has listsOfSide² lists, or 4 if there are more than fewTaps taps, and fewer for outputs of one
// line or column.
const listsOfSide, fewTaps = 4, 64

// tapList contains the offsets of the taps of a window, in the input relative to the first of them,
// and in the filter.
type tapList struct {
	x, w       []int
	rows, cols [2]int // the half-open ranges of taps in the list
}

func (d *depthwiseLines) set(e *Unit, n *graph.Node) {
	d.windowRows = e.windowsOf(n)
	d.node, d.y = n, e.result(n.Out[0])
	d.setFilter(e.filterOf(n))
	taps := d.W.KernelH * d.W.KernelW
	d.copyPadded(e)
	d.sides = d.listSides(taps)
	d.work = grow(d.work, e.threads())
	for i := range d.work {
		d.work[i] = grow(d.work[i], d.sides[0]*d.sides[1])
		for k := range d.work[i] {
			l := &d.work[i][k]
			*l = tapList{x: grow(l.x, taps), w: grow(l.w, taps), rows: [2]int{-1, -1}}
		}
	}
	d.lines, d.grain = d.Out.Leading(2), 1+macsPerRange/8/max(1, d.Out.Dim[2]*d.Out.Dim[3]*taps)
}

// setFilter refers to the taps and the bias of a filter.
func (d *depthwiseLines) setFilter(f *floatFilter) {
	d.taps, d.bias = f.taps, f.bias
	if d.Out.Dim[3] < simd.ChannelLanes {
		for i, list := range [][]float32{f.taps, f.bias} {
			d.longer[i] = grow(d.longer[i], len(list)+simd.ChannelLanes)
			copy(d.longer[i], list)
		}
		d.taps, d.bias = d.longer[0], d.longer[1]
	}
}

// listSides returns the value of sides for so many taps.
func (d *depthwiseLines) listSides(taps int) (sides [2]int) {
	for i, n := range d.Out.Dim[1:3] {
		switch {
		case n == 1: // one list is enough
			sides[i] = 1
		case taps > fewTaps:
			sides[i] = 2
		default:
			sides[i] = listsOfSide
		}
	}
	return sides
}

// paddedSize returns the height and width of a padded copy of the input. ok is false if a copy is not
// faster or too large.
func (d *depthwiseLines) paddedSize() (h, v int, ok bool) {
	w, in, out := d.W, d.In, d.Out
	h, v = (out.Dim[1]-1)*w.StrideH+(w.KernelH-1)*w.DilationH+1, (out.Dim[2]-1)*w.StrideW+(w.KernelW-1)*w.DilationW+1
	padded := h > in.Dim[1] || v > in.Dim[2] || d.Top != 0 || d.Left != 0
	return h, v, padded && w.IsNarrow(out.Dim[2]) &&
		graph.Times(in.Dim[0], h, v, in.Dim[3]) <= graph.Times(graph.MaxPadded, in.Numel())
}

// copyPadded replaces the input by a padded copy if that is faster and the copy is not too large. pad
// fills it.
func (d *depthwiseLines) copyPadded(e *Unit) {
	d.copied = nil
	h, v, ok := d.paddedSize()
	if !ok {
		return
	}
	d.plain = d.windowRows
	d.In.Dim[1], d.In.Dim[2], d.Top, d.Left = h, v, 0, 0
	e.staged = grow(e.staged, 4*d.In.Numel())
	d.copied = tensor.View[float32](e.staged)[:d.In.Numel()]
	d.x = d.copied
}

// pad copies the input into the padded copy, if there is one, which other nodes overwrite.
func (d *depthwiseLines) pad() {
	if d.copied == nil {
		return
	}
	from, c := &d.plain, d.In.Dim[3]
	lines, left := min(from.In.Dim[1], d.In.Dim[1]-from.Top), from.Left*c
	n, width := min(from.In.Dim[2]*c, d.In.Dim[2]*c-left), d.In.Dim[2]*c
	for at := range d.In.Leading(2) {
		to, y := d.copied[at*width:][:width], at%d.In.Dim[1]-from.Top
		if y < 0 || y >= lines {
			clear(to)
			continue
		}
		clear(to[:left])
		copy(to[left:][:n], from.x[(at/d.In.Dim[1]*from.In.Dim[1]+y)*from.In.Dim[2]*c:])
		clear(to[left+n:])
	}
}

// finished is about how many elements of the output a merged function is applied to at a time: they stay in the
// first-level cache.
const finished = 2048

// Range computes lines [lo, hi) of the output, counted over all images.
func (d *depthwiseLines) Range(worker, lo, hi int) {
	size := d.Out.Dim[2] * d.Out.Dim[3]
	for n := max(1, finished/max(size, 1)); lo < hi; lo += n {
		n = min(n, hi-lo)
		for line := lo; line < lo+n; line++ {
			d.line(d.work[worker], line)
		}
		finishNode(d.node, d.y[lo*size:], n*d.Out.Dim[2], d.Out.Dim[3], 0, d.Out.Dim[3])
	}
}

// line computes a line in runs of pixels whose windows have the same taps in the input.
func (d *depthwiseLines) line(lists tapLists, line int) {
	w, width, c := d.W, d.Out.Dim[2], d.Out.Dim[3]
	y := line%d.Out.Dim[1]*w.StrideH - d.Top
	rows := tapsAt(y, w.KernelH, w.DilationH, d.In.Dim[1])
	first := line / d.Out.Dim[1] * d.In.Dim[1] // the image's first line
	for ox := 0; ox < width; {
		cols := tapsAt(ox*w.StrideW-d.Left, w.KernelW, w.DilationW, d.In.Dim[2])
		run, at := d.alike(ox, cols), 0
		if rows.len()*cols.len() > 0 {
			at = ((first+rows.place(rows.lo))*d.In.Dim[2] + cols.place(cols.lo)) * c
		}
		list := d.list(lists, rows, cols)
		simd.ChannelTaps(d.y[(line*width+ox)*c:], d.x[at:], d.taps, d.bias, list.x, list.w,
			run, c, c, w.StrideW*c, d.node.Min, d.node.Max)
		ox += run
	}
}

// list returns the list of the given taps, from the cache if possible.
func (d *depthwiseLines) list(lists tapLists, rows, cols taps) *tapList {
	has := [2][2]int{{rows.lo, rows.hi}, {cols.lo, cols.hi}}
	l := &lists[(rows.lo+rows.hi)%d.sides[0]*d.sides[1]+(cols.lo+cols.hi)%d.sides[1]]
	if l.rows == has[0] && l.cols == has[1] {
		return l
	}
	l.rows, l.cols = has[0], has[1]
	w, c := d.W, d.Out.Dim[3]
	l.x, l.w = l.x[:0], l.w[:0]
	for ky := rows.lo; ky < rows.hi; ky++ {
		for kx := cols.lo; kx < cols.hi; kx++ {
			l.x = append(l.x, ((ky-rows.lo)*w.DilationH*d.In.Dim[2]+(kx-cols.lo)*w.DilationW)*c)
			l.w = append(l.w, (ky*w.KernelW+kx)*c)
		}
	}
	return l
}

// depthwiseWork is of depthwise convolutions: lists of taps, copies of the filter and bias of few channels, and a padded copy
// of the input.
func depthwiseWork(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	if n.Window().GroupOut > 1 {
		windowWork(w, g, n, s, threads)
		return
	}
	runtimeFilter(w, g, n, s)
	d := depthwiseLines{windowRows: windowRows{WindowGrid: n.Windows(s[n.In[0]], s[n.Out[0]])}}
	taps := d.W.KernelH * d.W.KernelW
	sides := d.listSides(taps)
	w.kept = graph.Plus(w.kept, graph.Times(threads, sides[0]*sides[1], 16*taps))
	if c := d.Out.Dim[3]; c < simd.ChannelLanes {
		w.kept = graph.Plus(w.kept, graph.Times(4, (taps+1)*c+2*simd.ChannelLanes))
	}
	if h, v, ok := d.paddedSize(); ok {
		w.staged = max(w.staged, graph.Times(4, d.In.Dim[0], h, v, d.In.Dim[3]))
	}
}
