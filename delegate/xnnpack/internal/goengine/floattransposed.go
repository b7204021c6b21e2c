package goengine

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// floatTransposed computes a transposed convolution.
func (e *Unit) floatTransposed(n *graph.Node) {
	l, stale := loopOf[transposedLines](e, n, e.direct[n.At])
	if stale {
		l.set(e, n)
	}
	e.Parallel(l.units, l.grain, l)
	e.store(n.Out[0])
}

// transposedLines computes lines of a transposed convolution's output. Output pixels that are one
// stride apart read adjacent input pixels with the same taps.
type transposedLines struct {
	floatProduct
	windows windowRows
}

func (l *transposedLines) set(e *Unit, n *graph.Node) {
	w, in, out := n.Window(), e.Shapes[n.In[0]], e.Shapes[n.Out[0]]
	l.e, l.node, l.filter, l.groups = e, n, e.filterOf(n), w.Groups
	l.x, l.y = e.load(0, n.In[0]), e.result(n.Out[0])
	l.windows = windowRows{WindowGrid: graph.WindowGrid{W: w, In: in, Out: out, Top: w.Top, Left: w.Left}}
	l.units = out.Leading(2)
	m := l.filter.Panels[0]
	l.grain = 1 + macsPerRange/max(1, in.Dim[2]*w.Groups*m.N*m.K/w.StrideH)
}

// Range computes lines [lo, hi), counted over all images.
func (l *transposedLines) Range(_, lo, hi int) {
	w, in, out := l.windows.W, &l.windows.In, &l.windows.Out
	pitch := out.Dim[2] * out.Dim[3]
	for line := lo; line < hi; line++ {
		y := l.y[line*pitch:][:pitch]
		for at := 0; at < pitch; at += out.Dim[3] {
			copy(y[at:], l.filter.bias)
		}
		for ky := range w.KernelH {
			l.e.run.Poll()
			if iy := upsampled(line%out.Dim[1]+l.windows.Top-ky*w.DilationH, w.StrideH); iy >= 0 && iy < in.Dim[1] {
				l.taps(y, line/out.Dim[1]*in.Dim[1]+iy, ky)
			}
		}
		boundFloats(l.node, y)
	}
}

// taps adds the products of a line of the input and row ky of the kernel to y.
func (l *transposedLines) taps(y []float32, line, ky int) {
	w, in, out := l.windows.W, &l.windows.In, &l.windows.Out
	for kx := range w.KernelW {
		// Input pixel ix contributes to output pixel ox = ix·stride + shift.
		shift := kx*w.DilationW - l.windows.Left
		first := max(0, graph.CeilDiv(-shift, w.StrideW))
		if shift >= out.Dim[2] {
			continue
		}
		run := min(in.Dim[2], (out.Dim[2]-1-shift)/w.StrideW+1) - first
		if run <= 0 {
			continue
		}
		ox, ldc, c := first*w.StrideW+shift, out.Dim[3], in.Dim[3]
		for g, m := range l.filter.Panels {
			a, to := l.x[(line*in.Dim[2]+first)*c+g*w.GroupIn:], y[ox*ldc+g*w.GroupOut:]
			m.MulAdd(run, (ky*w.KernelW+kx)*w.GroupIn, w.GroupIn, a, c, to, ldc*w.StrideW, to, ldc*w.StrideW, -graph.Inf, graph.Inf, 0, m.Panels())
		}
	}
}
