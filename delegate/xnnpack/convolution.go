package xnnpack

import (
	"github.com/etrun-go/etrun/internal/flatbuf"
)

// flagSamePadding pads the input so that the output has the input's size divided by the stride,
// rounded up (XNN_FLAG_TENSORFLOW_SAME_PADDING).
const flagSamePadding = 4

// convolutionNodes work on values of sizes [N, H, W, C]. Filters are [output channels,
// kernel H, kernel W, input channels of a group]; a depthwise one is
// [1, kernel H, kernel W, output channels].
var convolutionNodes = []nodeType{
	convolutionNode(nodeType{tag: tagConv2d, name: "Conv2d", check: checkConv2d, shape: convolutionShape, cost: convolutionCost}),
	convolutionNode(nodeType{tag: tagDepthwiseConv2d, name: "DepthwiseConv2d", check: checkDepthwise, shape: convolutionShape,
		cost: convolutionCost}),
	convolutionNode(nodeType{tag: tagConvTranspose2d, name: "ConvTranspose2d", check: checkConv2d, shape: transposedShape,
		cost: transposedCost}),
}

// convolutionNode sets the fields that all convolutions share.
func convolutionNode(t nodeType) nodeType {
	t.read, t.params, t.optional = readConvolution, newParams[window], 2
	t.convolution, t.packs, t.bounded = true, true, true
	t.widens = besideHalves
	return t
}

// besideHalves reports whether 16-bit filters are widened to float32: those of fp16 inputs.
func besideHalves(in datatype) bool { return in == fp16 }

func readConvolution(r *reader, t flatbuf.Table, n *node) {
	w := n.window()
	for i, f := range []struct {
		to   *int
		name string
	}{
		{&w.top, "padding_top"}, {&w.right, "padding_right"}, {&w.bottom, "padding_bottom"}, {&w.left, "padding_left"},
		{&w.kernelH, "kernel_height"}, {&w.kernelW, "kernel_width"},
		{&w.strideH, "subsampling_height"}, {&w.strideW, "subsampling_width"},
		{&w.dilationH, "dilation_height"}, {&w.dilationW, "dilation_width"},
		{&w.groupIn, "group_input_channels"}, {&w.groupOut, "group_output_channels"}, {&w.groups, "groups"},
		{&w.adjustH, "adjustment_height"}, {&w.adjustW, "adjustment_width"},
	} {
		*f.to = extent(t, i, f.name)
	}
	n.In = []int{id(t, 15, "input1_id"), id(t, 16, "filter_id"), id(t, 17, "bias_id")}
	n.Out = []int{id(t, 18, "output_id")}
	n.Flags = t.Uint32(19, "flags", 0)
}

// maxExtent is the limit of paddings, kernels, strides and dilations. It is far above those of any
// model, and no sum or product of them overflows.
const maxExtent = 1 << 15

// checkWindow rejects invalid geometries.
func checkWindow(n *node, values ...int) error {
	w := n.window()
	for _, v := range append(values, w.kernelH, w.kernelW, w.strideH, w.strideW, w.dilationH, w.dilationW) {
		if v < 1 || v > maxExtent {
			return n.fault("kernel %dx%d, stride %dx%d, dilation %dx%d; want 1 to %d each",
				w.kernelH, w.kernelW, w.strideH, w.strideW, w.dilationH, w.dilationW, maxExtent)
		}
	}
	for _, v := range []int{w.top, w.right, w.bottom, w.left, w.adjustH, w.adjustW} {
		if v > maxExtent {
			return n.fault("padding %d+%d x %d+%d, at most %d each", w.top, w.bottom, w.left, w.right, maxExtent)
		}
	}
	if same := n.Flags&flagSamePadding != 0; same && w.top+w.right+w.bottom+w.left != 0 {
		return n.fault("same padding and explicit padding %d+%d x %d+%d", w.top, w.bottom, w.left, w.right)
	}
	return nil
}

// checkConv2d checks a convolution or transposed convolution.
func checkConv2d(g *graph, n *node) error {
	w := n.window()
	flags := uint32(flagSamePadding)
	if n.Type.tag == tagConvTranspose2d {
		flags = 0
	}
	if err := checkConvolution(g, n, flags); err != nil {
		return err
	}
	filter := g.Values[n.In[1]].Shape
	if want := shapeOf(w.groups*w.groupOut, w.kernelH, w.kernelW, w.groupIn); filter != want {
		return n.fault("filter %s, want sizes %v", g.describe(n.In[1]), want)
	}
	return checkFilter(g, n, 0, convolutionTypes)
}

