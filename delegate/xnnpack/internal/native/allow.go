package native

import (
	"cmp"
	"fmt"
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/x448/float16"
)

// Restrictions of the native engine. On graphs that no exporter writes, the library may abort with
// an assertion or read out of bounds. A node therefore runs in the library only if every rule of its
// table entry accepts its parameters, quantization and shapes. If one node is rejected, the whole
// graph runs on the Go engine. The rules are checked on the graph after fuse, at the declared shapes
// and again at the shapes of every call.

// rule is a condition on a node at given shapes. It returns the reason why the library must not run
// the node, or "".
type rule func(g *graph.Graph, n *graph.Node, s []graph.Shape) string

// every combines rules: it returns the first reason.
func every(rules ...rule) rule {
	return func(g *graph.Graph, n *graph.Node, s []graph.Shape) string {
		for _, r := range rules {
			if reason := r(g, n, s); reason != "" {
				return reason
			}
		}
		return ""
	}
}

// Refuses returns the first reason why the library must not run the graph at the given shapes, or
// "".
func Refuses(g *graph.Graph, s []graph.Shape) string {
	for _, v := range g.Args {
		if g.Values[v].Datatype.Info().Native == graph.NoNative {
			return fmt.Sprintf("argument %s", g.Describe(v))
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if reason := RefusesNode(g, n, s); reason != "" {
			return fmt.Sprintf("%s: %s", n.Location(), reason)
		}
	}
	return ""
}

// RefusesNode returns the first reason why the library must not run the node, or "".
func RefusesNode(g *graph.Graph, n *graph.Node, s []graph.Shape) string {
	for _, list := range [2][]int{n.In, n.Out} {
		for _, v := range list {
			if v != graph.None && g.Values[v].Datatype.Info().Native == graph.NoNative {
				return g.Values[v].Datatype.String() + " values"
			}
		}
	}
	if typeOf(n).rule == nil {
		return ""
	}
	return typeOf(n).rule(g, n, s)
}

// outside returns a reason if x is not within [lo, hi), else "".
func outside(what string, x, lo, hi float32) string {
	if x >= lo && x < hi {
		return ""
	}
	return fmt.Sprintf("%s %v, outside of %v to %v", what, x, lo, hi)
}

// quantizedScales returns the scales of a node's operands and output. ok reports whether all of them
// are quantized per tensor.
func quantizedScales(g *graph.Graph, n *graph.Node) (in []float32, out float32, ok bool) {
	y := &g.Values[n.Out[0]]
	if y.Datatype.Info().Quant != graph.PerTensor {
		return nil, 0, false
	}
	for _, v := range n.In {
		if g.Values[v].Datatype.Info().Quant != graph.PerTensor {
			return nil, 0, false
		}
		in = append(in, g.Values[v].Quant.Scale)
	}
	return in, y.Quant.Scale, true
}

// The fixed-point arithmetic of quantized kernels asserts the following bounds of scales
// (xnn_init_*_params).

// sumLimits checks the scales of quantized sums and differences.
func sumLimits(g *graph.Graph, n *graph.Node, _ []graph.Shape) string {
	in, out, ok := quantizedScales(g, n)
	if !ok {
		return ""
	}
	for _, s := range in {
		if reason := outside("scale ratio", s/out, 0x1p-10, 0x1p8); reason != "" {
			return reason
		}
	}
	return ""
}

// productLimits checks the scales of quantized products.
func productLimits(g *graph.Graph, n *graph.Node, _ []graph.Shape) string {
	if in, out, ok := quantizedScales(g, n); ok {
		return outside("scale ratio", in[0]*in[1]/out, 0x1p-16, 0x1p8)
	}
	return ""
}

// weightLimits checks the scales of sums of quantized products, for every output channel.
func weightLimits(g *graph.Graph, n *graph.Node, _ []graph.Shape) string {
	in, filter, out := &g.Values[n.In[0]], &g.Values[n.In[1]], &g.Values[n.Out[0]]
	if out.Datatype.Info().Quant != graph.PerTensor || in.Datatype.Info().Quant != graph.PerTensor {
		return ""
	}
	scales := filter.Quant.Scales
	if scales == nil {
		scales = []float32{filter.Quant.Scale}
	}
	for _, s := range scales {
		if reason := outside("scale of the sums", float32(in.Quant.Scale*s)/out.Quant.Scale, 0x1p-32, 0x1p8); reason != "" {
			return reason
		}
	}
	return ""
}

// boundLimits requires that the bounds of a quantized output are different elements. The library
// rounds bounds within the range of the type. Bounds of fp16 outputs are checked by halfLimits.
func boundLimits(g *graph.Graph, n *graph.Node, _ []graph.Shape) string {
	x := &g.Values[n.Out[0]]
	q, d := &x.Quant, x.Datatype.Info()
	if x.Datatype == graph.FP16 {
		return cmp.Or(halfLimits("lower bound", n.Min), halfLimits("upper bound", n.Max))
	}
	if d.Quant != graph.PerTensor {
		return ""
	}
	if graph.Quantize(n.Min/q.Scale, q.ZeroPoint, d.MinZero, d.MaxZero) >= graph.Quantize(n.Max/q.Scale, q.ZeroPoint, d.MinZero, d.MaxZero) {
		return "bounds that fall on one element"
	}
	return ""
}

// halfLimits requires a number that is normal in fp16, 0 or infinite.
func halfLimits(what string, x float32) string {
	a := max(x, -x)
	if a == 0 || a == graph.Inf {
		return ""
	}
	return outside("fp16 "+what, a, 0x1p-14, 65520)
}

// sameQuantization requires that input and output of a quantized node have the same scale and zero
// point.
func sameQuantization(g *graph.Graph, n *graph.Node, _ []graph.Shape) string {
	if graph.WantSame(g, n, n.In[0], n.Out[0]) != nil {
		return "input and output of different quantizations"
	}
	return ""
}

// finiteParam requires that a slope, alpha or padding value is finite in the node's datatype.
func finiteParam(of func(*graph.Node) float32) rule {
	return func(g *graph.Graph, n *graph.Node, _ []graph.Shape) string {
		x := of(n)
		if g.Values[n.Out[0]].Datatype == graph.FP16 {
			x = float16.Fromfloat32(x).Float32()
		}
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Sprintf("parameter %v", of(n))
		}
		return ""
	}
}

