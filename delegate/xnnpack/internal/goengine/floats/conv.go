package floats

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/nhwc"
)

func (l *windowProduct) Compute(*frame.Frame, *graph.Node) {
	if !l.inBlocks || !l.blocks.run() {
		l.direct()
	}
}

// direct computes the convolution as it is defined.
func (l *windowProduct) direct() {
	if l.byLine {
		l.e.Parallel(l.units, l.grain, &l.lines)
	} else {
		l.multiplyAll()
	}
}

// windowProduct computes a convolution as a product whose rows are windows.
type windowProduct struct {
	floatProduct
	pixels  matrix // the source if windows are pixels
	windows windowRows
	lines   lineProduct
	byLine  bool
	// Blocks of 2×2 pixels take less time; the others remain for numbers that are not finite.
	blocks   winogradProduct
	inBlocks bool
}

// Convolution returns the loop of a convolution.
func Convolution(e *frame.Frame, n *graph.Node) frame.Loop { return e.OnFloats(n, &windowProduct{}) }

func (l *windowProduct) Bind(e *frame.Frame, n *graph.Node) {
	p := &l.floatProduct
	l.windows = windowsOf(e, n)
	p.node, p.filter, p.groups = n, filterOf(e, n), l.windows.W.Groups
	p.x, p.y, p.rows = l.windows.points.X, e.Result(n.Out[0]), l.windows.Out.Leading(3)
	p.source = &l.windows
	if l.windows.IsPointwise() {
		l.pixels = matrix{x: p.x, ld: l.windows.In.Dim[3], k: l.windows.W.GroupIn}
		p.source = &l.pixels
	}
	p.plan(e)
	if l.byLine = p.source == &l.windows && l.windows.ByLines(); l.byLine {
		l.lines.windowRows, l.lines.floatProduct = &l.windows, p
		l.lines.plan(e)
	}
	if l.inBlocks = p.filter.Winograd != nil && l.windows.Winograd(); l.inBlocks {
		l.blocks.windowRows, l.blocks.floatProduct = &l.windows, p
		l.blocks.plan(e)
	}
}

// lineProduct computes lines of a convolution's output. For each row of the kernel, contiguous taps
// in a line of the input are rows of a product, without gathering; those of all rows are the runs of
// one product if the filter is small. Lines are copied only if they need padding.
type lineProduct struct {
	*windowRows
	*floatProduct
	padding int // elements of a padded copy of a line, 0 for none
	block   int // output lines whose input lines are copied together, 0 if the rows of the kernel are separate products
}

// plan divides the work into lines, and lines into parts of the channels if lines are few.
func (l *lineProduct) plan(e *frame.Frame) {
	p, m, w := l.floatProduct, l.filter.Panels[0], l.W
	p.tiles, p.parts = l.Out.Leading(2), 1
	macs := max(1, l.Out.Dim[2]*m.N*m.K*w.Groups)
	if p.tiles < 2*e.Threads() {
		p.parts = min(m.Panels(), 2*e.Threads())
	}
	p.units, p.grain = p.tiles*p.parts, 1+macsPerRange*p.parts/macs
	l.padding, l.block = l.Copied(), l.windowRows.Block()
	e.Reserve(l.Copies())
}

// Range computes lines [lo, hi).
func (l *lineProduct) Range(worker, lo, hi int) {
	scratch := l.e.Workers[worker].Line
	for n, t := 1, lo; t < hi; t += n {
		line, part := t/l.parts, t%l.parts
		if l.block == 0 {
			l.line(scratch, line, part)
			continue
		}
		if l.parts == 1 {
			n = min(l.block, hi-t, l.Out.Dim[1]-line%l.Out.Dim[1])
		}
		l.lines(scratch, line, n, part)
	}
}

