package xnnpack

import (
	"math"
	"time"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// taps are the elements of a window that lie inside the input, along one dimension:
// numbers lo to hi, of which number k is at place from + k·step.
type taps struct{ from, step, lo, hi int }

// tapsAt clips a window of n elements, steps apart, that begins at a place of an input of
// the given size.
func tapsAt(from, n, step, size int) taps {
	t := taps{from: from, step: step, hi: min(n, ceilDiv(max(size-from, 0), step))}
	if from < 0 {
		t.lo = ceilDiv(-from, step)
	}
	return t
}

func (t taps) len() int { return max(t.hi-t.lo, 0) }

// place is where element k is.
func (t taps) place(k int) int { return t.from + k*t.step }

// pooled is the input of a pool and one of its windows: rows h and columns v.
type pooled struct {
	x     []float32
	in    shape
	image int
	h, v  taps
}

// row is the input from column v.lo of the window's row k on.
func (p *pooled) row(k int) []float32 {
	c := p.in.dim[3]
	at := (p.image*p.in.dim[1]+p.h.place(k))*p.in.dim[2] + p.v.place(p.v.lo)
	return p.x[at*c:]
}

// forWindows calls visit for every output pixel with its window.
func (e *reference) forWindows(n *node, visit func(out int, p *pooled)) {
	w, out := n.window(), e.shapes[n.Out[0]]
	e.pooled = pooled{x: e.load(0, n.In[0]), in: e.shapes[n.In[0]]}
	p := &e.pooled
	top, left := n.padding(p.in.dim[1], p.in.dim[2])
	for at := range out.leading(3) {
		ox, oy := at%out.dim[2], at/out.dim[2]%out.dim[1]
		p.image = at / out.dim[2] / out.dim[1]
		p.h = tapsAt(oy*w.strideH-top, w.kernelH, w.dilationH, p.in.dim[1])
		p.v = tapsAt(ox*w.strideW-left, w.kernelW, w.dilationW, p.in.dim[2])
		visit(at, p)
	}
}

// reduce combines the window's pixels into dst, which has the channels: each for a pixel,
// line for every step-th number where there is one channel.
func (p *pooled) reduce(dst []float32, each func(dst, pixel []float32), line func(dst, x []float32, step int)) {
	c, n := len(dst), p.v.len()
	if n == 0 {
		return
	}
	for k := p.h.lo; k < p.h.hi; k++ {
		row := p.row(k)
		if c == 1 {
			line(dst, row[:(n-1)*p.v.step+1], p.v.step)
			continue
		}
		for i := range n {
			each(dst, row[i*p.v.step*c:][:c])
		}
	}
}

func addPixel(dst, pixel []float32) { simd.Axpy(dst, pixel, 1) }
func maxPixel(dst, pixel []float32) { simd.Maximum(dst, dst, pixel) }

func addLine(dst, x []float32, step int) {
	if step == 1 {
		dst[0] += simd.Sum(x)
		return
	}
	sum := dst[0]
	for i := 0; i < len(x); i += step {
		sum += x[i]
	}
	dst[0] = sum
}

func maxLine(dst, x []float32, step int) {
	if step == 1 {
		dst[0] = max(dst[0], simd.Max(x))
		return
	}
	best := dst[0]
	for i := 0; i < len(x); i += step {
		best = max(best, x[i])
	}
	dst[0] = best
}

// averagePool is the mean of each window's elements inside the input.
func (e *reference) averagePool(n *node) {
	y, c := e.result(n.Out[0]), e.shapes[n.In[0]].dim[3]
	e.forWindows(n, func(out int, p *pooled) {
		row := y[out*c:][:c]
		clear(row)
		p.reduce(row, addPixel, addLine)
		simd.ScaleShift(row, row, 1/float32(max(1, p.h.len()*p.v.len())), 0)
		n.bound(row)
	})
	e.store(n.Out[0])
}

func (e *reference) maxPool(n *node) {
	y, c := e.result(n.Out[0]), e.shapes[n.In[0]].dim[3]
	e.forWindows(n, func(out int, p *pooled) {
		row := y[out*c:][:c]
		simd.Fill(row, lowest)
		p.reduce(row, maxPixel, maxLine)
		n.bound(row)
	})
	e.store(n.Out[0])
}

// argmaxPool takes the first of equal maxima, counted down the window's columns.
func (e *reference) argmaxPool(n *node) {
	y, c, height := e.result(n.Out[0]), e.shapes[n.In[0]].dim[3], n.window().kernelH
	index := tensor.View[int32](e.bytes[n.Out[1]])
	e.forWindows(n, func(out int, p *pooled) {
		for i := range c {
			best, tap := lowest, -1
			for kx := range p.v.len() {
				for ky := p.h.lo; ky < p.h.hi; ky++ {
					if v := p.row(ky)[kx*p.v.step*c+i]; tap < 0 || v > best {
						best, tap = v, (p.v.lo+kx)*height+ky
					}
				}
			}
			y[out*c+i], index[out*c+i] = best, int32(max(tap, 0))
		}
	})
	e.store(n.Out[0])
}

// maxPoolTime bounds the pools of a graph, whose windows cost no byte of its file: far
// beyond any model.
const maxPoolTime = 10 * time.Second

// checkPools refuses a graph whose pools take too long.
func (g *graph) checkPools(s []shape) error {
	total := int64(0)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.window() == nil || n.Type.convolution {
			continue
		}
		if total = plus(total, poolTime(n, s)); total > int64(maxPoolTime) {
			return unsupported(n.place(), "windows that take about %v to pool, at most %v", time.Duration(total), maxPoolTime)
		}
	}
	return nil
}