var finiteScalar = finiteParam(func(n *graph.Node) float32 { return graph.Params[graph.ScalarParams](n).Value })

// Limits of geometries. Exported models are far below them.
const (
	maxKernel = 1 << 10 // also for a pool over a whole image
	maxStep   = 1 << 8  // stride, dilation, adjustment
	maxResize = 1 << 13 // beyond it, positions computed in float32 may be outside the image
)

// windowLimits checks the geometry of windows: kernels, strides, dilations and paddings must be in
// the range of exported models. With a padding as large as the window, windows would be outside of
// the input.
func windowLimits(_ *graph.Graph, n *graph.Node, _ []graph.Shape) string {
	w := n.Window()
	if w.KernelH > maxKernel || w.KernelW > maxKernel {
		return fmt.Sprintf("%dx%d window, at most %d", w.KernelH, w.KernelW, maxKernel)
	}
	if max(w.StrideH, w.StrideW, w.DilationH, w.DilationW) > maxStep {
		return fmt.Sprintf("stride %dx%d and dilation %dx%d, at most %d", w.StrideH, w.StrideW, w.DilationH, w.DilationW, maxStep)
	}
	h, v := w.DilationH*(w.KernelH-1)+1, w.DilationW*(w.KernelW-1)+1
	if max(w.Top, w.Bottom) >= h+w.DilationH || max(w.Left, w.Right) >= v+w.DilationW {
		return fmt.Sprintf("padding %d+%d x %d+%d of a window of %dx%d", w.Top, w.Bottom, w.Left, w.Right, h, v)
	}
	if n.Flags&graph.FlagSamePadding != 0 && (max(w.DilationH, w.DilationW) > 1 || w.StrideH > w.KernelH || w.StrideW > w.KernelW) {
		return "same padding of a dilated window, or of a stride above its size" // the computed padding may be negative
	}
	return ""
}

