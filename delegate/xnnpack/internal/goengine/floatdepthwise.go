package goengine

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/nhwc"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func (d *depthwiseLines) run(e *frame, _ *graph.Node) {
	d.pad()
	e.Parallel(d.lines, d.grain, d)
}

// depthwiseLines computes lines of a depthwise convolution's output.
type depthwiseLines struct {
	nhwc.Depthwise
	node   *graph.Node
	longer [2][]float32 // of a filter of few channels, the taps and the bias in copies that vector loops can read behind
	padded nhwc.Padded[float32]
	input  []float32 // what the padded copy is made of, nil if there is none

	lines, grain int // of the parallel loop
}

// plan sets the windows of a node. It reports whether they read a padded copy of the input: if that is faster and the copy
// is not too large.
func (d *depthwiseLines) plan(n *graph.Node, in, out graph.Shape) bool {
	s := n.Windows(in, out)
	d.Images = images(&s)
	d.padded.Plan(d.Images, s.In.Dim[0])
	if !d.padded.Differs() || !s.W.IsNarrow(s.Out.Dim[2]) || d.padded.Numel() > graph.Times(graph.MaxPadded, s.In.Numel()) {
		return false
	}
	d.Images = d.padded.Inside()
	return true
}

func (d *depthwiseLines) bind(e *frame, n *graph.Node) {
	d.input, d.X, d.Y = nil, e.load(0, n.In[0]), e.result(n.Out[0])
	if d.plan(n, e.shapes[n.In[0]], e.shapes[n.Out[0]]) {
		e.staged = pack.Grow(e.staged, int(4*d.padded.Numel()))
		d.input, d.X = d.X, tensor.View[float32](e.staged)[:d.padded.Numel()]
	}
	d.node, d.Min, d.Max = n, n.Min, n.Max
	d.setFilter(e.filterOf(n))
	d.Plan(e.threads())
	d.lines, d.grain = e.shapes[n.Out[0]].Leading(3)/d.Out[2], 1+macsPerRange/8/max(1, d.Out[2]*d.C*d.Kernel[1]*d.Kernel[2])
}

// setFilter refers to the taps and the bias of a filter.
func (d *depthwiseLines) setFilter(f *floatFilter) {
	d.Filter, d.Bias = f.taps, f.bias
	if d.C < simd.ChannelLanes {
		for i, list := range [][]float32{f.taps, f.bias} {
			d.longer[i] = pack.Grow(d.longer[i], len(list)+simd.ChannelLanes)
			copy(d.longer[i], list)
		}
		d.Filter, d.Bias = d.longer[0], d.longer[1]
	}
}

// pad fills the padded copy, if there is one, which other nodes overwrite.
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

// depthwiseWork is of depthwise convolutions: lists of taps, copies of the filter and bias of few channels, and a padded copy
// of the input.
func depthwiseWork(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	connectedWork(w, g, n, s, threads)
	var d depthwiseLines
	if d.plan(n, s[n.In[0]], s[n.Out[0]]) {
		w.staged = max(w.staged, graph.Times(4, int(d.padded.Numel())))
		w.kept = graph.Plus(w.kept, graph.Times(4, d.padded.Cols, d.C))
	}
	w.kept = graph.Plus(w.kept, graph.Times(threads, 8*d.Listed()))
	if c := d.C; c < simd.ChannelLanes {
		w.kept = graph.Plus(w.kept, graph.Times(4, (d.Kernel[1]*d.Kernel[2]+1)*c+2*simd.ChannelLanes))
	}
}