// poolTime estimates how long the Go engine takes for a pool, in nanoseconds.
func poolTime(n *node, s []shape) int64 {
	w, in, out := n.window(), s[n.In[0]], s[n.Out[0]]
	rows, cols, c := min(w.kernelH, in.dim[1]), min(w.kernelW, in.dim[2]), in.dim[3]
	line := times(cols, 8+c/4)
	if c == 1 {
		line = int64(8 + 2*cols)
	}
	return times(out.leading(3), rows, int(min(line, 1<<40)))
}

// globalPool is the mean over all pixels of an image.
func (e *reference) globalPool(n *node) {
	in := e.shapes[n.In[0]]
	x, y, c, pixels := e.load(0, n.In[0]), e.result(n.Out[0]), in.dim[3], in.dim[1]*in.dim[2]
	for image := range in.dim[0] {
		row := y[image*c:][:c]
		clear(row)
		for p := range pixels {
			simd.Axpy(row, x[(image*pixels+p)*c:][:c], 1)
		}
		simd.ScaleShift(row, row, 1/float32(pixels), 0)
		n.bound(row)
	}
	e.store(n.Out[0])
}

// softmax of each row.
func (e *reference) softmax(n *node) {
	x, y := e.load(0, n.In[0]), e.result(n.Out[0])
	c := e.shapes[n.In[0]].last()
	for r := 0; r < len(x); r += c {
		src, dst := x[r:r+c], y[r:r+c]
		sum := simd.ExpSum(dst, src, simd.Max(src))
		simd.ScaleShift(dst, dst, 1/sum, 0)
	}
	e.store(n.Out[0])
}

// resize interpolates between the four nearest pixels.
func (e *reference) resize(n *node) {
	in, out := e.shapes[n.In[0]], e.shapes[n.Out[0]]
	x, y, c := e.load(0, n.In[0]), e.result(n.Out[0]), in.dim[3]
	for image := range in.dim[0] {
		for oy := range out.dim[1] {
			y0, y1, fy := n.sample(oy, in.dim[1], out.dim[1])
			for ox := range out.dim[2] {
				x0, x1, fx := n.sample(ox, in.dim[2], out.dim[2])
				at := func(iy, ix int) []float32 { return x[((image*in.dim[1]+iy)*in.dim[2]+ix)*c:][:c] }
				a, b, d, f := at(y0, x0), at(y0, x1), at(y1, x0), at(y1, x1)
				row := y[((image*out.dim[1]+oy)*out.dim[2]+ox)*c:][:c]
				for i := range row {
					upper := a[i] + float32((b[i]-a[i])*fx)
					lower := d[i] + float32((f[i]-d[i])*fx)
					row[i] = upper + float32((lower-upper)*fy)
				}
			}
		}
	}
	e.store(n.Out[0])
}

// sample is where output pixel o of m lies among in input pixels: between two of them,
// and how far from the first.
func (n *node) sample(o, in, m int) (lo, hi int, frac float32) {
	scale := float32(in) / float32(m)
	if n.Flags&flagAlignCorners != 0 && m != 1 {
		scale = float32(in-1) / float32(m-1)
	}
	at := float32(o) * scale
	if n.Flags&(flagAlignCorners|flagLegacyResize) == 0 {
		at = max(0, float32((float32(o)+0.5)*scale)-0.5)
	}
	floor := float32(math.Floor(float64(at)))
	lo = min(int(floor), in-1)
	return lo, min(lo+1, in-1), at - floor
}
