package xnnpack

// floatTransposed computes a transposed convolution.
func (e *reference) floatTransposed(n *node) {
	l, stale := loopOf[transposedLines](e, n, e.direct[n.at])
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

func (l *transposedLines) set(e *reference, n *node) {
	w, in, out := n.window(), e.shapes[n.In[0]], e.shapes[n.Out[0]]
	l.e, l.node, l.filter, l.groups = e, n, e.filterOf(n), w.groups
	l.x, l.y = e.load(0, n.In[0]), e.result(n.Out[0])
	l.windows = windowRows{windowGrid: windowGrid{w: w, in: in, out: out, top: w.top, left: w.left}}
	l.units = out.leading(2)
	m := l.filter.panels[0]
	l.grain = 1 + macsPerRange/max(1, in.dim[2]*w.groups*m.N*m.K/w.strideH)
}

// Range computes lines [lo, hi), counted over all images.
func (l *transposedLines) Range(_, lo, hi int) {
	w, in, out := l.windows.w, &l.windows.in, &l.windows.out
	pitch := out.dim[2] * out.dim[3]
	for line := lo; line < hi; line++ {
		y := l.y[line*pitch:][:pitch]
		for at := 0; at < pitch; at += out.dim[3] {
			copy(y[at:], l.filter.bias)
		}
		for ky := range w.kernelH {
			l.e.run.Poll()
			if iy := upsampled(line%out.dim[1]+l.windows.top-ky*w.dilationH, w.strideH); iy >= 0 && iy < in.dim[1] {
				l.taps(y, line/out.dim[1]*in.dim[1]+iy, ky)
			}
		}
		boundFloats(l.node, y)
	}
}

// taps adds the products of a line of the input and row ky of the kernel to y.
func (l *transposedLines) taps(y []float32, line, ky int) {
	w, in, out := l.windows.w, &l.windows.in, &l.windows.out
	for kx := range w.kernelW {
		// Input pixel ix contributes to output pixel ox = ix·stride + shift.
		shift := kx*w.dilationW - l.windows.left
		first := max(0, ceilDiv(-shift, w.strideW))
		if shift >= out.dim[2] {
			continue
		}
		run := min(in.dim[2], (out.dim[2]-1-shift)/w.strideW+1) - first
		if run <= 0 {
			continue
		}
		ox, ldc, c := first*w.strideW+shift, out.dim[3], in.dim[3]
		for g, m := range l.filter.panels {
			a, to := l.x[(line*in.dim[2]+first)*c+g*w.groupIn:], y[ox*ldc+g*w.groupOut:]
			m.MulAdd(run, (ky*w.kernelW+kx)*w.groupIn, w.groupIn, a, c, to, ldc*w.strideW, to, ldc*w.strideW, -inf, inf, 0, m.Panels())
		}
	}
}
