package lowering

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var poolLowerings = []lowerRow{
	{class: opclass.AvgPool2d, emit: averagePoolCall},
	{class: opclass.MaxPool2d, emit: maxPoolCall, quantizes: true},
	{class: opclass.Mean, emit: meanCall, quantizes: true},
	{class: opclass.AdaptiveAvgPool2d, emit: adaptivePoolCall, quantizes: true},
	{class: opclass.UpsampleBilinear2d, emit: resizeCall, quantizes: true},
}

// poolWindow reads size, stride and padding of a pool of [N, C, H, W].
func (c *lowerCall) poolWindow() (w graph.Window, err error) {
	if rank, out := len(c.arg(0).Sizes), len(c.vals[c.out()].Sizes); rank != 4 || out != 4 {
		return w, refuse("a pool of %d dimensions to %d, want 4", rank, out)
	}
	size := c.pair(1, [2]int{})
	stride, pad := c.pair(2, size), c.pair(3, [2]int{})
	w = graph.Window{KernelH: size[0], KernelW: size[1], StrideH: stride[0], StrideW: stride[1], DilationH: 1, DilationW: 1,
		Top: pad[0], Bottom: pad[0], Left: pad[1], Right: pad[1]}
	if min(size[0], size[1], stride[0], stride[1]) < 1 || min(pad[0], pad[1]) < 0 {
		return w, refuse("windows of %v, stride %v, padding %v", size, stride, pad)
	}
	if size == [2]int{1, 1} {
		return w, refuse("windows of one element")
	}
	return w, nil
}

// averagePoolCall lowers an average pool. Its node excludes padding from the mean, so padding that
// counts is added by a separate node.
func averagePoolCall(c *lowerCall) error {
	w, err := c.poolWindow()
	if err != nil {
		return err
	}
	if c.bool(4) {
		return refuse("ceil_mode")
	}
	x := c.arg(6)
	divisor := x.Kind != tensor.None // of all windows, whatever count_include_pad is
	if divisor && x.Int != int64(w.KernelH*w.KernelW) {
		return refuse("a divisor of %d for windows of %dx%d", x.Int, w.KernelH, w.KernelW)
	}
	in := c.value(c.call.Args[0], channelsLast)
	if (divisor || c.bool(5)) && w.Top+w.Left > 0 {
		in = c.bordered(in, w.Top, w.Left)
		w.Top, w.Bottom, w.Left, w.Right = 0, 0, 0, 0
	}
	*c.Node(graph.NodeTypes[graph.TagAvgPooling2d], []int{in}, c.result(c.out(), channelsLast)).Window() = w
	return nil
}

// bordered returns a value of [N, H, W, C] with zeros around each image.
func (c *lowerCall) bordered(in, rows, columns int) int {
	s := c.Graph.Values[in].Shape
	s.Dim[1], s.Dim[2] = s.Dim[1]+2*rows, s.Dim[2]+2*columns
	y := c.like(in, s)
	pad := []int{0, rows, columns, 0}
	n := c.Node(graph.NodeTypes[graph.TagStaticConstantPad], []int{in}, y)
	*graph.Params[graph.PadParams](n) = graph.PadParams{Before: pad, After: pad}
	return y
}

// maxPoolCall lowers a max pool. Rounding sizes up adds to the padding at the bottom and at the
// right.
func maxPoolCall(c *lowerCall) error {
	w, err := c.poolWindow()
	if err != nil {
		return err
	}
	dilation := c.pair(4, [2]int{1, 1})
	w.DilationH, w.DilationW = dilation[0], dilation[1]
	if c.bool(5) {
		if err := c.static(c.call.Args[0], c.out()); err != nil {
			return err
		}
		in, out := c.arg(0).Sizes, c.vals[c.out()].Sizes
		w.Bottom = max(w.Bottom, (out[2]-1)*w.StrideH+w.DilationH*(w.KernelH-1)+1-in[2]-w.Top)
		w.Right = max(w.Right, (out[3]-1)*w.StrideW+w.DilationW*(w.KernelW-1)+1-in[3]-w.Left)
	}
	in, y := c.value(c.call.Args[0], channelsLast), c.out()
	to := c.like(in, memoryShapeOf(&c.vals[y], channelsLast))
	*c.Node(nodeNamed("MaxPooling2d"), []int{in}, to).Window() = w
	c.put(y, channelsLast, to)
	return nil
}

