package goengine

import (
	"time"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// linePool computes lines of a pool's output. It first combines the rows of a line's windows, over
// their whole length, then the columns.
type linePool struct {
	windowRows
	node         *graph.Node
	y            []float32
	average      bool
	combine      func(dst, a, b []float32)
	across       func(y, x []float32, off []int, rows, n, ys, xs int)
	off          []int // offsets of the columns of a window
	e            *Unit
	lines, grain int
}

func (e *Unit) averagePool(n *graph.Node) { e.pool2d(n, true) }

func (e *Unit) maxPool(n *graph.Node) {
	if !e.int8MaxPool(n) {
		e.pool2d(n, false)
	}
}

func (e *Unit) pool2d(n *graph.Node, average bool) {
	p, stale := loopOf[linePool](e, n, e.direct[n.At])
	if stale {
		p.average = average
		p.set(e, n)
	}
	e.Parallel(p.lines, p.grain, p)
	e.store(n.Out[0])
}

func (p *linePool) set(e *Unit, n *graph.Node) {
	p.windowRows = e.windowsOf(n)
	w, in, out := p.W, &p.In, &p.Out
	p.node, p.y, p.combine, p.across = n, e.result(n.Out[0]), simd.Maximum, simd.MaxTaps[float32]
	if p.average {
		p.combine, p.across = simd.Add, simd.SumTaps[float32]
	}
	p.off = grow(p.off, w.KernelW)
	for k := range p.off {
		p.off[k] = k * w.DilationW * in.Dim[3]
	}
	e.reserve(in.Dim[2] * in.Dim[3])
	p.e, p.lines = e, out.Leading(2)
	p.grain = 1 + elementsPerRange/max(1, in.Dim[2]*in.Dim[3]*(min(w.KernelH, in.Dim[1])+w.KernelW))
}

// Range computes lines [lo, hi) of the output, counted over all images.
func (p *linePool) Range(worker, lo, hi int) {
	for line := lo; line < hi; line++ {
		p.line(p.e.lines[worker][:p.In.Dim[2]*p.In.Dim[3]], line)
	}
}

func (p *linePool) line(sums []float32, line int) {
	w, width, c := p.W, p.Out.Dim[2], p.Out.Dim[3]
	y := p.y[line*width*c:][:width*c]
	rows := tapsAt(line%p.Out.Dim[1]*w.StrideH-p.Top, w.KernelH, w.DilationH, p.In.Dim[1])
	if rows.len() == 0 {
		p.empty(y)
		return
	}
	image, pitch := line/p.Out.Dim[1]*p.In.Dim[1], p.In.Dim[2]*c
	first := p.x[(image+rows.place(rows.lo))*pitch:][:pitch]
	for ky := rows.lo + 1; ky < rows.hi; ky++ {
		p.e.run.Poll()
		p.combine(sums, first, p.x[(image+rows.place(ky))*pitch:][:pitch])
		first = sums
	}
	for ox := 0; ox < width; {
		p.e.run.Poll()
		cols := tapsAt(ox*w.StrideW-p.Left, w.KernelW, w.DilationW, p.In.Dim[2])
		run := p.alike(ox, cols)
		p.columns(y[ox*c:][:run*c], first, cols)
		if p.average {
			simd.ScaleShift(y[ox*c:][:run*c], y[ox*c:][:run*c], 1/float32(max(1, rows.len()*cols.len())), 0)
		}
		ox += run
	}
	boundFloats(p.node, y)
}

// columns combines the columns of windows in a line.
func (p *linePool) columns(y, line []float32, cols taps) {
	c := p.Out.Dim[3]
	if cols.len() == 0 {
		p.empty(y)
		return
	}
	x, off := line[cols.place(cols.lo)*c:], p.off[:cols.len()]
	if p.W.StrideW == 1 { // adjacent pixels are one run
		p.across(y, x, off, 1, len(y), len(y), 0)
		return
	}
	p.across(y, x, off, len(y)/c, c, c, p.W.StrideW*c)
}

// empty sets y to the result of windows outside of the input.
func (p *linePool) empty(y []float32) {
	value := graph.Lowest
	if p.average {
		value = 0
	}
	simd.Fill(y, value)
	boundFloats(p.node, y)
}

// pooled is the input of a pool and one of its windows, with rows h and columns v.
type pooled struct {
	x     []float32
	in    graph.Shape
	image int
	h, v  taps
}

// row returns the input from column v.lo of the window's row k.
func (p *pooled) row(k int) []float32 {
	c := p.in.Dim[3]
	at := (p.image*p.in.Dim[1]+p.h.place(k))*p.in.Dim[2] + p.v.place(p.v.lo)
	return p.x[at*c:]
}

// forWindows calls visit for every output pixel with its window.
func (e *Unit) forWindows(n *graph.Node, visit func(out int, p *pooled)) {
	w, out := n.Window(), e.Shapes[n.Out[0]]
	e.pooled = pooled{x: e.load(0, n.In[0]), in: e.Shapes[n.In[0]]}
	p := &e.pooled
	top, left := n.Padding(p.in.Dim[1], p.in.Dim[2])
	for at := range out.Leading(3) {
		ox, oy := at%out.Dim[2], at/out.Dim[2]%out.Dim[1]
		p.image = at / out.Dim[2] / out.Dim[1]
		p.h = tapsAt(oy*w.StrideH-top, w.KernelH, w.DilationH, p.in.Dim[1])
		p.v = tapsAt(ox*w.StrideW-left, w.KernelW, w.DilationW, p.in.Dim[2])
		visit(at, p)
	}
}

// argmaxPool selects the first of equal maxima, column by column in the window.
func (e *Unit) argmaxPool(n *graph.Node) {
	y, c, height := e.result(n.Out[0]), e.Shapes[n.In[0]].Dim[3], n.Window().KernelH
	index := tensor.View[int32](e.Bytes[n.Out[1]])
	e.forWindows(n, func(out int, p *pooled) {
		for i := range c {
			e.run.Poll()
			best, tap := graph.Lowest, -1
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

// maxPoolTime limits the time of the pools of a graph, far above that of any model. Large windows
// do not need a large file.
const maxPoolTime = 10 * time.Second

// checkPools returns an error if the pools of a graph take too long.
func checkPools(g *graph.Graph, s []graph.Shape) error {
	total := int64(0)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Window() == nil || n.Type.Convolution {
			continue
		}
		if total = graph.Plus(total, poolTime(n, s)); total > int64(maxPoolTime) {
			return graph.Unsupported(n.Location(), "windows that take about %v to pool, at most %v", time.Duration(total), maxPoolTime)
		}
	}
	return nil
}

// poolTime estimates the time of a pool in the Go engine, in nanoseconds.
func poolTime(n *graph.Node, s []graph.Shape) int64 {
	w, in, out := n.Window(), s[n.In[0]], s[n.Out[0]]
	rows, cols, c := min(w.KernelH, in.Dim[1]), min(w.KernelW, in.Dim[2]), in.Dim[3]
	line := graph.Times(cols, 8+c/4)
	if c == 1 {
		line = int64(8 + 2*cols)
	}
	return graph.Times(out.Leading(3), rows, int(min(line, graph.MaxElements)))
}

// globalMean computes the mean over all pixels of each image.
type globalMean struct {
	node   *graph.Node
	x, y   []float32
	c      int
	pixels []int // their offsets in an image
}

func (e *Unit) globalPool(n *graph.Node) {
	p, stale := loopOf[globalMean](e, n, e.direct[n.At])
	if stale {
		in := e.Shapes[n.In[0]]
		p.node, p.x, p.y, p.c = n, e.load(0, n.In[0]), e.result(n.Out[0]), in.Dim[3]
		p.pixels = grow(p.pixels, in.Dim[1]*in.Dim[2])
		for i := range p.pixels {
			p.pixels[i] = i * p.c
		}
	}
	e.Parallel(len(p.y)/p.c, 1+elementsPerRange/(p.c*len(p.pixels)), p)
	e.store(n.Out[0])
}

// Range computes images [lo, hi).
func (p *globalMean) Range(_, lo, hi int) {
	for image := lo; image < hi; image++ {
		row := p.y[image*p.c:][:p.c]
		simd.SumTaps(row, p.x[image*p.c*len(p.pixels):], p.pixels, 1, p.c, p.c, p.c)
		simd.ScaleShift(row, row, 1/float32(len(p.pixels)), 0)
		boundFloats(p.node, row)
	}
}

// softmaxRows computes the softmax of rows.
type softmaxRows struct {
	x, y []float32
	c    int
}

func (e *Unit) softmax(n *graph.Node) {
	s, stale := loopOf[softmaxRows](e, n, e.direct[n.At])
	if stale {
		*s = softmaxRows{x: e.load(0, n.In[0]), y: e.result(n.Out[0]), c: e.Shapes[n.In[0]].Last()}
	}
	e.Parallel(len(s.y)/s.c, 1+elementsPerRange/(8*s.c), s)
	e.store(n.Out[0])
}

// Range computes rows [lo, hi).
func (s *softmaxRows) Range(_, lo, hi int) {
	simd.SoftmaxRows(s.y[lo*s.c:hi*s.c], s.x[lo*s.c:hi*s.c], s.c)
}