// transposedLimits checks the geometry of transposed convolutions. The library splits one into a
// convolution for each position within a stride, and accesses memory outside of the output if one
// of these has no pixels.
func transposedLimits(_ *graph.Graph, n *graph.Node, s []graph.Shape) string {
	w, out := n.Window(), s[n.Out[0]]
	if out.Dim[1] < w.StrideH || out.Dim[2] < w.StrideW {
		return fmt.Sprintf("output of %v with stride %dx%d", out, w.StrideH, w.StrideW)
	}
	if max(w.Top, w.Bottom) > w.DilationH*(w.KernelH-1) || max(w.Left, w.Right) > w.DilationW*(w.KernelW-1) {
		return fmt.Sprintf("padding %d+%d x %d+%d of a %dx%d kernel", w.Top, w.Bottom, w.Left, w.Right, w.KernelH, w.KernelW)
	}
	return ""
}

// poolLimits checks the geometry of pools. With large paddings a window may be entirely in the
// padding, and the library does not check that the position it reads instead is inside the input.
func poolLimits(_ *graph.Graph, n *graph.Node, _ []graph.Shape) string {
	w := n.Window()
	switch {
	case w.KernelH*w.KernelW == 1 || w.StrideH > w.KernelH || w.StrideW > w.KernelW:
		return "pool of one element, or of a stride above its size"
	case w.DilationH*w.DilationW > 1 && (n.Flags&graph.FlagSamePadding != 0 || w.Top+w.Bottom+w.Left+w.Right > 0):
		return "padded pool of a dilated window"
	}
	return ""
}

// averageLimits checks average pools. The library stores pointers for the rows at the top, one in the
// middle and those at the bottom, which must be different rows.
func averageLimits(g *graph.Graph, n *graph.Node, s []graph.Shape) string {
	w, in, out := n.Window(), s[n.In[0]], s[n.Out[0]]
	if d := g.Values[n.In[0]].Datatype; d != graph.FP32 && d != graph.FP16 {
		return d.String() + " average pool"
	}
	if w.Top+w.Bottom+w.Left+w.Right == 0 && n.Flags&graph.FlagSamePadding == 0 {
		return ""
	}
	if n.Flags&graph.FlagSamePadding != 0 {
		return "average pool with same padding"
	}
	if graph.CeilDiv(w.Top, w.StrideH)+graph.CeilDiv(w.Bottom, w.StrideH) >= out.Dim[1] || min(in.Dim[1], in.Dim[2]) < 2 {
		return fmt.Sprintf("average pool whose padding %d+%d x %d+%d meets over %v", w.Top, w.Bottom, w.Left, w.Right, in)
	}
	return ""
}

// resizeLimits checks the sizes of a resize. The library computes positions in float32 and asserts
// that they are valid.
func resizeLimits(_ *graph.Graph, n *graph.Node, s []graph.Shape) string {
	in, out := s[n.In[0]], s[n.Out[0]]
	if max(in.Dim[1], in.Dim[2], out.Dim[1], out.Dim[2]) > maxResize {
		return fmt.Sprintf("resize of %v to %v, at most %d pixels in a row or column", in, out, maxResize)
	}
	return ""
}

