package xnnpack

import (
	"github.com/etrun-go/etrun/internal/simd"
)

// floatConvolution multiplies the windows of output pixels by the filter.
func (e *reference) floatConvolution(n *node) {
	w, in, out := n.window(), e.shapes[n.In[0]], e.shapes[n.Out[0]]
	p := &e.float
	p.node, p.filter, p.groups = n, e.filterOf(n), w.groups
	p.x, p.y, p.rows = e.load(0, n.In[0]), e.result(n.Out[0]), out.leading(3)
	top, left := n.padding(in.dim[1], in.dim[2])
	if w.kernelH*w.kernelW*w.strideH*w.strideW == 1 && top+left+w.bottom+w.right == 0 {
		e.dense = matrix{x: p.x, ld: in.dim[3], k: w.groupIn}
		p.source = &e.dense
	} else {
		e.windows = windowRows{w: w, in: in, out: out, top: top, left: left, x: p.x}
		p.source = &e.windows
	}
	p.run(e)
	e.store(n.Out[0])
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
	w, in, out := n.window(), e.shapes[n.In[0]], e.shapes[n.Out[0]]
	top, left := n.padding(in.dim[1], in.dim[2])
	d := &e.depthwises
	d.windowRows = windowRows{w: w, in: in, out: out, top: top, left: left, x: e.load(0, n.In[0])}
	d.node, d.filter, d.y = n, e.filterOf(n), e.result(n.Out[0])
	taps := w.kernelH * w.kernelW
	for len(d.work) < e.threads() {
		d.work = append(d.work, tapList{})
	}
	for i := range d.work {
		d.work[i].x, d.work[i].w = grow(d.work[i].x, taps), grow(d.work[i].w, taps)
	}
	lines := out.leading(2)
	e.Parallel(lines, 1+macsPerRange/8/max(1, out.dim[2]*out.dim[3]*taps), d)
	e.store(n.Out[0])
}

// depthwiseLines computes lines of a depthwise convolution's output.
type depthwiseLines struct {
	windowRows
	node   *node
	filter *floatFilter
	y      []float32
	work   []tapList
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
func (d *depthwiseLines) alike(ox int, cols taps) int {
	w := d.w
	if cols.len() < w.kernelW {
		return 1
	}
	// The last tap stays in the input up to this pixel.
	last := (d.in.dim[2] - 1 - (w.kernelW-1)*w.dilationW + d.left) / w.strideW
	return max(1, min(last, d.out.dim[2]-1)-ox+1)
}
