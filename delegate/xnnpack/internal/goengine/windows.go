package goengine

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/nhwc"
)

// images returns the windows of a grid over its images.
func images(s *graph.WindowGrid) nhwc.Images {
	w, n := s.W, nhwc.Images{C: s.In.Dim[3]}
	n.In, n.Out = [3]int{1, s.In.Dim[1], s.In.Dim[2]}, [3]int{1, s.Out.Dim[1], s.Out.Dim[2]}
	n.Kernel, n.Stride = [3]int{1, w.KernelH, w.KernelW}, [3]int{1, w.StrideH, w.StrideW}
	n.Pad, n.Dilate = [3]int{0, s.Top, s.Left}, [3]int{1, w.DilationH, w.DilationW}
	return n
}

// imagesOf returns the windows of a node over an input [N, H, W, C].
func imagesOf(n *graph.Node, in, out graph.Shape) nhwc.Images {
	top, left := n.Padding(in.Dim[1], in.Dim[2])
	return images(&graph.WindowGrid{W: n.Window(), In: in, Out: out, Top: top, Left: left})
}

// rowsOf returns the windows of a convolution as rows of a matrix.
func rowsOf[T comparable](n *graph.Node, in, out graph.Shape, x []T) nhwc.Rows[T] {
	return nhwc.Rows[T]{Images: imagesOf(n, in, out), Group: n.Window().GroupIn, Transposed: n.Type.Tag == graph.TagConvTranspose2d, X: x}
}

// windowRows is a source of rows: the windows of a convolution's output pixels over an input
// [N, H, W, groups·GroupIn]. Elements outside of the input are 0.
type windowRows struct {
	graph.WindowGrid
	points nhwc.Rows[float32]
}

// windowsOf returns the windows of a node over its first input.
func (e *frame) windowsOf(n *graph.Node) windowRows {
	s := n.Windows(e.shapes[n.In[0]], e.shapes[n.Out[0]])
	return windowRows{s, nhwc.Rows[float32]{Images: images(&s), Group: s.W.GroupIn, X: e.load(0, n.In[0])}}
}

func (s *windowRows) dense(int, int) ([]float32, int) { return nil, 0 }

// gather copies elements [k, k+n) of windows, which may start or end within a tap.
func (s *windowRows) gather(dst []float32, group, p, rows, k, n int) {
	for i := range rows {
		s.points.Gather(dst[i*n:][:n], group, p+i, k, 0)
	}
}

// overread is the number of bytes that 8-bit products may read past the last element that they use.
const overread = 16

// stage is the activations of a convolution in the form that its products read: surrounded by padding, and followed by
// readable bytes. If the input already has that form, it is used instead.
type stage struct {
	nhwc.Padded[uint8]
	needed bool
}

// plan sets the stage up for windows over an input of [N, H, W, C]; tail is the number of bytes
// that products read past what they use. It reports whether the stage has a reasonable size.
func (s *stage) plan(n *graph.Node, in, out graph.Shape, tail int) bool {
	s.Plan(imagesOf(n, in, out), in.Dim[0])
	s.needed = tail > 0 || s.Differs()
	return s.bytes() <= stageLimit(in, out)
}

// stageLimit returns the largest reasonable size of a stage: a larger one is mostly padding.
func stageLimit(in, out graph.Shape) int64 { return int64(4*(in.Numel()+out.Numel())) + 1<<16 }

// bytes returns the size of the stage.
func (s *stage) bytes() int64 { return graph.Plus(s.Numel(), overread) }
