package xnnpack

import (
	"github.com/etrun-go/etrun/internal/simd"
)

// floatConvolution multiplies the windows of output pixels by the filter.
func (e *reference) floatConvolution(n *node) {
	l, stale := loopOf[windowProduct](e, n, e.direct[n.at])
	if stale {
		l.set(e, n)
	}
	if l.byLine {
		e.Parallel(l.units, l.grain, &l.lines)
	} else {
		l.run()
	}
	e.store(n.Out[0])
}

// windowProduct is a convolution: rows of its product are windows.
type windowProduct struct {
	floatProduct
	pixels  matrix // where windows are pixels
	windows windowRows
	lines   lineProduct
	byLine  bool
}

func (l *windowProduct) set(e *reference, n *node) {
	w, in, out, p := n.window(), e.shapes[n.In[0]], e.shapes[n.Out[0]], &l.floatProduct
	p.node, p.filter, p.groups = n, e.filterOf(n), w.groups
	p.x, p.y, p.rows = e.load(0, n.In[0]), e.result(n.Out[0]), out.leading(3)
	top, left := n.padding(in.dim[1], in.dim[2])
	l.windows = windowRows{w: w, in: in, out: out, top: top, left: left, x: p.x}
	p.source = &l.windows
	if l.windows.isPointwise() {
		l.pixels = matrix{x: p.x, ld: in.dim[3], k: w.groupIn}
		p.source = &l.pixels
	}
	p.plan(e)
	if l.byLine = p.source == &l.windows && l.windows.inner() >= fewInner; l.byLine {
		l.lines = lineProduct{&l.windows, p}
		l.lines.plan(e)
	}
}

// isPointwise reports windows that are one pixel each, in order.
func (s *windowRows) isPointwise() bool {
	w := s.w
	return w.kernelH*w.kernelW*w.strideH*w.strideW == 1 && s.in.dim[1] == s.out.dim[1] && s.in.dim[2] == s.out.dim[2] && s.top+s.left == 0
}

// fewInner is how many pixels of a line have to have all their taps inside of the input for
// lines to be computed from where the input lies: tiles of rows are used well then.
const fewInner = 12

// inner is how many pixels of a line have all taps of a row of the kernel in the input.
func (s *windowRows) inner() int {
	first := ceilDiv(s.left, s.w.strideW)
	return min((s.in.dim[2]-1-(s.w.kernelW-1)*s.w.dilationW+s.left)/s.w.strideW, s.out.dim[2]-1) - first + 1
}

// lineProduct computes lines of a convolution's output: for each row of the kernel the
// taps side by side in the input are rows of a product as they lie there.
type lineProduct struct {
	*windowRows
	*floatProduct
}

// plan cuts the work into lines.
func (l *lineProduct) plan(e *reference) {
	p, m := l.floatProduct, l.filter.panels[0]
	p.tiles, p.parts = l.out.leading(2), 1
	macs := max(1, l.out.dim[2]*m.N*m.K)
	if p.tiles*p.groups < 2*e.threads() {
		p.parts = min(m.Panels(), 2*e.threads())
	}
	p.units, p.grain = p.tiles*p.groups*p.parts, 1+macsPerRange*p.parts/macs
}

// Range computes lines [lo, hi).
func (l *lineProduct) Range(_, lo, hi int) {
	for t := lo; t < hi; t++ {
		part, rest := t%l.parts, t/l.parts
		l.line(rest%l.tiles, rest/l.tiles, part)
	}
}

// line computes a part of the channels of a group in a line, in runs of pixels that have the
// same taps in the input.
func (l *lineProduct) line(line, group, part int) {
	m, width := l.filter.panels[group], l.out.dim[2]
	from, to := m.Panels()*part/l.parts, m.Panels()*(part+1)/l.parts
	rows := tapsAt(line%l.out.dim[1]*l.w.strideH-l.top, l.w.kernelH, l.w.dilationH, l.in.dim[1])
	for ox := 0; ox < width; {
		cols := tapsAt(ox*l.w.strideW-l.left, l.w.kernelW, l.w.dilationW, l.in.dim[2])
		run := l.alike(ox, cols)
		l.pixels(line, ox, run, group, from, to, rows, cols)
		ox += run
	}
}

// pixels computes a run of pixels.
func (l *lineProduct) pixels(line, ox, run, group, from, to int, rows, cols taps) {
	w, m, c, ldc := l.w, l.filter.panels[group], l.in.dim[3], l.out.dim[3]
	bias, y := l.filter.bias[group*m.N:], l.y[(line*l.out.dim[2]+ox)*ldc+group*m.N:]
	together := 1 // taps at once
	if w.dilationW == 1 && w.groups == 1 {
		together = cols.len()
	}
	image := line / l.out.dim[1] * l.in.dim[1]
	start, lds, lo, hi := bias, 0, -inf, inf
	for ky := rows.lo; ky < rows.hi; ky++ {
		for kx := cols.lo; kx < cols.hi; kx += together {
			if ky == rows.hi-1 && kx+together >= cols.hi {
				lo, hi = l.node.Min, l.node.Max
			}
			a := l.windowRows.x[((image+rows.place(ky))*l.in.dim[2]+cols.place(kx))*c+group*w.groupIn:]
			m.MulAdd(run, (ky*w.kernelW+kx)*w.groupIn, together*w.groupIn, a, w.strideW*c, start, lds, y, ldc, lo, hi, from, to)
			start, lds = y, ldc
		}
	}
	if rows.len()*cols.len() == 0 {
		m.MulAdd(run, 0, 0, nil, 0, bias, 0, y, ldc, l.node.Min, l.node.Max, from, to)
	}
}

