package graphtest

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// Chain builds a random graph over values of known shapes.
type Chain struct {
	*Maker
	Ready []int // values that nodes may read
}

// RandomGraph returns a graph of up to size nodes.
func RandomGraph(seed uint64, size int) *graph.Graph {
	c := &Chain{Maker: NewMaker(seed)}
	c.Lo, c.Hi = -1, 1
	d := []graph.Datatype{graph.FP32, graph.FP32, graph.FP16, graph.QInt8, graph.QUInt8}[c.R.IntN(5)]
	for range 1 + c.R.IntN(2) {
		dims := []int{1 + c.R.IntN(2), 2 + c.R.IntN(7), 2 + c.R.IntN(7), 1 + c.R.IntN(20)}
		c.Ready = append(c.Ready, c.Input(d, dims...))
	}
	for range 1 + c.R.IntN(size) {
		c.Grow()
	}
	read := make(map[int]bool)
	for i := range c.Graph.Nodes {
		for _, v := range c.Graph.Nodes[i].In {
			read[v] = true
		}
	}
	var outputs []int
	for _, v := range c.Ready {
		if !c.Graph.Values[v].Input && (!read[v] || c.R.IntN(4) == 0) {
			outputs = append(outputs, v)
		}
	}
	return c.Fix(outputs...)
}

// Grow adds a random node that accepts a random value.
func (c *Chain) Grow() {
	x := c.Ready[c.R.IntN(len(c.Ready))]
	v := c.Graph.Values[x]
	steps := []func(int, graph.Value) bool{c.unary, c.binary, c.move, c.convolve, c.pool, c.connect, c.join, c.transposed}
	for range 20 {
		if steps[c.R.IntN(len(steps))](x, v) {
			return
		}
	}
}

// Add appends a node whose output has the given shape, and returns the output.
func (c *Chain) Add(name string, in []int, d graph.Datatype, s graph.Shape, set ...func(*graph.Node)) int {
	y := c.Value(d, s.Dims()...)
	c.Node(name, in, []int{y}, set...)
	c.Ready = append(c.Ready, y)
	return y
}

// Keep sets y's quantization to x's, as nodes that move data require.
func (c *Chain) Keep(y, x int) bool {
	c.Graph.Values[y].Quant = c.Graph.Values[x].Quant
	return true
}

func (c *Chain) unary(x int, v graph.Value) bool {
	names := []string{"Sigmoid", "Clamp", "Hardswish", "LeakyReLU", "Negate", "Square", "ELU", "Abs", "Tanh", "Gelu", "Floor"}
	name := names[c.R.IntN(len(names))]
	if name == "Floor" && v.Datatype != graph.FP32 { // a small difference of the operand may change the result by 1
		return false
	}
	y := c.Add(name, []int{x}, v.Datatype, v.Shape, func(n *graph.Node) { SetScalar(n, 0.25) })
	if name == "Clamp" {
		n := &c.Graph.Nodes[len(c.Graph.Nodes)-1]
		n.Min, n.Max = -0.5, 0.75
		return c.Keep(y, x)
	}
	return true
}

func (c *Chain) binary(x int, v graph.Value) bool {
	names := []string{"Add", "Subtract", "Multiply", "Minimum", "Maximum"}
	other := c.Ready[c.R.IntN(len(c.Ready))]
	if c.R.IntN(2) == 0 {
		other = c.Constant(v.Datatype, 0, v.Shape.Last())
	}
	out, ok := graph.Broadcast(v.Shape, c.Graph.Values[other].Shape)
	if !ok || c.Graph.Values[other].Datatype != v.Datatype {
		return false
	}
	c.Add(names[c.R.IntN(len(names))], []int{x, other}, v.Datatype, out)
	return true
}

func (c *Chain) move(x int, v graph.Value) bool {
	s := v.Shape
	switch c.R.IntN(4) {
	case 0:
		perm := c.R.Perm(s.Rank)
		return c.Keep(c.Add("StaticTranspose", []int{x}, v.Datatype, s.Permuted(perm), func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = perm }), x)
	case 1:
		flat := graph.ShapeOf(s.Dim[0], s.Trailing(1))
		return c.Keep(c.Add("StaticReshape", []int{x}, v.Datatype, flat, func(n *graph.Node) { graph.Params[graph.ReshapeParams](n).Sizes = []int{flat.Dim[0], flat.Dim[1]} }), x)
	case 2:
		dims, before, after := s, make([]int, s.Rank), make([]int, s.Rank)
		for i := range before {
			before[i], after[i] = c.R.IntN(2), c.R.IntN(2)
			dims.Dim[i] += before[i] + after[i]
		}
		return c.Keep(c.Add("StaticConstantPad", []int{x}, v.Datatype, dims, func(n *graph.Node) { p := graph.Params[graph.PadParams](n); p.Before, p.After = before, after }), x)
	}
	offsets, sizes := make([]int, s.Rank), make([]int, s.Rank)
	for i, d := range s.Dims() {
		offsets[i] = c.R.IntN(d)
		sizes[i] = 1 + c.R.IntN(d-offsets[i])
	}
	return c.Keep(c.Add("StaticSlice", []int{x}, v.Datatype, graph.ShapeOf(sizes...), func(n *graph.Node) {
		*graph.Params[graph.SliceParams](n) = graph.SliceParams{Offsets: offsets, Sizes: sizes}
	}), x)
}