// lines computes n lines of an image, for a part of the channels.
func (l *lineProduct) lines(scratch []float32, line, n, part int) {
	w, m, c := l.W, l.filter.Panels[0], l.In.Dim[3]
	from, to := m.Panels()*part/l.parts, m.Panels()*(part+1)/l.parts
	image, oy, pitch, ldc := line/l.Out.Dim[1]*l.In.Dim[1], line%l.Out.Dim[1], l.In.Dim[2]*c, l.Out.Dim[3]
	x, first := l.points.X[image*pitch:], 0 // x starts with this line of the image
	if l.padding > 0 {
		first, pitch = oy*w.StrideH-l.Top, l.padding
		scratch = scratch[:l.LinesOf(n)*pitch]
		for y := max(0, first); y < min(l.In.Dim[1], first+l.LinesOf(n)); y++ {
			l.inputLine(scratch[(y-first)*pitch:], image+y)
		}
		x = scratch
	}
	for i := range n {
		top, lo, hi := l.points.Taps(1, oy+i)
		y, run, runs, at := l.y[(line+i)*l.Out.Dim[2]*ldc:], w.KernelW*w.GroupIn, hi-lo, 0
		if runs == 0 {
			run, runs = 0, 1
		} else {
			at = (top + lo*w.DilationH - first) * pitch
		}
		m.MulAddRuns(l.Out.Dim[2], lo*run, runs, run, x[at:], w.StrideW*c, w.DilationH*pitch,
			l.filter.Bias, 0, y, ldc, l.node.Min, l.node.Max, from, to)
	}
	finishPanels(l.node, m, l.y[line*l.Out.Dim[2]*ldc:], n*l.Out.Dim[2], ldc, from, to)
}

// line computes a line, for a part of the channels of each group.
func (l *lineProduct) line(scratch []float32, line, part int) {
	w, m := l.W, l.filter.Panels[0]
	from, to := m.Panels()*part/l.parts, m.Panels()*(part+1)/l.parts
	top, lo, hi := l.points.Taps(1, line%l.Out.Dim[1])
	for ky := lo; ky < hi; ky++ {
		x := l.inputLine(scratch, line/l.Out.Dim[1]*l.In.Dim[1]+top+ky*w.DilationH)
		for g := range w.Groups {
			l.multiply(x, line, g, ky, ky == lo, ky == hi-1, from, to)
		}
	}
	if lo == hi {
		y := l.y[line*l.Out.Dim[2]*l.Out.Dim[3]:]
		for g, m := range l.filter.Panels {
			m.MulAdd(l.Out.Dim[2], 0, 0, nil, 0, l.filter.Bias[g*m.N:], 0, y[g*m.N:], l.Out.Dim[3], l.node.Min, l.node.Max, from, to)
		}
	}
	for g, m := range l.filter.Panels {
		finishPanels(l.node, m, l.y[line*l.Out.Dim[2]*l.Out.Dim[3]+g*m.N:], l.Out.Dim[2], l.Out.Dim[3], from, to)
	}
}

// multiply adds the taps of row ky of the kernel for a group. The first row is added to the bias; the
// last result is clamped.
func (l *lineProduct) multiply(x []float32, line, group, ky int, first, last bool, from, to int) {
	w, m, c, ldc := l.W, l.filter.Panels[group], l.In.Dim[3], l.Out.Dim[3]
	y := l.y[line*l.Out.Dim[2]*ldc+group*m.N:]
	start, lds := y, ldc
	if first {
		start, lds = l.filter.Bias[group*m.N:], 0
	}
	run, lo, hi := w.ContiguousTaps(), -graph.Inf, graph.Inf
	for kx := 0; kx < w.KernelW; kx += run {
		if last && kx+run == w.KernelW {
			lo, hi = l.node.Min, l.node.Max
		}
		m.MulAdd(l.Out.Dim[2], (ky*w.KernelW+kx)*w.GroupIn, run*w.GroupIn, x[kx*w.DilationW*c+group*w.GroupIn:], w.StrideW*c,
			start, lds, y, ldc, lo, hi, from, to)
		start, lds = y, ldc
	}
}

// inputLine returns a line of the input with its padding, copied to scratch if it has any.
func (l *lineProduct) inputLine(scratch []float32, line int) []float32 {
	c, pitch := l.In.Dim[3], l.In.Dim[2]*l.In.Dim[3]
	x := l.points.X[line*pitch:][:pitch]
	if l.padding == 0 {
		return x
	}
	scratch = scratch[:l.padding]
	left := min(l.Left*c, l.padding)
	clear(scratch[:left])
	n := copy(scratch[left:], x)
	clear(scratch[left+n:])
	return scratch
}

