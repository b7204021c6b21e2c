package graph

import "github.com/etrun-go/etrun/internal/flatbuf"

// FlagSamePadding pads the input so that the output has the input's size divided by the stride,
// rounded up (XNN_FLAG_TENSORFLOW_SAME_PADDING).
const FlagSamePadding = 4

// convolutionNodes work on values of sizes [N, H, W, C]. Filters are [output channels,
// kernel H, kernel W, input channels of a group]; a depthwise one is
// [1, kernel H, kernel W, output channels].
var convolutionNodes = []NodeType{
	convolutionNode(NodeType{Tag: TagConv2d, Name: "Conv2d", Check: checkConv2d, Shape: convolutionShape, Cost: convolutionCost}),
	convolutionNode(NodeType{Tag: TagDepthwiseConv2d, Name: "DepthwiseConv2d", Check: checkDepthwise, Shape: convolutionShape,
		Cost: convolutionCost}),
	convolutionNode(NodeType{Tag: TagConvTranspose2d, Name: "ConvTranspose2d", Check: checkConv2d, Shape: TransposedShape,
		Cost: transposedCost}),
}

// convolutionNode sets the fields that all convolutions share.
func convolutionNode(t NodeType) NodeType {
	t.read, t.Params, t.optional = readConvolution, newParams[Window], 2
	t.Convolution, t.Packs, t.Bounded = true, true, true
	t.widens = widensHalves
	return t
}

// widensHalves reports whether 16-bit filters are widened to float32: those of fp16 inputs.
func widensHalves(in Datatype) bool { return in == FP16 }

func readConvolution(r *Reader, t flatbuf.Table, n *Node) {
	w := n.Window()
	for i, f := range []struct {
		to   *int
		name string
	}{
		{&w.Top, "padding_top"}, {&w.Right, "padding_right"}, {&w.Bottom, "padding_bottom"}, {&w.Left, "padding_left"},
		{&w.KernelH, "kernel_height"}, {&w.KernelW, "kernel_width"},
		{&w.StrideH, "subsampling_height"}, {&w.StrideW, "subsampling_width"},
		{&w.DilationH, "dilation_height"}, {&w.DilationW, "dilation_width"},
		{&w.GroupIn, "group_input_channels"}, {&w.GroupOut, "group_output_channels"}, {&w.Groups, "groups"},
		{&w.AdjustH, "adjustment_height"}, {&w.AdjustW, "adjustment_width"},
	} {
		*f.to = extent(t, i, f.name)
	}
	n.In = []int{id(t, 15, "input1_id"), id(t, 16, "filter_id"), id(t, 17, "bias_id")}
	readOutput(t, 18, n)
}

// maxExtent is the limit of paddings, kernels, strides and dilations. It is far above those of any
// model, and no sum or product of them overflows.
const maxExtent = 1 << 15

// checkWindow rejects invalid geometries.
func checkWindow(n *Node, values ...int) error {
	w := n.Window()
	for _, v := range append(values, w.KernelH, w.KernelW, w.StrideH, w.StrideW, w.DilationH, w.DilationW) {
		if v < 1 || v > maxExtent {
			return n.fault("kernel %dx%d, stride %dx%d, dilation %dx%d; want 1 to %d each",
				w.KernelH, w.KernelW, w.StrideH, w.StrideW, w.DilationH, w.DilationW, maxExtent)
		}
	}
	for _, v := range []int{w.Top, w.Right, w.Bottom, w.Left, w.AdjustH, w.AdjustW} {
		if v > maxExtent {
			return n.fault("padding %d+%d x %d+%d, at most %d each", w.Top, w.Bottom, w.Left, w.Right, maxExtent)
		}
	}
	if same := n.Flags&FlagSamePadding != 0; same && w.Top+w.Right+w.Bottom+w.Left != 0 {
		return n.fault("same padding and explicit padding %d+%d x %d+%d", w.Top, w.Bottom, w.Left, w.Right)
	}
	return nil
}

// checkConv2d checks a convolution or transposed convolution.
func checkConv2d(g *Graph, n *Node) error {
	w := n.Window()
	flags := uint32(FlagSamePadding)
	if n.Type.Tag == TagConvTranspose2d {
		flags = 0
	}
	if err := checkConvolution(g, n, flags); err != nil {
		return err
	}
	filter := g.Values[n.In[1]].Shape
	if want := ShapeOf(w.Groups*w.GroupOut, w.KernelH, w.KernelW, w.GroupIn); filter != want {
		return n.fault("filter %s, want sizes %v", g.Describe(n.In[1]), want)
	}
	return checkFilter(g, n, 0, ConvolutionTypes)
}

// checkDepthwise checks a convolution with one input channel per group.
func checkDepthwise(g *Graph, n *Node) error {
	w := n.Window()
	if err := checkConvolution(g, n, FlagSamePadding); err != nil {
		return err
	}
	if w.GroupIn != 1 {
		return n.fault("%d input channels a group, want 1", w.GroupIn)
	}
	filter := g.Values[n.In[1]].Shape
	if want := ShapeOf(1, w.KernelH, w.KernelW, w.Groups*w.GroupOut); filter != want {
		return n.fault("filter %s, want sizes %v", g.Describe(n.In[1]), want)
	}
	return checkFilter(g, n, 3, ConvolutionTypes)
}