// checkDepthwise checks a convolution with one input channel per group.
func checkDepthwise(g *graph, n *node) error {
	w := n.window()
	if err := checkConvolution(g, n, flagSamePadding); err != nil {
		return err
	}
	if w.groupIn != 1 {
		return n.fault("%d input channels a group, want 1", w.groupIn)
	}
	filter := g.Values[n.In[1]].Shape
	if want := shapeOf(1, w.kernelH, w.kernelW, w.groups*w.groupOut); filter != want {
		return n.fault("filter %s, want sizes %v", g.describe(n.In[1]), want)
	}
	return checkFilter(g, n, 3, convolutionTypes)
}

// checkConvolution checks the properties that all convolutions share. flags are the allowed flags.
func checkConvolution(g *graph, n *node, flags uint32) error {
	w := n.window()
	if err := wantFlags(n, flags); err != nil {
		return err
	}
	if err := checkWindow(n); err != nil {
		return err
	}
	for _, c := range []int{w.groups, w.groupIn, w.groupOut} {
		if c < 1 || times(w.groups, c) > maxElements {
			return n.fault("%d groups of %d input and %d output channels", w.groups, w.groupIn, w.groupOut)
		}
	}
	if !g.Values[n.In[1]].isConst() {
		return n.fault("filter %s is not a constant", g.describe(n.In[1]))
	}
	return nil
}

// checkFilter checks the datatypes of a node with weights, and requires that the filter's scales are
// along dimension dim, its output channels.
func checkFilter(g *graph, n *node, dim int, allowed []weighted) error {
	f := &g.Values[n.In[1]]
	if f.Datatype.info().quant == perChannel && f.Quant.ChannelDim != dim {
		return n.fault("filter %s with scales along dimension %d, want %d", g.describe(n.In[1]), f.Quant.ChannelDim, dim)
	}
	return checkWeighted(g, n, allowed)
}

// weighted is a combination of datatypes that a node with weights supports. The datatype of an
// absent bias is ignored.
type weighted struct{ in, filter, bias, out datatype }

// convolutionTypes lists the combinations that convolutions support.
var convolutionTypes = []weighted{
	{fp32, fp32, fp32, fp32},
	{fp16, fp32, fp32, fp16},
	{fp16, fp16, fp16, fp16},
	{bf16, bf16, bf16, bf16},
	{qint8, qint8, qint32, qint8},
	{qint8, qcint8, qcint32, qint8},
	{quint8, quint8, qint32, quint8},
	{qdint8, qcint8, fp32, fp32},
	{qdint8, qcint8, fp32, fp16},
}

// checkWeighted checks the datatypes of input, filter, bias and output, and the bias.
func checkWeighted(g *graph, n *node, allowed []weighted) error {
	got := weighted{in: g.Values[n.In[0]].Datatype, filter: g.Values[n.In[1]].Datatype, out: g.Values[n.Out[0]].Datatype}
	bias := n.In[2]
	if bias != none {
		got.bias = g.Values[bias].Datatype
	}
	for _, w := range allowed {
		if bias == none {
			w.bias = 0
		}
		if got == w {
			if err := checkTokens(g, n); err != nil {
				return err
			}
			return checkBias(g, n)
		}
	}
	text := "no bias"
	if bias != none {
		text = "bias " + got.bias.String()
	}
	return n.beyond("input %v, filter %v, %s, output %v", got.in, got.filter, text, got.out)
}

// checkTokens checks the number of scales of a dynamically quantized input: convolutions require one
// per image, products of matrices one per row.
func checkTokens(g *graph, n *node) error {
	want := 1
	if n.Type.convolution {
		want = 3
	}
	if x := &g.Values[n.In[0]]; x.Datatype == qdint8 && x.Quant.Nonbatch != want {
		return n.fault("input %s where %d dimensions share a scale, want %d", g.describe(n.In[0]), x.Quant.Nonbatch, want)
	}
	return nil
}

// checkBias requires a bias with one element per output channel, which is constant unless it is fp32.
// A quantized bias has the scale of the sums, so its own scale is not checked. The zero point of
// qint8 filters must be 0.
func checkBias(g *graph, n *node) error {
	if f := &g.Values[n.In[1]]; f.Datatype == qint8 && f.Quant.ZeroPoint != 0 {
		return n.fault("filter %s with zero point %d, want 0", g.describe(n.In[1]), f.Quant.ZeroPoint)
	}
	if n.In[2] == none {
		return nil
	}
	b := &g.Values[n.In[2]]
	want := n.outputChannels(g)
	if b.Shape.numel() != want || b.Shape.last() != want {
		return n.fault("bias %s, want %d elements", g.describe(n.In[2]), want)
	}
	if !b.isConst() && b.Datatype != fp32 {
		return n.fault("bias %s is not a constant", g.describe(n.In[2]))
	}
	return nil
}

