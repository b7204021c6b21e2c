package frame

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/nhwc"
)

// Images returns the windows of a grid over its images.
func Images(s *graph.WindowGrid) nhwc.Images {
	w, n := s.W, nhwc.Images{C: s.In.Dim[3]}
	n.In, n.Out = [3]int{1, s.In.Dim[1], s.In.Dim[2]}, [3]int{1, s.Out.Dim[1], s.Out.Dim[2]}
	n.Kernel, n.Stride = [3]int{1, w.KernelH, w.KernelW}, [3]int{1, w.StrideH, w.StrideW}
	n.Pad, n.Dilate = [3]int{0, s.Top, s.Left}, [3]int{1, w.DilationH, w.DilationW}
	return n
}

// ImagesOf returns the windows of a node over an input [N, H, W, C].
func ImagesOf(n *graph.Node, in, out graph.Shape) nhwc.Images {
	top, left := n.Padding(in.Dim[1], in.Dim[2])
	return Images(&graph.WindowGrid{W: n.Window(), In: in, Out: out, Top: top, Left: left})
}

// RowsOf returns the windows of a convolution as rows of a matrix.
func RowsOf[T comparable](n *graph.Node, in, out graph.Shape, x []T) nhwc.Rows[T] {
	return nhwc.Rows[T]{Images: ImagesOf(n, in, out), Group: n.Window().GroupIn, Transposed: n.Type.Tag == graph.TagConvTranspose2d, X: x}
}