// checkConvolution checks the properties that all convolutions share. flags are the allowed flags.
func checkConvolution(g *Graph, n *Node, flags uint32) error {
	w := n.Window()
	if err := wantFlags(n, flags); err != nil {
		return err
	}
	if err := checkWindow(n); err != nil {
		return err
	}
	for _, c := range []int{w.Groups, w.GroupIn, w.GroupOut} {
		if c < 1 || Times(w.Groups, c) > MaxElements {
			return n.fault("%d groups of %d input and %d output channels", w.Groups, w.GroupIn, w.GroupOut)
		}
	}
	if !g.Values[n.In[1]].IsConst() {
		return n.fault("filter %s is not a constant", g.Describe(n.In[1]))
	}
	return nil
}

// checkFilter checks the datatypes of a node with weights, and requires that the filter's scales are
// along dimension dim, its output channels.
func checkFilter(g *Graph, n *Node, dim int, allowed []Weighted) error {
	f := &g.Values[n.In[1]]
	if f.Datatype.Info().Quant == PerChannel && f.Quant.ChannelDim != dim {
		return n.fault("filter %s with scales along dimension %d, want %d", g.Describe(n.In[1]), f.Quant.ChannelDim, dim)
	}
	return checkWeighted(g, n, allowed)
}

// Weighted is a combination of datatypes that a node with weights supports. The datatype of an
// absent bias is ignored.
type Weighted struct{ In, Filter, Bias, Out Datatype }

// ConvolutionTypes lists the combinations that convolutions support.
var ConvolutionTypes = []Weighted{
	{FP32, FP32, FP32, FP32},
	{FP16, FP32, FP32, FP16},
	{FP16, FP16, FP16, FP16},
	{BF16, BF16, BF16, BF16},
	{QInt8, QInt8, QInt32, QInt8},
	{QInt8, QCInt8, QCInt32, QInt8},
	{QUInt8, QUInt8, QInt32, QUInt8},
	{QDInt8, QCInt8, FP32, FP32},
	{QDInt8, QCInt8, FP32, FP16},
}

// checkWeighted checks the datatypes of input, filter, bias and output, and the bias.
func checkWeighted(g *Graph, n *Node, allowed []Weighted) error {
	got := Weighted{In: g.Values[n.In[0]].Datatype, Filter: g.Values[n.In[1]].Datatype, Out: g.Values[n.Out[0]].Datatype}
	bias := n.In[2]
	if bias != None {
		got.Bias = g.Values[bias].Datatype
	}
	for _, w := range allowed {
		if bias == None {
			w.Bias = 0
		}
		if got == w {
			if err := checkTokens(g, n); err != nil {
				return err
			}
			return checkBias(g, n)
		}
	}
	text := "no bias"
	if bias != None {
		text = "bias " + got.Bias.String()
	}
	return n.unsupported("input %v, filter %v, %s, output %v", got.In, got.Filter, text, got.Out)
}

// checkTokens checks the number of scales of a dynamically quantized input: convolutions require one
// per image, products of matrices one per row.
func checkTokens(g *Graph, n *Node) error {
	want := 1
	if n.Type.Convolution {
		want = 3
	}
	if x := &g.Values[n.In[0]]; x.Datatype == QDInt8 && x.Quant.Nonbatch != want {
		return n.fault("input %s where %d dimensions share a scale, want %d", g.Describe(n.In[0]), x.Quant.Nonbatch, want)
	}
	return nil
}

// checkBias requires a bias with one element per output channel, which is constant unless it is fp32.
// A quantized bias has the scale of the sums, so its own scale is not checked. The zero point of
// qint8 filters must be 0.
func checkBias(g *Graph, n *Node) error {
	if f := &g.Values[n.In[1]]; f.Datatype == QInt8 && f.Quant.ZeroPoint != 0 {
		return n.fault("filter %s with zero point %d, want 0", g.Describe(n.In[1]), f.Quant.ZeroPoint)
	}
	if n.In[2] == None {
		return nil
	}
	b := &g.Values[n.In[2]]
	want := n.OutputChannels(g)
	if b.Shape.Numel() != want || b.Shape.Last() != want {
		return n.fault("bias %s, want %d elements", g.Describe(n.In[2]), want)
	}
	if !b.IsConst() && b.Datatype != FP32 {
		return n.fault("bias %s is not a constant", g.Describe(n.In[2]))
	}
	return nil
}

// OutputChannels returns the innermost size of the output of a node with weights.
func (n *Node) OutputChannels(g *Graph) int {
	if n.Type.Convolution {
		return n.Window().Groups * n.Window().GroupOut
	}
	f := g.Values[n.In[1]].Shape
	if n.Flags&FlagTransposeWeights != 0 {
		return f.Dim[1]
	}
	return f.Dim[0]
}