// outputChannels returns the innermost size of the output of a node with weights.
func (n *node) outputChannels(g *graph) int {
	if n.Type.convolution {
		return n.window().groups * n.window().groupOut
	}
	f := g.Values[n.In[1]].Shape
	if n.Flags&flagTransposeWeights != 0 {
		return f.dim[1]
	}
	return f.dim[0]
}

// convolutionShape sets the output's shape [N, H', W', output channels].
func convolutionShape(g *graph, n *node, s []shape) error {
	in := s[n.In[0]]
	if err := wantImage(g, n, s); err != nil {
		return err
	}
	out, err := windowShape(n, in)
	if err != nil {
		return err
	}
	out.dim[3] = n.window().groups * n.window().groupOut
	s[n.Out[0]] = out
	return nil
}

// wantImage requires an input [N, H, W, C] with the node's number of input channels.
func wantImage(g *graph, n *node, s []shape) error {
	in := s[n.In[0]]
	if err := wantRank(g, n, n.In[0], s, 4); err != nil {
		return err
	}
	want := n.window().groups * n.window().groupIn
	if in.dim[3] == want {
		return nil
	}
	return n.fault("input of sizes %v, want %d channels", in, want)
}

// windowShape returns the shape of the output for windows over an input [N, H, W, C], with C
// unchanged.
func windowShape(n *node, in shape) (shape, error) {
	w := n.window()
	out := in
	if n.Flags&flagSamePadding != 0 {
		out.dim[1], out.dim[2] = ceilDiv(in.dim[1], w.strideH), ceilDiv(in.dim[2], w.strideW)
	} else {
		h := in.dim[1] + w.top + w.bottom - (w.dilationH*(w.kernelH-1) + 1)
		v := in.dim[2] + w.left + w.right - (w.dilationW*(w.kernelW-1) + 1)
		if h < 0 || v < 0 {
			return out, n.fault("input of sizes %v is smaller than the %dx%d kernel", in, w.kernelH, w.kernelW)
		}
		out.dim[1], out.dim[2] = h/w.strideH+1, v/w.strideW+1
	}
	return out, nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// padding returns the node's padding at the top and left of an input of height h and width w.
func (n *node) padding(h, w int) (top, left int) {
	g := n.window()
	if n.Flags&flagSamePadding == 0 {
		return g.top, g.left
	}
	total := func(in, kernel, stride, dilation int) int {
		return max((ceilDiv(in, stride)-1)*stride+dilation*(kernel-1)+1-in, 0)
	}
	return total(h, g.kernelH, g.strideH, g.dilationH) / 2, total(w, g.kernelW, g.strideW, g.dilationW) / 2
}

// transposedShape sets the output's shape: a convolution of it would have the input's shape.
func transposedShape(g *graph, n *node, s []shape) error {
	w := n.window()
	if err := wantImage(g, n, s); err != nil {
		return err
	}
	in := s[n.In[0]]
	h := extended(in.dim[1], w.strideH, w.adjustH+w.dilationH*(w.kernelH-1)-w.top-w.bottom)
	v := extended(in.dim[2], w.strideW, w.adjustW+w.dilationW*(w.kernelW-1)-w.left-w.right)
	if h < 1 || v < 1 {
		return n.fault("padding %d+%d x %d+%d leaves nothing of the output", w.top, w.bottom, w.left, w.right)
	}
	if w.adjustH >= w.strideH || w.adjustW >= w.strideW {
		return n.fault("adjustment %dx%d for stride %dx%d", w.adjustH, w.adjustW, w.strideH, w.strideW)
	}
	s[n.Out[0]] = shapeOf(in.dim[0], h, v, w.groups*w.groupOut)
	return nil
}

// extended returns the size of a transposed convolution's output, or maxElements+1 for larger ones,
// which the check of the shape rejects.
func extended(size, stride, more int) int {
	return int(min(int64(stride)*int64(size-1)+int64(more)+1, maxElements+1))
}

func convolutionCost(_ *graph, n *node, s []shape) int64 {
	w := n.window()
	return times(s[n.Out[0]].numel(), w.kernelH, w.kernelW, w.groupIn)
}

func transposedCost(_ *graph, n *node, s []shape) int64 {
	w := n.window()
	return times(s[n.In[0]].numel(), w.kernelH, w.kernelW, w.groupOut)
}
