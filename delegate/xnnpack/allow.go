package xnnpack

import (
	"cmp"
	"fmt"
	"math"

	"github.com/x448/float16"
)

// Restrictions of the native engine. On graphs that no exporter writes, the library may abort with
// an assertion or read out of bounds. A node therefore runs in the library only if every rule of its
// table entry accepts its parameters, quantization and shapes. If one node is rejected, the whole
// graph runs on the Go engine. The rules are checked on the graph after fuse, at the declared shapes
// and again at the shapes of every call.

// rule is a condition on a node at given shapes. It returns the reason why the library must not run
// the node, or "".
type rule func(g *graph, n *node, s []shape) string

// every combines rules: it returns the first reason.
func every(rules ...rule) rule {
	return func(g *graph, n *node, s []shape) string {
		for _, r := range rules {
			if reason := r(g, n, s); reason != "" {
				return reason
			}
		}
		return ""
	}
}

// refuses returns the first reason why the library must not run the graph at the given shapes, or
// "".
func refuses(g *graph, s []shape) string {
	for _, v := range g.Args {
		if g.Values[v].Datatype.info().native == noNative {
			return fmt.Sprintf("argument %s", g.describe(v))
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if reason := refusesNode(g, n, s); reason != "" {
			return fmt.Sprintf("%s: %s", n.place(), reason)
		}
	}
	return ""
}

// refusesNode returns the first reason why the library must not run the node, or "".
func refusesNode(g *graph, n *node, s []shape) string {
	for _, list := range [2][]int{n.In, n.Out} {
		for _, v := range list {
			if v != none && g.Values[v].Datatype.info().native == noNative {
				return g.Values[v].Datatype.String() + " values"
			}
		}
	}
	if nativeTypeOf(n).rule == nil {
		return ""
	}
	return nativeTypeOf(n).rule(g, n, s)
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
func quantizedScales(g *graph, n *node) (in []float32, out float32, ok bool) {
	y := &g.Values[n.Out[0]]
	if y.Datatype.info().quant != perTensor {
		return nil, 0, false
	}
	for _, v := range n.In {
		if g.Values[v].Datatype.info().quant != perTensor {
			return nil, 0, false
		}
		in = append(in, g.Values[v].Quant.Scale)
	}
	return in, y.Quant.Scale, true
}

// The fixed-point arithmetic of quantized kernels asserts the following bounds of scales
// (xnn_init_*_params).

// sumLimits checks the scales of quantized sums and differences.
func sumLimits(g *graph, n *node, _ []shape) string {
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
func productLimits(g *graph, n *node, _ []shape) string {
	if in, out, ok := quantizedScales(g, n); ok {
		return outside("scale ratio", in[0]*in[1]/out, 0x1p-16, 0x1p8)
	}
	return ""
}

// convertLimits checks the scales of a conversion to another quantization.
func convertLimits(g *graph, n *node, _ []shape) string {
	x, y := &g.Values[n.In[0]], &g.Values[n.Out[0]]
	switch { // with fp16, scales and their reciprocals are fp16 too
	case x.Datatype == fp16 && y.Datatype.info().quant == perTensor:
		return outside("scale of halves", y.Quant.Scale, 0x1p-14, 0x1p14)
	case y.Datatype == fp16 && x.Datatype.info().quant == perTensor:
		return outside("scale of halves", x.Quant.Scale, 0x1p-14, 0x1p14)
	}
	if in, out, ok := quantizedScales(g, n); ok {
		return outside("scale ratio", in[0]/out, 0x1p-8, 0x1p7)
	}
	return ""
}

// leakyLimits checks the scales of a quantized LeakyReLU, above and below 0.
func leakyLimits(g *graph, n *node, s []shape) string {
	in, out, ok := quantizedScales(g, n)
	if !ok {
		return ""
	}
	if reason := convertLimits(g, n, s); reason != "" {
		return reason
	}
	below := in[0] / out * params[scalarParams](n).value
	return outside("scale ratio below 0", max(below, -below), 0x1p-8, 0x1.FFFCp6)
}

// weightLimits checks the scales of sums of quantized products, for every output channel.
func weightLimits(g *graph, n *node, _ []shape) string {
	in, filter, out := &g.Values[n.In[0]], &g.Values[n.In[1]], &g.Values[n.Out[0]]
	if out.Datatype.info().quant != perTensor || in.Datatype.info().quant != perTensor {
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
func boundLimits(g *graph, n *node, _ []shape) string {
	x := &g.Values[n.Out[0]]
	q, d := &x.Quant, x.Datatype.info()
	if x.Datatype == fp16 {
		return cmp.Or(halfLimits("lower bound", n.Min), halfLimits("upper bound", n.Max))
	}
	if d.quant != perTensor {
		return ""
	}
	if quantize(n.Min/q.Scale, q.ZeroPoint, d.minZero, d.maxZero) >= quantize(n.Max/q.Scale, q.ZeroPoint, d.minZero, d.maxZero) {
		return "bounds that fall on one element"
	}
	return ""
}

// halfLimits requires a number that is normal in fp16, 0 or infinite.
func halfLimits(what string, x float32) string {
	a := max(x, -x)
	if a == 0 || a == inf {
		return ""
	}
	return outside("fp16 "+what, a, 0x1p-14, 65520)
}

// sameQuantization requires that input and output of a quantized node have the same scale and zero
// point.
func sameQuantization(g *graph, n *node, _ []shape) string {
	if wantSame(g, n, n.In[0], n.Out[0]) != nil {
		return "input and output of different quantizations"
	}
	return ""
}

// finiteParam requires that a slope, alpha or padding value is finite in the node's datatype.
func finiteParam(of func(*node) float32) rule {
	return func(g *graph, n *node, _ []shape) string {
		x := of(n)
		if g.Values[n.Out[0]].Datatype == fp16 {
			x = float16.Fromfloat32(x).Float32()
		}
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Sprintf("parameter %v", of(n))
		}
		return ""
	}
}

var finiteScalar = finiteParam(func(n *node) float32 { return params[scalarParams](n).value })

// Limits of geometries. Exported models are far below them.
const (
	maxKernel = 1 << 10 // also for a pool over a whole image
	maxStep   = 1 << 8  // stride, dilation, adjustment
	maxResize = 1 << 13 // beyond it, positions computed in float32 may be outside the image
)

// windowLimits checks the geometry of windows: kernels, strides, dilations and paddings must be in
// the range of exported models. With a padding as large as the window, windows would be outside of
// the input.
func windowLimits(_ *graph, n *node, _ []shape) string {
	w := n.window()
	if w.kernelH > maxKernel || w.kernelW > maxKernel {
		return fmt.Sprintf("%dx%d window, at most %d", w.kernelH, w.kernelW, maxKernel)
	}
	if max(w.strideH, w.strideW, w.dilationH, w.dilationW) > maxStep {
		return fmt.Sprintf("stride %dx%d and dilation %dx%d, at most %d", w.strideH, w.strideW, w.dilationH, w.dilationW, maxStep)
	}
	h, v := w.dilationH*(w.kernelH-1)+1, w.dilationW*(w.kernelW-1)+1
	if max(w.top, w.bottom) >= h+w.dilationH || max(w.left, w.right) >= v+w.dilationW {
		return fmt.Sprintf("padding %d+%d x %d+%d of a window of %dx%d", w.top, w.bottom, w.left, w.right, h, v)
	}
	if n.Flags&flagSamePadding != 0 && (max(w.dilationH, w.dilationW) > 1 || w.strideH > w.kernelH || w.strideW > w.kernelW) {
		return "same padding of a dilated window, or of a stride above its size" // the computed padding may be negative
	}
	return ""
}

// transposedLimits checks the geometry of transposed convolutions. The library splits one into a
// convolution for each position within a stride, and accesses memory outside of the output if one
// of these has no pixels.
func transposedLimits(_ *graph, n *node, s []shape) string {
	w, out := n.window(), s[n.Out[0]]
	if out.dim[1] < w.strideH || out.dim[2] < w.strideW {
		return fmt.Sprintf("output of %v with stride %dx%d", out, w.strideH, w.strideW)
	}
	if max(w.top, w.bottom) > w.dilationH*(w.kernelH-1) || max(w.left, w.right) > w.dilationW*(w.kernelW-1) {
		return fmt.Sprintf("padding %d+%d x %d+%d of a %dx%d kernel", w.top, w.bottom, w.left, w.right, w.kernelH, w.kernelW)
	}
	return ""
}

// poolLimits checks the geometry of pools. With large paddings a window may be entirely in the
// padding, and the library does not check that the position it reads instead is inside the input.
func poolLimits(_ *graph, n *node, _ []shape) string {
	w := n.window()
	switch {
	case w.kernelH*w.kernelW == 1 || w.strideH > w.kernelH || w.strideW > w.kernelW:
		return "pool of one element, or of a stride above its size"
	case w.dilationH*w.dilationW > 1 && (n.Flags&flagSamePadding != 0 || w.top+w.bottom+w.left+w.right > 0):
		return "padded pool of a dilated window"
	}
	return ""
}

// averageLimits checks average pools. The library stores pointers for the rows at the top, one in the
// middle and those at the bottom, which must be different rows.
func averageLimits(g *graph, n *node, s []shape) string {
	w, in, out := n.window(), s[n.In[0]], s[n.Out[0]]
	if d := g.Values[n.In[0]].Datatype; d != fp32 && d != fp16 {
		return d.String() + " average pool"
	}
	if w.top+w.bottom+w.left+w.right == 0 && n.Flags&flagSamePadding == 0 {
		return ""
	}
	if n.Flags&flagSamePadding != 0 {
		return "average pool with same padding"
	}
	if ceilDiv(w.top, w.strideH)+ceilDiv(w.bottom, w.strideH) >= out.dim[1] || min(in.dim[1], in.dim[2]) < 2 {
		return fmt.Sprintf("average pool whose padding %d+%d x %d+%d meets over %v", w.top, w.bottom, w.left, w.right, in)
	}
	return ""
}

// resizeLimits checks the sizes of a resize. The library computes positions in float32 and asserts
// that they are valid.
func resizeLimits(_ *graph, n *node, s []shape) string {
	in, out := s[n.In[0]], s[n.Out[0]]
	if max(in.dim[1], in.dim[2], out.dim[1], out.dim[2]) > maxResize {
		return fmt.Sprintf("resize of %v to %v, at most %d pixels in a row or column", in, out, maxResize)
	}
	return ""
}

// rowLimits requires that the rows of a product are the rows of its input. A product with
// flagReshape2D may regroup them, but a dynamically quantized input has one scale for each row of
// its own.
func rowLimits(g *graph, n *node, s []shape) string {
	if n.Flags&flagReshape2D != 0 && s[n.In[0]].last() != n.inputChannels(g) {
		return fmt.Sprintf("rows of %d channels across an input of sizes %v", n.inputChannels(g), s[n.In[0]])
	}
	return ""
}

// nativeMove rejects int32: the library moves float and quantized elements only.
func nativeMove(g *graph, n *node, _ []shape) string {
	if d := g.Values[n.Out[0]].Datatype; d == plainInt32 {
		return n.Type.name + " of " + d.String()
	}
	return ""
}

// argmaxLimits rejects every argmax pool. The library asserts that both outputs are read, does not
// update the shape of the second one when the sizes change, and includes padding in the indices. No
// exporter writes the node.
func argmaxLimits(_ *graph, _ *node, _ []shape) string { return "argmax pool" }

// meanLimits rejects bounds: the library's mean has none.
func meanLimits(_ *graph, n *node, _ []shape) string {
	if n.Min > -inf || n.Max < inf {
		return fmt.Sprintf("bounds %v to %v of a mean", n.Min, n.Max)
	}
	return ""
}

// convolutionRules are those of all convolutions.
var convolutionRules = every(convolutionDatatypes, windowLimits, weightLimits, boundLimits)

// convolutionDatatypes rejects the combinations of datatypes that the library does not support.
func convolutionDatatypes(g *graph, n *node, _ []shape) string {
	in, filter := g.Values[n.In[0]].Datatype, g.Values[n.In[1]].Datatype
	switch {
	case in == qdint8 && n.Type.tag == tagDepthwiseConv2d:
		return "dynamically quantized depthwise convolution"
	case in == qdint8 && n.Type.tag == tagConvTranspose2d && g.Values[n.Out[0]].Datatype == fp16:
		return "dynamically quantized transposed convolution to fp16"
	case filter == fp16:
		return "fp16 filter of a convolution"
	}
	return ""
}

// fullyConnectedDatatypes returns the property of a node that the library does not support, "" if
// it supports the node.
func fullyConnectedDatatypes(g *graph, n *node, _ []shape) string {
	f := &g.Values[n.In[1]]
	switch {
	case f.Datatype == bf16:
		return "bf16 filter"
	case f.Datatype.info().quant != plain && g.Values[n.In[0]].Datatype == fp32:
		return "quantized filter of fp32 input" // the library would scale the bias as well
	case f.Datatype.info().bits == 4 && f.Shape.dim[1]%2 != 0:
		return "4-bit filter with an odd number of input channels"
	case f.Datatype == qbint4 && f.Quant.GroupSize%32 != 0:
		return "4-bit groups that are no multiple of 32"
	case n.In[2] != none && !g.Values[n.In[2]].isConst() && f.isConst():
		return "bias computed at run time"
	}
	return ""
}

// oneQuantizedMatrix rejects several matrices with scales: the library would read as many scales as a matrix has columns,
// for each of them.
func oneQuantizedMatrix(g *graph, n *node, _ []shape) string {
	if b := &g.Values[n.In[1]]; b.Datatype == qcint8 && b.Shape.leading(b.Shape.rank-2) > 1 {
		return "product with several quantized matrices"
	}
	return ""
}