// convolutionShape sets the output's shape [N, H', W', output channels].
func convolutionShape(g *Graph, n *Node, s []Shape) error {
	in := s[n.In[0]]
	if err := wantImage(g, n, s); err != nil {
		return err
	}
	out, err := WindowShape(n, in)
	if err != nil {
		return err
	}
	out.Dim[3] = n.Window().Groups * n.Window().GroupOut
	s[n.Out[0]] = out
	return nil
}

// wantImage requires an input [N, H, W, C] with the node's number of input channels.
func wantImage(g *Graph, n *Node, s []Shape) error {
	in := s[n.In[0]]
	if err := wantRank(g, n, n.In[0], s, 4); err != nil {
		return err
	}
	want := n.Window().Groups * n.Window().GroupIn
	if in.Dim[3] == want {
		return nil
	}
	return n.fault("input of sizes %v, want %d channels", in, want)
}

// WindowShape returns the shape of the output for windows over an input [N, H, W, C], with C
// unchanged.
func WindowShape(n *Node, in Shape) (Shape, error) {
	w := n.Window()
	out := in
	if n.Flags&FlagSamePadding != 0 {
		out.Dim[1], out.Dim[2] = CeilDiv(in.Dim[1], w.StrideH), CeilDiv(in.Dim[2], w.StrideW)
	} else {
		h := in.Dim[1] + w.Top + w.Bottom - (w.DilationH*(w.KernelH-1) + 1)
		v := in.Dim[2] + w.Left + w.Right - (w.DilationW*(w.KernelW-1) + 1)
		if h < 0 || v < 0 {
			return out, n.fault("input of sizes %v is smaller than the %dx%d kernel", in, w.KernelH, w.KernelW)
		}
		out.Dim[1], out.Dim[2] = h/w.StrideH+1, v/w.StrideW+1
	}
	return out, nil
}

// CeilDiv returns a/b, rounded up.
func CeilDiv(a, b int) int { return (a + b - 1) / b }

// Padding returns the node's padding at the top and left of an input of height h and width w.
func (n *Node) Padding(h, w int) (top, left int) {
	g := n.Window()
	if n.Flags&FlagSamePadding == 0 {
		return g.Top, g.Left
	}
	total := func(in, kernel, stride, dilation int) int {
		return max((CeilDiv(in, stride)-1)*stride+dilation*(kernel-1)+1-in, 0)
	}
	return total(h, g.KernelH, g.StrideH, g.DilationH) / 2, total(w, g.KernelW, g.StrideW, g.DilationW) / 2
}

// TransposedShape sets the output's shape: a convolution of it would have the input's shape.
func TransposedShape(g *Graph, n *Node, s []Shape) error {
	w := n.Window()
	if err := wantImage(g, n, s); err != nil {
		return err
	}
	in := s[n.In[0]]
	h := extended(in.Dim[1], w.StrideH, w.AdjustH+w.DilationH*(w.KernelH-1)-w.Top-w.Bottom)
	v := extended(in.Dim[2], w.StrideW, w.AdjustW+w.DilationW*(w.KernelW-1)-w.Left-w.Right)
	if h < 1 || v < 1 {
		return n.fault("padding %d+%d x %d+%d leaves nothing of the output", w.Top, w.Bottom, w.Left, w.Right)
	}
	if w.AdjustH >= w.StrideH || w.AdjustW >= w.StrideW {
		return n.fault("adjustment %dx%d for stride %dx%d", w.AdjustH, w.AdjustW, w.StrideH, w.StrideW)
	}
	s[n.Out[0]] = ShapeOf(in.Dim[0], h, v, w.Groups*w.GroupOut)
	return nil
}

// extended returns the size of a transposed convolution's output, or MaxElements+1 for larger ones,
// which the check of the shape rejects.
func extended(size, stride, more int) int {
	return int(min(int64(stride)*int64(size-1)+int64(more)+1, MaxElements+1))
}

func convolutionCost(_ *Graph, n *Node, s []Shape) int64 {
	w := n.Window()
	return Times(s[n.Out[0]].Numel(), w.KernelH, w.KernelW, w.GroupIn)
}

func transposedCost(_ *Graph, n *Node, s []Shape) int64 {
	w := n.Window()
	return Times(s[n.In[0]].Numel(), w.KernelH, w.KernelW, w.GroupOut)
}

// maxRepeat is the largest number of outputs of a channel for which channels are repeated instead of multiplied by matrices.
const maxRepeat = 16

// IsDepthwise reports whether a node is a depthwise convolution with one output channel per input channel, or with a few. Others
// are computed as grouped convolutions.
func (n *Node) IsDepthwise() bool {
	w := n.Window()
	return n.Type.Tag == TagDepthwiseConv2d && (w.GroupOut == 1 || w.Groups > 1 && w.GroupOut <= maxRepeat)
}

// FilterOf returns the datatype of the filter of a convolution or a fully connected node.
func (g *Graph) FilterOf(n *Node) Datatype {
	if len(n.In) < 2 || n.In[1] == None {
		return 0
	}
	return g.Values[n.In[1]].Datatype
}
