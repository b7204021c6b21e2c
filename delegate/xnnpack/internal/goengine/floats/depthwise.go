package floats

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/kernels/nhwc"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func (d *depthwiseLines) Compute(e *frame.Frame, _ *graph.Node) {
	d.pad()
	e.Parallel(d.lines, d.grain, d)
}

// depthwiseLines computes lines of a depthwise convolution's output.
type depthwiseLines struct {
	nhwc.Depthwise
	e      *frame.Frame
	node   *graph.Node
	copies bool                 // windows read a copy of the input
	padded nhwc.Padded[float32] // the copy, in which channels with several outputs are repeated
	input  []float32            // what the copy is made of, nil if there is none

	lines, grain int // of the parallel loop
}

// Depthwise returns the loop of a depthwise convolution.
func Depthwise(e *frame.Frame, n *graph.Node) frame.Loop {
	return e.OnFloats(n, &depthwiseLines{e: e, node: n})
}

// plan sets the windows of a node. It reports whether they read a copy of the input. That has padding if windows are faster with it and
// the copy is not too large.
func (d *depthwiseLines) plan(n *graph.Node, in, out graph.Shape) bool {
	s := n.Windows(in, out)
	d.Images = frame.Images(&s)
	d.C *= s.W.GroupOut
	d.padded.Repeat = s.W.GroupOut
	d.padded.Plan(d.Images, s.In.Dim[0])
	if !d.padded.Differs() || !s.W.IsNarrow(s.Out.Dim[2]) || d.padded.Numel() > graph.Times(graph.MaxPadded*s.W.GroupOut, s.In.Numel()) {
		d.padded.DropPadding()
		return s.W.GroupOut > 1
	}
	d.Images = d.padded.Inside()
	return true
}

// PlanShapes plans the loop for the unit's shapes.
func (d *depthwiseLines) PlanShapes() {
	e, n := d.e, d.node
	out := e.Shapes[n.Out[0]]
	d.copies = d.plan(n, e.Shapes[n.In[0]], out)
	f := filterOf(e, n)
	d.SetFilter(f.Taps, f.Bias)
	d.Plan(e.Threads())
	d.Min, d.Max = n.Min, n.Max
	d.lines, d.grain = out.Leading(3)/d.Out[2], 1+macsPerRange/8/max(1, d.Out[2]*d.C*d.Kernel[1]*d.Kernel[2])
}

func (d *depthwiseLines) Bind(e *frame.Frame, n *graph.Node) {
	d.PlanShapes() // the unit does not call it for a loop on decoded values
	d.input, d.X, d.Y = nil, e.Load(0, n.In[0]), e.Result(n.Out[0])
	if d.copies {
		e.Staged = pack.Grow(e.Staged, int(4*d.padded.Numel()))
		d.input, d.X = d.X, tensor.View[float32](e.Staged)[:d.padded.Numel()]
	}
}

// pad fills the copy, if there is one, which other nodes overwrite.
func (d *depthwiseLines) pad() {
	if d.input != nil {
		d.padded.Copy(d.X, d.input, func(int) float32 { return 0 })
	}
}

// finished is about how many elements of the output a merged function is applied to at a time: they stay in the
// first-level cache.
const finished = 2048

// Range computes lines [lo, hi) of the output, counted over all images.
func (d *depthwiseLines) Range(worker, lo, hi int) {
	size := d.Out[2] * d.C
	for n := max(1, finished/max(size, 1)); lo < hi; lo += n {
		n = min(n, hi-lo)
		for line := lo; line < lo+n; line++ {
			d.Run(worker, line)
		}
		finishNode(d.node, d.Y[lo*size:], n*d.Out[2], d.C, 0, d.C)
	}
}

// DepthwiseWork is of depthwise convolutions: lists of taps, copies of the filter and bias of few channels, and a copy of the input.
func DepthwiseWork(w *frame.Work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	ConnectedWork(w, g, n, s, threads)
	var d depthwiseLines
	if d.plan(n, s[n.In[0]], s[n.Out[0]]) {
		w.Staged = max(w.Staged, graph.Times(4, int(d.padded.Numel())))
		w.Kept = graph.Plus(w.Kept, graph.Times(4, d.padded.Cols, d.C))
	}
	w.Kept = graph.Plus(w.Kept, graph.Plus(graph.Times(threads, 8*d.Listed()), graph.Times(4, d.Copied())))
}