// WindowWork is of convolutions, by lines or by gathered rows.
func WindowWork(w *frame.Work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	ConnectedWork(w, g, n, s, threads)
	r := n.Windows(s[n.In[0]], s[n.Out[0]])
	if filters.HasWinograd(g, n, s) {
		w.Line = max(w.Line, graph.Times(4, r.WinogradWork()))
	}
	switch {
	case n.Type.Tag == graph.TagConvTranspose2d || r.IsPointwise():
	case r.ByLines():
		w.Line = max(w.Line, graph.Times(4, r.Copies()))
	default:
		w.Line = max(w.Line, graph.Times(4, min(graph.GatheredRows, max(1, r.Out.Leading(3))),
			min(graph.GatheredDepth, r.W.KernelH*r.W.KernelW*r.W.GroupIn)))
	}
}

// transposedLines computes lines of a transposed convolution's output. Output pixels that are one
// stride apart read adjacent input pixels with the same taps.
type transposedLines struct {
	floatProduct
	windows nhwc.Rows[float32]
}

// Transposed returns the loop of a transposed convolution.
func Transposed(e *frame.Frame, n *graph.Node) frame.Loop { return e.OnFloats(n, &transposedLines{}) }

func (l *transposedLines) Compute(e *frame.Frame, _ *graph.Node) { e.Parallel(l.units, l.grain, l) }

func (l *transposedLines) Bind(e *frame.Frame, n *graph.Node) {
	w, in, out := n.Window(), e.Shapes[n.In[0]], e.Shapes[n.Out[0]]
	l.e, l.node, l.filter, l.groups = e, n, filterOf(e, n), w.Groups
	l.x, l.y = e.Load(0, n.In[0]), e.Result(n.Out[0])
	l.windows = frame.RowsOf(n, in, out, l.x)
	l.units = out.Leading(2)
	m := l.filter.Panels[0]
	l.grain = 1 + macsPerRange/max(1, in.Dim[2]*w.Groups*m.N*m.K/w.StrideH)
}

// Range computes lines [lo, hi), counted over all images.
func (l *transposedLines) Range(_, lo, hi int) {
	s, ldc := &l.windows, l.groups*l.node.Window().GroupOut
	pitch := s.Out[2] * ldc
	for line := lo; line < hi; line++ {
		y := l.y[line*pitch:][:pitch]
		for at := 0; at < pitch; at += ldc {
			copy(y[at:], l.filter.Bias)
		}
		for ky := range s.Kernel[1] {
			l.e.Run.Poll()
			if iy, ok := s.Source(1, line%s.Out[1], ky); ok {
				l.taps(y, line/s.Out[1]*s.In[1]+iy, ky, ldc)
			}
		}
		frame.BoundFloats(l.node, y)
	}
}

// taps adds the products of a line of the input and row ky of the kernel to y, whose pixels have ldc channels.
func (l *transposedLines) taps(y []float32, line, ky, ldc int) {
	s, step := &l.windows, l.windows.Stride[2]
	for kx := range s.Kernel[2] {
		// Input pixel ix contributes to output pixel ox = ix·stride + shift.
		shift := kx*s.Dilate[2] - s.Pad[2]
		first := max(0, graph.CeilDiv(-shift, step))
		if shift >= s.Out[2] {
			continue
		}
		run := min(s.In[2], (s.Out[2]-1-shift)/step+1) - first
		if run <= 0 {
			continue
		}
		for g, m := range l.filter.Panels {
			a, to := l.x[(line*s.In[2]+first)*s.C+g*s.Group:], y[(first*step+shift)*ldc+g*l.node.Window().GroupOut:]
			m.MulAdd(run, (ky*s.Kernel[2]+kx)*s.Group, s.Group, a, s.C, to, ldc*step, to, ldc*step, -graph.Inf, graph.Inf, 0, m.Panels())
		}
	}
}
