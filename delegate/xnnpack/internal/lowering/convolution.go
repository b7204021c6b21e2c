package lowering

import (
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var convolutionLowerings = []lowerRow{
	{class: opclass.Convolution, emit: convolutionCall, quantizes: true, weights: true, bounds: true},
	{class: opclass.BatchNorm, emit: batchNormCall, bounds: true},
}

// convolutionCall lowers a convolution of images of [N, C, H, W], or of [N, C, W] as images of one
// row.
func convolutionCall(c *lowerCall) error {
	w, err := c.geometry()
	if err != nil {
		return err
	}
	x, y, image := c.call.Args[0], c.out(), len(c.arg(0).Sizes) == 4
	bias := graph.None
	if !c.none(2) {
		bias = c.call.Args[2]
	}
	t := graph.NodeTypes[graph.TagConv2d]
	switch {
	case c.bool(6):
		t = graph.NodeTypes[graph.TagConvTranspose2d]
	case w.Groups > 1 && w.GroupIn == 1:
		t = graph.NodeTypes[graph.TagDepthwiseConv2d]
	}
	in := c.value(x, channelsLast)
	filter, err := c.filter(t, c.call.Args[1], w)
	if err != nil {
		return err
	}
	if bias, err = c.bias(bias, filter, in, w.Groups*w.GroupOut); err != nil {
		return err
	}
	if image {
		*c.Node(t, []int{in, filter, bias}, c.result(y, channelsLast)).Window() = w
		return nil
	}
	s := memoryShapeOf(&c.vals[y], channelsLast)
	out := c.made(rowOf(s))
	in = c.reshaped(in, rowOf(c.Graph.Values[in].Shape))
	*c.Node(t, []int{in, filter, bias}, out).Window() = w
	c.put(y, channelsLast, c.reshaped(out, s))
	return nil
}

// rowOf returns the shape [N, 1, W, C] of [N, W, C].
func rowOf(s graph.Shape) graph.Shape { return graph.ShapeOf(s.Dim[0], 1, s.Dim[1], s.Dim[2]) }

// geometry reads a convolution's arguments.
func (c *lowerCall) geometry() (w graph.Window, err error) {
	x, f, rank := c.arg(0), c.arg(1), len(c.arg(0).Sizes)
	switch {
	case rank != 3 && rank != 4 || len(f.Sizes) != rank:
		return w, refuse("a convolution of %d dimensions, want 3 or 4", rank)
	case !f.IsConst():
		return w, refuse("the filter is not a constant")
	}
	if rank == 3 {
		if err := c.static(c.call.Args[0], c.out()); err != nil {
			return w, err
		}
	}
	list := func(i, fallback int) [2]int {
		pair := c.pair(i, [2]int{fallback, fallback})
		if rank == 3 {
			pair[0] = fallback
		}
		return pair
	}
	stride, pad, dilation, adjust, groups := list(3, 1), list(4, 0), list(5, 1), list(7, 0), c.int(8)
	channels, transposed := x.Sizes[1], c.bool(6)
	if groups < 1 || channels%groups != 0 || f.Sizes[0]%groups != 0 || min(pad[0], pad[1]) < 0 {
		return w, refuse("%d groups of %d channels, padding %v", groups, channels, pad)
	}
	w = graph.Window{Top: pad[0], Bottom: pad[0], Left: pad[1], Right: pad[1], KernelH: 1, KernelW: f.Sizes[rank-1],
		StrideH: stride[0], StrideW: stride[1], DilationH: dilation[0], DilationW: dilation[1],
		Groups: groups, GroupIn: f.Sizes[1], GroupOut: f.Sizes[0] / groups}
	if rank == 4 {
		w.KernelH = f.Sizes[2]
	}
	if transposed {
		w.GroupIn, w.GroupOut, w.AdjustH, w.AdjustW = f.Sizes[0]/groups, f.Sizes[1], adjust[0], adjust[1]
	}
	if w.GroupIn*groups != channels {
		return w, refuse("a filter of sizes %v for %d channels in %d groups", f.Sizes, channels, groups)
	}
	return w, nil
}

// filter returns a convolution's filter in its node's layout.
func (c *lowerCall) filter(t *graph.NodeType, v int, w graph.Window) (int, error) {
	x, axis := &c.vals[v], 0
	dims, step := padDims(x, 0)
	if len(dims) == 3 { // a kernel of one row
		dims, step = []int{dims[0], dims[1], 1, dims[2]}, []int{step[0], step[1], 0, step[2]}
	}
	s, perm, channel := graph.ShapeOf(w.Groups*w.GroupOut, w.KernelH, w.KernelW, w.GroupIn), []int{0, 2, 3, 1}, 0
	switch t.Tag {
	case graph.TagDepthwiseConv2d:
		s, perm, channel = graph.ShapeOf(1, w.KernelH, w.KernelW, w.Groups*w.GroupOut), []int{1, 2, 3, 0}, 3
	case graph.TagConvTranspose2d:
		dims = []int{w.Groups, w.GroupIn, dims[1], dims[2], dims[3]}
		step = []int{w.GroupIn * step[0], step[0], step[1], step[2], step[3]}
		perm, axis = []int{0, 2, 3, 4, 1}, graph.None
	}
	if c.to != nil {
		if short := c.int8Filter(v, axis, s, channel, dims, step, perm); short != graph.None {
			return short, nil
		}
	}
	x = c.asFloat32(v)
	data, same := c.relaid(x, dims, step, perm, c.to != nil)
	c.owns(data, c.vals[v].Data)
	filter, err := c.weights(s, channel, data, c.to != nil)
	if !same && c.shapeOnly && c.to == nil {
		c.postpone(DeferredConstant{filter, x, dims, step, perm, true})
	}
	return filter, err
}

// batchNormCall lowers a batch norm to a scale and a shift per channel: a depthwise convolution of
// one pixel for images, otherwise a product and a sum.
func batchNormCall(c *lowerCall) error {
	x, y, rank := c.call.Args[0], c.out(), len(c.arg(0).Sizes)
	if rank < 2 {
		return refuse("%d dimensions, want 2 at least", rank)
	}
	scale, shift, err := c.normalization(c.arg(0).Sizes[1])
	if err != nil {
		return err
	}
	channels := len(scale)
	if rank == 4 {
		n := c.Node(graph.NodeTypes[graph.TagDepthwiseConv2d], []int{c.value(x, channelsLast), c.floats(scale, 1, 1, 1, channels),
			c.floats(shift, channels)}, c.result(y, channelsLast))
		*n.Window() = graph.Window{KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
			Groups: channels, GroupIn: 1, GroupOut: 1}
		return nil
	}
	if c.half {
		return refuse("float16 tensors of %d dimensions", rank)
	}
	dims := make([]int, rank-1)
	for i := range dims {
		dims[i] = 1
	}
	dims[0] = channels
	in := c.value(x, contiguous)
	product := c.Builder.Value(graph.FP32, c.Graph.Values[in].Shape, graph.Quant{})
	c.Node(graph.NodeTypes[graph.TagMultiply], []int{in, c.floats(scale, dims...)}, product).Exact = true
	c.Node(nodeNamed("Add"), []int{product, c.floats(shift, dims...)}, c.result(y, contiguous))
	return nil
}

// normalization computes scale and shift from the weight, bias, mean, variance and epsilon of a
// batch norm.
func (c *lowerCall) normalization(channels int) (scale, shift []float32, err error) {
	var list [4][]float32
	for i := range list {
		x := c.arg(1 + i)
		if x.Kind == tensor.None && i < 2 {
			continue
		}
		float := x.DType == tensor.Float32 || x.DType == tensor.Float16
		if !x.IsConst() || !float || checkTensor(x) != nil || memoryShapeOf(x, contiguous).Numel() != channels {
			return nil, nil, refuse("mean or variance is not a constant of %d elements", channels)
		}
		list[i] = tensor.View[float32](c.asFloat32(c.call.Args[1+i]).Data)
	}
	eps := 0.0
	if x := c.arg(6); x.Kind == tensor.KindDouble {
		eps = x.Double
	} else {
		eps = float64(x.Int)
	}
	scale, shift = make([]float32, channels), make([]float32, channels)
	for i := range scale {
		factor := 1 / math.Sqrt(float64(list[3][i])+eps)
		if list[0] != nil {
			factor *= float64(list[0][i])
		}
		offset := -float64(list[2][i]) * factor
		if list[1] != nil {
			offset += float64(list[1][i])
		}
		scale[i], shift[i] = float32(factor), float32(offset)
	}
	return scale, shift, nil
}
