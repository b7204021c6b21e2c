package floats

import (
	"time"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/nhwc"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// linePool computes lines of a pool's output.
type linePool struct {
	nhwc.Pool[float32]
	e            *frame.Frame
	node         *graph.Node
	mean         bool
	in, out      graph.Shape // what it is planned for
	lines, grain int
}

// MaxPool returns the loop of a max pool.
func MaxPool(e *frame.Frame, n *graph.Node) frame.Loop { return e.OnFloats(n, &linePool{}) }

// AveragePool returns the loop of means over windows.
func AveragePool(e *frame.Frame, n *graph.Node) frame.Loop {
	return e.OnFloats(n, &linePool{mean: true})
}

// GlobalPool returns the loop of the mean over all pixels of each image.
func GlobalPool(e *frame.Frame, n *graph.Node) frame.Loop {
	if !numbers.MapsBytes(e.Graph, n) || n.Min != -graph.Inf || n.Max != graph.Inf {
		return AveragePool(e, n)
	}
	return &meanOfBytes{linePool{mean: true}}
}

// meanOfBytes multiplies sums of integers by one ratio, as the library does: sums of floats would round means in the middle
// between two elements to either side. Sums are exact up to 2^24.
type meanOfBytes struct{ linePool }

func (p *meanOfBytes) Bind(e *frame.Frame, n *graph.Node) {
	p.set(e, n)
	for d := range p.Shares {
		simd.Fill(p.Shares[d], 1)
	}
}

func (p *meanOfBytes) Compute(e *frame.Frame, n *graph.Node) {
	in, out := &e.Graph.Values[n.In[0]], &e.Graph.Values[n.Out[0]]
	from, _ := numbers.BytesAs(in)
	to, _ := numbers.BytesAs(out)
	e.Slots[0] = pack.Grow(e.Slots[0], p.in.Numel())
	p.X, p.Y = e.Slots[0], e.Result(n.Out[0])
	from.Dequantize(p.X, e.Data[n.In[0]], 1)
	e.Parallel(p.lines, p.grain, p)
	to.Quantize(e.Data[n.Out[0]], p.Y, in.Quant.Scale/out.Quant.Scale/float32(p.in.Dim[1]*p.in.Dim[2]))
}

func (p *linePool) Bind(e *frame.Frame, n *graph.Node) {
	p.set(e, n)
	p.X, p.Y = e.Load(0, n.In[0]), e.Result(n.Out[0])
}

func (p *linePool) Compute(e *frame.Frame, _ *graph.Node) { e.Parallel(p.lines, p.grain, p) }

// plan sets the windows of a node.
func (p *linePool) plan(n *graph.Node, in, out graph.Shape, mean bool) {
	if p.Mean = mean; n.Window() == nil { // one window is the image
		h, w := in.Dim[1], in.Dim[2]
		p.Images = frame.Images(&graph.WindowGrid{In: in, Out: graph.ShapeOf(in.Dim[0], 1, 1, in.Dim[3]),
			W: &graph.Window{KernelH: h, KernelW: w, StrideH: h, StrideW: w, DilationH: 1, DilationW: 1}})
		return
	}
	s := n.Windows(in, out)
	p.Images = frame.Images(&s)
}

func (p *linePool) set(e *frame.Frame, n *graph.Node) {
	if in, out := e.Shapes[n.In[0]], e.Shapes[n.Out[0]]; p.in != in || p.out != out {
		p.in, p.out = in, out
		p.plan(n, in, out, p.mean)
		p.Plan(e.Threads())
		if p.mean {
			p.CountInside()
		}
		p.lines = out.Numel() / max(1, p.Out[2]*p.C)
		p.grain = 1 + frame.ElementsPerRange/max(1, p.Line()*(min(p.Kernel[1], p.In[1])+p.Kernel[2]))
	}
	p.e, p.node, p.Stop, p.Empty = e, n, &e.Run, graph.Lowest
	e.Reserve(p.Line())
}

// Range computes lines [lo, hi) of the output, counted over all images.
func (p *linePool) Range(worker, lo, hi int) {
	n := p.Out[2] * p.C
	for line := lo; line < hi; line++ {
		p.Run(worker, p.e.Workers[worker].Line, line)
		frame.BoundFloats(p.node, p.Y[line*n:][:n])
	}
}

// argmaxPool selects the first of equal maxima, column by column in the window.
type argmaxPool struct{}

// ArgmaxPool returns the loop of a pool that also has the indices of maxima.
func ArgmaxPool(*frame.Frame, *graph.Node) frame.Loop { return frame.Decoded{Floats: argmaxPool{}} }

func (argmaxPool) Bind(*frame.Frame, *graph.Node) {}

func (argmaxPool) Compute(e *frame.Frame, n *graph.Node) {
	x, y, index := e.Load(0, n.In[0]), e.Result(n.Out[0]), tensor.View[int32](e.Data[n.Out[1]])
	w := frame.RowsOf(n, e.Shapes[n.In[0]], e.Shapes[n.Out[0]], x)
	for at := range len(y) / w.C {
		image, oy, ox := w.Point(at)
		top, y0, y1 := w.Taps(1, oy)
		left, x0, x1 := w.Taps(2, ox)
		for c := range w.C {
			e.Run.Poll()
			best, tap := graph.Lowest, -1
			for kx := x0; kx < x1; kx++ {
				for ky := y0; ky < y1; ky++ {
					from := (image*w.In[1]+top+ky*w.Dilate[1])*w.In[2] + left + kx*w.Dilate[2]
					if v := x[from*w.C+c]; tap < 0 || v > best {
						best, tap = v, kx*w.Kernel[1]+ky
					}
				}
			}
			y[at*w.C+c], index[at*w.C+c] = best, int32(max(tap, 0))
		}
	}
}

// maxPoolTime limits the time of the pools of a graph, far above that of any model. Large windows
// do not need a large file.
const maxPoolTime = 10 * time.Second

// CheckPools returns an error if the pools of a graph take too long.
func CheckPools(g *graph.Graph, s []graph.Shape) error {
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

// softmaxRows computes the softmax of rows.
type softmaxRows struct {
	x, y []float32
	c    int
}

// Softmax returns the loop of a softmax.
func Softmax(e *frame.Frame, n *graph.Node) frame.Loop { return e.OnFloats(n, &softmaxRows{}) }

func (s *softmaxRows) Bind(e *frame.Frame, n *graph.Node) {
	s.x, s.y, s.c = e.Load(0, n.In[0]), e.Result(n.Out[0]), e.Shapes[n.In[0]].Last()
}

func (s *softmaxRows) Compute(e *frame.Frame, _ *graph.Node) {
	e.Parallel(len(s.y)/s.c, 1+frame.ElementsPerRange/(8*s.c), s)
}

// Range computes rows [lo, hi).
func (s *softmaxRows) Range(_, lo, hi int) {
	simd.SoftmaxRows(s.y[lo*s.c:hi*s.c], s.x[lo*s.c:hi*s.c], s.c)
}

// PoolWork is of pools: a line of the input, lists of taps, and what means are divided by.
func PoolWork(w *frame.Work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	frame.DecodeWork(w, g, n, s, threads)
	var p linePool
	p.plan(n, s[n.In[0]], s[n.Out[0]], n.Type.Tag != graph.TagMaxPooling2d)
	w.Line = max(w.Line, graph.Times(4, p.Line()))
	w.Kept = graph.Plus(w.Kept, graph.Plus(graph.Times(threads, 8*p.Listed()), graph.Times(4, 1+p.Out[1]+p.Out[2])))
}
