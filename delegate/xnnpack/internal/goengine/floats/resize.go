package floats

import (
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// resizeLines interpolates lines of the output: first between pixels of two lines of the input,
// which the next output line often shares, then between these two lines.
type resizeLines struct {
	node         *graph.Node
	x, y         []float32
	in, out      graph.Shape // [N, H, W, C]
	planes       bool        // the output is transposed to [N, C, H, W]
	columns      []samplePoint
	work         []resizedLines
	lines, grain int
}

// resizedLines are two input lines, interpolated to the width of the output, and their indices.
type resizedLines struct {
	data    [2][]float32
	line    [2]int
	special [2]bool // they have NaN or infinities
}

// samplePoint is the position of an output pixel among input pixels: between lo and hi, at fraction
// weight from lo.
type samplePoint struct {
	lo, hi int
	weight float32
}

// Resize returns the loop of a resize. The output of one to planes is transposed.
func Resize(e *frame.Frame, n *graph.Node) frame.Loop {
	return e.OnFloats(n, &resizeLines{planes: n.Type.Tag == graph.TagResizePlanes})
}

func (r *resizeLines) Compute(e *frame.Frame, _ *graph.Node) { e.Parallel(r.lines, r.grain, r) }

func (r *resizeLines) Bind(e *frame.Frame, n *graph.Node) {
	r.node, r.in = n, e.Shapes[n.In[0]]
	r.out = graph.Params[graph.ResizeParams](n).Shape(r.in)
	r.x, r.y = e.Load(0, n.In[0]), e.Result(n.Out[0])
	r.columns = pack.Grow(r.columns, r.out.Dim[2])
	for i := range r.columns {
		r.columns[i] = resizeSample(n, i, r.in.Dim[2], r.out.Dim[2])
	}
	pitch := r.out.Dim[2] * r.in.Dim[3]
	e.Reserve(2 * pitch)
	r.work = pack.Grow(r.work, e.Threads())
	for i := range r.work {
		r.work[i].data = [2][]float32{e.Workers[i].Line[:pitch], e.Workers[i].Line[pitch : 2*pitch]}
	}
	r.lines = r.out.Leading(2)
	r.grain = 1 + frame.ElementsPerRange/max(1, 2*r.out.Dim[2]*r.in.Dim[3])
}

// Range computes lines [lo, hi) of the output, counted over all images.
func (r *resizeLines) Range(worker, lo, hi int) {
	w := &r.work[worker]
	w.line = [2]int{-1, -1}
	for line := lo; line < hi; line++ {
		s := resizeSample(r.node, line%r.out.Dim[1], r.in.Dim[1], r.out.Dim[1])
		image := line / r.out.Dim[1] * r.in.Dim[1]
		if w.line[1] == image+s.lo { // the next input line
			w.data[0], w.data[1] = w.data[1], w.data[0]
			w.line, w.special = [2]int{w.line[1], -1}, [2]bool{w.special[1], false}
		}
		from, to := r.resized(w, 0, image+s.lo), []float32(nil)
		special := w.special[0]
		if s.weight != 0 || special || s.hi != s.lo && !graph.IsFinite(graph.FP32, tensor.BytesOf(r.line(image+s.hi))) {
			to = r.resized(w, 1, image+s.hi)
			special = special || w.special[1]
		}
		r.write(line, from, to, s.weight, special)
	}
}

// line returns a line of the input.
func (r *resizeLines) line(i int) []float32 {
	n := r.in.Dim[2] * r.in.Dim[3]
	return r.x[i*n:][:n]
}

// write writes a line of the output between two resized lines, or the first if there is no other.
func (r *resizeLines) write(line int, from, to []float32, weight float32, special bool) {
	n, parts, step := len(from), 1, 0
	at := line * n
	if r.planes {
		n, parts, step = r.out.Dim[2], r.out.Dim[3], r.out.Dim[1]*r.out.Dim[2]
		at = line/r.out.Dim[1]*parts*step + line%r.out.Dim[1]*n
	}
	for k := range parts {
		y, a := r.y[at+k*step:][:n], from[k*n:][:n]
		switch {
		case to == nil:
			copy(y, a)
		case special:
			for i, b := range to[k*n:][:n] {
				y[i] = weigh(a[i], b, weight)
			}
		default:
			simd.Lerp(y, a, to[k*n:][:n], weight)
		}
	}
}

// weigh interpolates as the operator does. NaN and infinities also have an effect where their weight is 0, and the
// difference of two numbers, which is faster to use, has none of them.
func weigh(a, b, weight float32) float32 { return float32(a*(1-weight)) + float32(b*weight) }

// resized returns an input line, interpolated to the output width, in buffer k of a worker.
func (r *resizeLines) resized(w *resizedLines, k, line int) []float32 {
	to := w.data[k][:r.out.Dim[2]*r.in.Dim[3]]
	if w.line[k] != line {
		from := r.line(line)
		w.line[k], w.special[k] = line, !graph.IsFinite(graph.FP32, tensor.BytesOf(from))
		if w.special[k] {
			r.interpolateSpecial(to, from)
		} else {
			r.interpolate(to, from)
		}
	}
	return to
}

// interpolateSpecial does what interpolate does, as the operator does.
func (r *resizeLines) interpolateSpecial(y, from []float32) {
	c := r.in.Dim[3]
	pixel, step := c, 1
	if r.planes {
		pixel, step = 1, len(r.columns)
	}
	for i, s := range r.columns {
		for k := range c {
			y[i*pixel+k*step] = weigh(from[s.lo*c+k], from[s.hi*c+k], s.weight)
		}
	}
}

// interpolate computes a line of the width of the output from one of the input.
func (r *resizeLines) interpolate(y, from []float32) {
	c := r.in.Dim[3]
	if c >= 8 && !r.planes {
		for i, s := range r.columns {
			simd.Lerp(y[i*c:][:c], from[s.lo*c:], from[s.hi*c:], s.weight)
		}
		return
	}
	pixel, step := c, 1
	if r.planes {
		pixel, step = 1, len(r.columns)
	}
	for i, s := range r.columns {
		to, a, b := y[i*pixel:], from[s.lo*c:][:c], from[s.hi*c:][:c]
		for k := range a {
			to[k*step] = a[k] + float32(s.weight*float32(b[k]-a[k]))
		}
	}
}

// resizeSample returns the position of output pixel o among the input pixels, along a dimension of in input
// pixels and m output pixels.
func resizeSample(n *graph.Node, o, in, m int) samplePoint {
	if in == m {
		return samplePoint{o, o, 0}
	}
	scale := float32(in) / float32(m)
	if n.Flags&graph.FlagAlignCorners != 0 && m != 1 {
		scale = float32(in-1) / float32(m-1)
	}
	at := float32(o) * scale
	if n.Flags&(graph.FlagAlignCorners|graph.FlagLegacyResize) == 0 {
		at = max(0, float32((float32(o)+0.5)*scale)-0.5)
	}
	floor := float32(math.Floor(float64(at)))
	lo := min(int(floor), in-1)
	return samplePoint{lo, min(lo+1, in-1), at - floor}
}

// ResizeWork is of resizes: two lines of the output, and the positions of its pixels.
func ResizeWork(w *frame.Work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	frame.DecodeWork(w, g, n, s, threads)
	out := graph.Params[graph.ResizeParams](n).Shape(s[n.In[0]])
	w.Line = max(w.Line, graph.Times(8, out.Dim[2], out.Dim[3]))
	w.Kept = graph.Plus(w.Kept, graph.Times(24, out.Dim[2]))
}