// types returns the datatypes of filter, bias and output for a weighted node's input.
func (c *Chain) types(d graph.Datatype) (w graph.Weighted, ok bool) {
	switch d {
	case graph.FP32:
		w = graph.Weighted{In: graph.FP32, Filter: graph.FP32, Bias: graph.FP32, Out: graph.FP32}
	case graph.FP16:
		w = graph.Weighted{In: graph.FP16, Filter: graph.FP32, Bias: graph.FP32, Out: graph.FP16}
	case graph.QInt8:
		w = graph.Weighted{In: graph.QInt8, Filter: graph.QCInt8, Bias: graph.QCInt32, Out: graph.QInt8}
	case graph.QUInt8:
		w = graph.Weighted{In: graph.QUInt8, Filter: graph.QUInt8, Bias: graph.QInt32, Out: graph.QUInt8}
	}
	return w, w.In != 0
}

func (c *Chain) convolve(x int, v graph.Value) bool {
	t, ok := c.types(v.Datatype)
	if !ok || v.Shape.Rank != 4 {
		return false
	}
	w := graph.Window{KernelH: 1 + c.R.IntN(3), KernelW: 1 + c.R.IntN(3), StrideH: 1 + c.R.IntN(2), StrideW: 1 + c.R.IntN(2), DilationH: 1, DilationW: 1,
		Top: c.R.IntN(2), Left: c.R.IntN(2), Bottom: c.R.IntN(2), Right: c.R.IntN(2), Groups: 1, GroupIn: v.Shape.Last(), GroupOut: 1 + c.R.IntN(9)}
	name := "Conv2d"
	if c.R.IntN(3) == 0 {
		name, w.Groups, w.GroupIn, w.GroupOut = "DepthwiseConv2d", v.Shape.Last(), 1, 1
	}
	n := graph.Node{Type: graph.NodeTypes[graph.TagConv2d], Params: &w}
	out, err := graph.WindowShape(&n, v.Shape)
	if err != nil {
		return false
	}
	out.Dim[3] = w.Groups * w.GroupOut
	if v.Datatype == graph.FP32 && name == "Conv2d" && c.R.IntN(2) == 0 {
		t = graph.Weighted{In: graph.QDInt8, Filter: graph.QCInt8, Bias: graph.FP32, Out: graph.FP32}
		x = c.Quantized(x, 3)
	}
	var filter int
	if name == "Conv2d" {
		filter = c.Constant(t.Filter, 0, out.Dim[3], w.KernelH, w.KernelW, w.GroupIn)
	} else {
		filter = c.Constant(t.Filter, 3, 1, w.KernelH, w.KernelW, out.Dim[3])
	}
	c.Add(name, []int{x, filter, c.Constant(t.Bias, 0, out.Dim[3])}, t.Out, out, WithWindow(w))
	return true
}

func (c *Chain) transposed(x int, v graph.Value) bool {
	t, ok := c.types(v.Datatype)
	if !ok || v.Shape.Rank != 4 || v.Shape.Dim[1]*v.Shape.Dim[2] > 200 {
		return false
	}
	w := graph.Window{KernelH: 2 + c.R.IntN(2), KernelW: 2 + c.R.IntN(2), StrideH: 1 + c.R.IntN(2), StrideW: 1 + c.R.IntN(2), DilationH: 1, DilationW: 1,
		Groups: 1, GroupIn: v.Shape.Last(), GroupOut: 1 + c.R.IntN(5)}
	s := []graph.Shape{v.Shape, {}}
	n := graph.Node{Type: graph.NodeTypes[graph.TagConvTranspose2d], Params: &w, In: []int{0}, Out: []int{1}}
	if graph.TransposedShape(&graph.Graph{Values: make([]graph.Value, 2)}, &n, s) != nil {
		return false
	}
	filter := c.Constant(t.Filter, 0, w.GroupOut, w.KernelH, w.KernelW, w.GroupIn)
	c.Add("ConvTranspose2d", []int{x, filter, c.Constant(t.Bias, 0, w.GroupOut)}, t.Out, s[1], WithWindow(w))
	return true
}

func (c *Chain) pool(x int, v graph.Value) bool {
	w := graph.Window{KernelH: 2, KernelW: 1 + c.R.IntN(2), StrideH: 1 + c.R.IntN(2), StrideW: 1, DilationH: 1, DilationW: 1, Top: c.R.IntN(2)}
	n := graph.Node{Type: graph.NodeTypes[14], Params: &w}
	if v.Shape.Rank != 4 {
		return false
	}
	out, err := graph.WindowShape(&n, v.Shape)
	if err != nil {
		return false
	}
	if v.Datatype.IsFloat() && c.R.IntN(2) == 0 {
		c.Add("AvgPooling2d", []int{x}, v.Datatype, out, WithWindow(w))
		return true
	}
	return c.Keep(c.Add("MaxPooling2d", []int{x}, v.Datatype, out, WithWindow(w)), x)
}

func (c *Chain) connect(x int, v graph.Value) bool {
	t, ok := c.types(v.Datatype)
	if !ok {
		return false
	}
	out := v.Shape
	out.Dim[out.Rank-1] = 1 + c.R.IntN(9)
	if v.Datatype == graph.FP32 && c.R.IntN(2) == 0 {
		t = graph.Weighted{In: graph.QDInt8, Filter: graph.QCInt8, Bias: graph.FP32, Out: graph.FP32}
		x = c.Quantized(x, 1)
	}
	filter := c.Constant(t.Filter, 0, out.Last(), v.Shape.Last())
	c.Add("FullyConnected", []int{x, filter, c.Constant(t.Bias, 0, out.Last())}, t.Out, out)
	return true
}

func (c *Chain) join(x int, v graph.Value) bool {
	out := v.Shape
	axis := c.R.IntN(out.Rank)
	out.Dim[axis] *= 2
	return c.Keep(c.Add("Concatenate2", []int{x, x}, v.Datatype, out, func(n *graph.Node) { graph.Params[graph.ConcatenateParams](n).Axis = axis }), x)
}