// rowLimits requires that the rows of a product are the rows of its input. A product with
// graph.FlagReshape2D may regroup them, but a dynamically quantized input has one scale for each row of
// its own.
func rowLimits(g *graph.Graph, n *graph.Node, s []graph.Shape) string {
	if n.Flags&graph.FlagReshape2D != 0 && s[n.In[0]].Last() != n.InputChannels(g) {
		return fmt.Sprintf("rows of %d channels across an input of sizes %v", n.InputChannels(g), s[n.In[0]])
	}
	return ""
}

// nativeMove rejects int32: the library moves float and quantized elements only.
func nativeMove(g *graph.Graph, n *graph.Node, _ []graph.Shape) string {
	if d := g.Values[n.Out[0]].Datatype; d == graph.Int32 {
		return n.Type.Name + " of " + d.String()
	}
	return ""
}

// argmaxLimits rejects every argmax pool. The library asserts that both outputs are read, does not
// update the shape of the second one when the sizes change, and includes padding in the indices. No
// exporter writes the node.
func argmaxLimits(_ *graph.Graph, _ *graph.Node, _ []graph.Shape) string { return "argmax pool" }

// meanLimits rejects bounds: the library's mean has none.
func meanLimits(_ *graph.Graph, n *graph.Node, _ []graph.Shape) string {
	if n.Min > -graph.Inf || n.Max < graph.Inf {
		return fmt.Sprintf("bounds %v to %v of a mean", n.Min, n.Max)
	}
	return ""
}

// convolutionRules are those of all convolutions.
var convolutionRules = every(convolutionDatatypes, windowLimits, weightLimits, boundLimits)

// convolutionDatatypes rejects the combinations of datatypes that the library does not support.
func convolutionDatatypes(g *graph.Graph, n *graph.Node, _ []graph.Shape) string {
	in, filter := g.Values[n.In[0]].Datatype, g.Values[n.In[1]].Datatype
	switch {
	case in == graph.QDInt8 && n.Type.Tag == graph.TagDepthwiseConv2d:
		return "dynamically quantized depthwise convolution"
	case in == graph.QDInt8 && n.Type.Tag == graph.TagConvTranspose2d && g.Values[n.Out[0]].Datatype == graph.FP16:
		return "dynamically quantized transposed convolution to fp16"
	case filter == graph.FP16:
		return "fp16 filter of a convolution"
	}
	return ""
}

// fullyConnectedDatatypes returns the property of a node that the library does not support, "" if
// it supports the node.
func fullyConnectedDatatypes(g *graph.Graph, n *graph.Node, _ []graph.Shape) string {
	f := &g.Values[n.In[1]]
	switch {
	case f.Datatype == graph.BF16:
		return "bf16 filter"
	case f.Datatype != graph.QCInt8 && f.Datatype.Info().Quant != graph.Unquantized && g.Values[n.In[0]].Datatype == graph.FP32:
		return "4-bit filter of fp32 input"
	case f.Datatype == graph.QCInt8 && g.Values[n.In[0]].Datatype == graph.FP32 && n.In[2] != graph.None:
		return "8-bit filter and bias of fp32 input" // the library would scale the bias as well
	case f.Datatype.Info().Bits == 4 && f.Shape.Dim[1]%2 != 0:
		return "4-bit filter with an odd number of input channels"
	case f.Datatype == graph.QBInt4 && f.Quant.GroupSize%32 != 0:
		return "4-bit groups that are no multiple of 32"
	case n.In[2] != graph.None && !g.Values[n.In[2]].IsConst() && f.IsConst():
		return "bias computed at run time"
	}
	return ""
}

// oneQuantizedMatrix rejects several matrices with scales: the library would read as many scales as a matrix has columns,
// for each of them.
func oneQuantizedMatrix(g *graph.Graph, n *graph.Node, _ []graph.Shape) string {
	if b := &g.Values[n.In[1]]; b.Datatype == graph.QCInt8 && b.Shape.Leading(b.Shape.Rank-2) > 1 {
		return "product with several quantized matrices"
	}
	return ""
}
