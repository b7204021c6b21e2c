package floats

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/nhwc"
)

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
