package xnnpack

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// floatDepthwise computes a depthwise convolution. With several output channels per input channel, it
// is a grouped convolution with one input channel per group.
func (e *reference) floatDepthwise(n *node) {
	if n.window().groupOut > 1 {
		e.floatConvolution(n)
		return
	}
	d, stale := loopOf[depthwiseLines](e, n, e.direct[n.at])
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
	node   *node
	filter *floatFilter
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

func (d *depthwiseLines) set(e *reference, n *node) {
	d.windowRows = e.windowsOf(n)
	d.node, d.filter, d.y = n, e.filterOf(n), e.result(n.Out[0])
	taps := d.w.kernelH * d.w.kernelW
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
	d.lines, d.grain = d.out.leading(2), 1+macsPerRange/8/max(1, d.out.dim[2]*d.out.dim[3]*taps)
}

// listSides returns the value of sides for so many taps.
func (d *depthwiseLines) listSides(taps int) (sides [2]int) {
	for i, n := range d.out.dim[1:3] {
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
	w, in, out := d.w, d.in, d.out
	h, v = (out.dim[1]-1)*w.strideH+(w.kernelH-1)*w.dilationH+1, (out.dim[2]-1)*w.strideW+(w.kernelW-1)*w.dilationW+1
	padded := h > in.dim[1] || v > in.dim[2] || d.top != 0 || d.left != 0
	return h, v, padded && w.isNarrow(out.dim[2]) &&
		times(in.dim[0], h, v, in.dim[3]) <= times(maxPadded, in.numel())
}

// copyPadded replaces the input by a padded copy if that is faster and the copy is not too large. pad
// fills it.
func (d *depthwiseLines) copyPadded(e *reference) {
	d.copied = nil
	h, v, ok := d.paddedSize()
	if !ok {
		return
	}
	d.plain = d.windowRows
	d.in.dim[1], d.in.dim[2], d.top, d.left = h, v, 0, 0
	e.staged = grow(e.staged, 4*d.in.numel())
	d.copied = tensor.View[float32](e.staged)[:d.in.numel()]
	d.x = d.copied
}

// pad copies the input into the padded copy, if there is one, which other nodes overwrite.
func (d *depthwiseLines) pad() {
	if d.copied == nil {
		return
	}
	from, c := &d.plain, d.in.dim[3]
	lines, left := min(from.in.dim[1], d.in.dim[1]-from.top), from.left*c
	n, width := min(from.in.dim[2]*c, d.in.dim[2]*c-left), d.in.dim[2]*c
	for at := range d.in.leading(2) {
		to, y := d.copied[at*width:][:width], at%d.in.dim[1]-from.top
		if y < 0 || y >= lines {
			clear(to)
			continue
		}
		clear(to[:left])
		copy(to[left:][:n], from.x[(at/d.in.dim[1]*from.in.dim[1]+y)*from.in.dim[2]*c:])
		clear(to[left+n:])
	}
}

// finished is about how many elements of the output a merged function is applied to at a time: they stay in the
// first-level cache.
const finished = 2048

// Range computes lines [lo, hi) of the output, counted over all images.
func (d *depthwiseLines) Range(worker, lo, hi int) {
	size := d.out.dim[2] * d.out.dim[3]
	for n := max(1, finished/max(size, 1)); lo < hi; lo += n {
		n = min(n, hi-lo)
		for line := lo; line < lo+n; line++ {
			d.line(d.work[worker], line)
		}
		finishNode(d.node, d.y[lo*size:], n*d.out.dim[2], d.out.dim[3], 0, d.out.dim[3])
	}
}

// line computes a line in runs of pixels whose windows have the same taps in the input.
func (d *depthwiseLines) line(lists tapLists, line int) {
	w, width, c := d.w, d.out.dim[2], d.out.dim[3]
	y := line%d.out.dim[1]*w.strideH - d.top
	rows := tapsAt(y, w.kernelH, w.dilationH, d.in.dim[1])
	first := line / d.out.dim[1] * d.in.dim[1] // the image's first line
	for ox := 0; ox < width; {
		cols := tapsAt(ox*w.strideW-d.left, w.kernelW, w.dilationW, d.in.dim[2])
		run, at := d.alike(ox, cols), 0
		if rows.len()*cols.len() > 0 {
			at = ((first+rows.place(rows.lo))*d.in.dim[2] + cols.place(cols.lo)) * c
		}
		list := d.list(lists, rows, cols)
		simd.ChannelTaps(d.y[(line*width+ox)*c:], d.x[at:], d.filter.taps, d.filter.bias, list.x, list.w,
			run, c, c, w.strideW*c, d.node.Min, d.node.Max)
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
	w, c := d.w, d.out.dim[3]
	l.x, l.w = l.x[:0], l.w[:0]
	for ky := rows.lo; ky < rows.hi; ky++ {
		for kx := cols.lo; kx < cols.hi; kx++ {
			l.x = append(l.x, ((ky-rows.lo)*w.dilationH*d.in.dim[2]+(kx-cols.lo)*w.dilationW)*c)
			l.w = append(l.w, (ky*w.kernelW+kx)*c)
		}
	}
	return l
}