// meanCall lowers a mean over the pixels of images.
func meanCall(c *lowerCall) error {
	rank := len(c.arg(0).Sizes)
	var dims []int
	for _, d := range c.ints(1) {
		dims = append(dims, wrap(d, rank))
	}
	slices.Sort(dims)
	if rank != 4 || !slices.Equal(dims, []int{2, 3}) {
		return refuse("a mean over dimensions %v of %d", c.ints(1), rank)
	}
	return c.imageMean()
}

// imageMean computes [N, C, 1, 1], or [N, C] if that is the result's shape.
func (c *lowerCall) imageMean() error {
	x, y := c.call.Args[0], c.out()
	in := c.value(x, channelsLast)
	if len(c.vals[y].Sizes) == 4 {
		c.Node(nodeNamed("GlobalAvgPooling2d"), []int{in}, c.result(y, channelsLast))
		return nil
	}
	if err := c.static(x, y); err != nil {
		return err
	}
	s := c.Graph.Values[in].Shape
	mean := c.made(graph.ShapeOf(s.Dim[0], 1, 1, s.Dim[3]))
	c.Node(nodeNamed("GlobalAvgPooling2d"), []int{in}, mean)
	c.put(y, contiguous, c.reshaped(mean, memoryShapeOf(&c.vals[y], contiguous)))
	return nil
}

// adaptivePoolCall lowers an adaptive average pool. The output size must divide the input size, so
// that all windows have the same size.
func adaptivePoolCall(c *lowerCall) error {
	x, out := c.arg(0), c.pair(1, [2]int{})
	if len(x.Sizes) != 4 {
		return refuse("a pool of %d dimensions, want 4", len(x.Sizes))
	}
	if out == [2]int{1, 1} {
		return c.imageMean()
	}
	if err := c.static(c.call.Args[0], c.out()); err != nil {
		return err
	}
	if min(out[0], out[1]) < 1 || x.Sizes[2]%out[0] != 0 || x.Sizes[3]%out[1] != 0 {
		return refuse("%v windows over images of %v", out, x.Sizes[2:])
	}
	h, v := x.Sizes[2]/out[0], x.Sizes[3]/out[1]
	if h*v == 1 {
		return c.is(c.out(), c.call.Args[0])
	}
	n := c.Node(graph.NodeTypes[graph.TagAvgPooling2d], []int{c.value(c.call.Args[0], channelsLast)}, c.result(c.out(), channelsLast))
	*n.Window() = graph.Window{KernelH: h, KernelW: v, StrideH: h, StrideW: v, DilationH: 1, DilationW: 1}
	return nil
}

// resizeCall lowers a bilinear resize. The node uses the ratio of the sizes as the scale.
func resizeCall(c *lowerCall) error {
	x, y := c.call.Args[0], c.out()
	if err := c.static(x, y); err != nil {
		return err
	}
	in, out := c.arg(0).Sizes, c.vals[y].Sizes
	if len(in) != 4 || len(out) != 4 {
		return refuse("a resize of %d dimensions, want 4", len(in))
	}
	if factors := c.arg(3); c.none(1) && factors.Kind == tensor.KindDoubleList && !c.bool(2) {
		for i, f := range factors.Doubles {
			if i < 2 && float64(out[2+i]) != float64(in[2+i])*f {
				return refuse("a scale of %v from %d to %d", f, in[2+i], out[2+i])
			}
		}
	}
	from := c.value(x, channelsLast)
	if scale := c.Graph.Values[from].Quant.Scale; c.to != nil && scale > c.to.quant.Scale {
		return refuse("a resize of scale %v to scale %v: the node rounds to the operand's", scale, c.to.quant.Scale)
	}
	to := c.like(from, memoryShapeOf(&c.vals[y], channelsLast))
	n := c.Node(nodeNamed("StaticResizeBilinear2D"), []int{from}, to)
	*graph.Params[graph.ResizeParams](n) = graph.ResizeParams{Height: out[2], Width: out[3]}
	if c.bool(2) {
		n.Flags = graph.FlagAlignCorners
	}
	c.put(y, channelsLast, to)
	return nil
}