// windowRows are the windows of a convolution's output pixels over an input
// [N, H, W, groups·groupIn]. Elements outside of it are 0.
type windowRows struct {
	w         *window
	in, out   shape
	top, left int
	x         []float32
}

func (s *windowRows) dense(int, int) ([]float32, int) { return nil, 0 }

// gather copies what taps read, whole taps or parts of them.
func (s *windowRows) gather(dst []float32, group, p, rows, k, n int) {
	for i := range rows {
		s.window(dst[i*n:][:n], group, p+i, k)
	}
}

// window copies elements [k, k+len(dst)) of the window of an output pixel: taps side by side
// at once where they are in the input.
func (s *windowRows) window(dst []float32, group, at, k int) {
	w, c := s.w, s.in.dim[3]
	ox, rest := at%s.out.dim[2], at/s.out.dim[2]
	image, y0, x0 := rest/s.out.dim[1], rest%s.out.dim[1]*w.strideH-s.top, ox*w.strideW-s.left
	for len(dst) > 0 {
		tap, from := k/w.groupIn, k%w.groupIn
		ky, kx := tap/w.kernelW, tap%w.kernelW
		y, x := y0+ky*w.dilationH, x0+kx*w.dilationW
		n := min(w.groupIn-from, len(dst))
		switch {
		case uint(y) >= uint(s.in.dim[1]): // the rest of a row of taps
			n = min((w.kernelW-kx)*w.groupIn-from, len(dst))
			clear(dst[:n])
		case uint(x) >= uint(s.in.dim[2]):
			clear(dst[:n])
		default:
			if w.dilationW == 1 && w.groups == 1 {
				n = min(min(w.kernelW-kx, s.in.dim[2]-x)*c-from, len(dst))
			}
			copy(dst[:n], s.x[((image*s.in.dim[1]+y)*s.in.dim[2]+x)*c+group*w.groupIn+from:])
		}
		dst, k = dst[n:], k+n
	}
}

// floatDepthwise sums the taps of each channel. Where a channel has several output channels,
// it is a convolution of groups of one channel.
func (e *reference) floatDepthwise(n *node) {
	if n.window().groupOut > 1 {
		e.floatConvolution(n)
		return
	}
	d, stale := loopOf[depthwiseLines](e, n, e.direct[n.at])
	if stale {
		d.set(e, n)
	}
	e.Parallel(d.lines, d.grain, d)
	e.store(n.Out[0])
}

func (d *depthwiseLines) set(e *reference, n *node) {
	w, in, out := n.window(), e.shapes[n.In[0]], e.shapes[n.Out[0]]
	top, left := n.padding(in.dim[1], in.dim[2])
	d.windowRows = windowRows{w: w, in: in, out: out, top: top, left: left, x: e.load(0, n.In[0])}
	d.node, d.filter, d.y = n, e.filterOf(n), e.result(n.Out[0])
	taps := w.kernelH * w.kernelW
	for len(d.work) < e.threads() {
		d.work = append(d.work, tapList{})
	}
	for i := range d.work {
		d.work[i].x, d.work[i].w = grow(d.work[i].x, taps), grow(d.work[i].w, taps)
	}
	d.lines, d.grain = out.leading(2), 1+macsPerRange/8/max(1, out.dim[2]*out.dim[3]*taps)
}

// depthwiseLines computes lines of a depthwise convolution's output.
type depthwiseLines struct {
	windowRows
	node   *node
	filter *floatFilter
	y      []float32
	work   []tapList

	lines, grain int // of the parallel loop
}

// tapList is where the taps of a window read the input and the filter.
type tapList struct{ x, w []int }

// Range computes lines [lo, hi) of the output, counted over all images.
func (d *depthwiseLines) Range(worker, lo, hi int) {
	for line := lo; line < hi; line++ {
		d.line(&d.work[worker], line)
	}
}

// line computes a line in runs of pixels whose windows lie in the input alike.
func (d *depthwiseLines) line(list *tapList, line int) {
	w, width, c := d.w, d.out.dim[2], d.out.dim[3]
	y := line%d.out.dim[1]*w.strideH - d.top
	rows := tapsAt(y, w.kernelH, w.dilationH, d.in.dim[1])
	first := line / d.out.dim[1] * d.in.dim[1] // the image's first line
	for ox := 0; ox < width; {
		cols := tapsAt(ox*w.strideW-d.left, w.kernelW, w.dilationW, d.in.dim[2])
		run := d.alike(ox, cols)
		x, taps := list.x[:0], list.w[:0]
		for ky := rows.lo; ky < rows.hi; ky++ {
			for kx := cols.lo; kx < cols.hi; kx++ {
				x = append(x, ((first+rows.place(ky))*d.in.dim[2]+cols.place(kx))*c)
				taps = append(taps, (ky*w.kernelW+kx)*c)
			}
		}
		simd.ChannelTaps(d.y[(line*width+ox)*c:], d.x, d.filter.taps, d.filter.bias, x, taps, run, c, c, w.strideW*c, d.node.Min, d.node.Max)
		ox += run
	}
}

// alike is for how many pixels from ox on windows have the same taps in the input as its own,
// which are cols.
func (s *windowRows) alike(ox int, cols taps) int {
	w := s.w
	if cols.len() < w.kernelW {
		return 1
	}
	// The last tap stays in the input up to this pixel.
	last := (s.in.dim[2] - 1 - (w.kernelW-1)*w.dilationW + s.left) / w.strideW
	return max(1, min(last, s.out.dim[2]-1)-ox+1)
}
