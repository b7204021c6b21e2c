package lowering

import (
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var elementwiseLowerings = []lowerRow{
	{class: opclass.Abs, emit: unaryCall("Abs")},
	{class: opclass.Neg, emit: unaryCall("Negate")},
	{class: opclass.Ceil, emit: unaryCall("Ceiling")},
	{class: opclass.Floor, emit: unaryCall("Floor")},
	{class: opclass.Sqrt, emit: unaryCall("SquareRoot")},
	{class: opclass.Rsqrt, emit: unaryCall("ReciprocalSquareRoot")},
	{class: opclass.Exp, emit: unaryCall("Exp")},
	{class: opclass.Log, emit: unaryCall("Log")},
	{class: opclass.Sin, emit: unaryCall("Sin")},
	{class: opclass.Cos, emit: unaryCall("Cos")},
	{class: opclass.Sigmoid, emit: unaryCall("Sigmoid"), quantizes: true},
	{class: opclass.Tanh, emit: unaryCall("Tanh"), quantizes: true},
	{class: opclass.Relu, emit: func(c *lowerCall) error { return c.clamp(0, graph.Inf) }, quantizes: true, clamps: true},
	{class: opclass.Hardtanh, emit: func(c *lowerCall) error { return c.clamp(c.float(1), c.float(2)) }, quantizes: true, clamps: true},
	{class: opclass.Clamp, emit: clampCall, quantizes: true, clamps: true, single: true},
	{class: opclass.Hardswish, emit: unaryCall("Hardswish"), quantizes: true},
	{class: opclass.Silu, emit: siluCall},
	{class: opclass.Gelu, emit: geluCall, single: true},
	{class: opclass.LeakyRelu, emit: func(c *lowerCall) error { return c.scalarUnary("LeakyReLU", c.float(1)) }, quantizes: true},
	{class: opclass.Elu, emit: eluCall, single: true},
	{class: opclass.PowScalar, emit: powCall},
	{class: opclass.Softmax, emit: softmaxCall},

	{class: opclass.Add, emit: binaryCall("Add", 2), scalars: true, quantizes: true, bounds: true},
	{class: opclass.Sub, emit: binaryCall("Subtract", 2), scalars: true, quantizes: true, bounds: true},
	{class: opclass.Mul, emit: binaryCall("Multiply", 0), scalars: true, quantizes: true, bounds: true},
	{class: opclass.Div, emit: binaryCall("Div", 0), scalars: true},
	{class: opclass.Maximum, emit: binaryCall("Maximum", 0), scalars: true, single: true},
	{class: opclass.Minimum, emit: binaryCall("Minimum", 0), scalars: true, single: true},
	{class: opclass.AddScalar, emit: scalarCall("Add", 2), single: true},
	{class: opclass.SubScalar, emit: scalarCall("Subtract", 2), single: true},
	{class: opclass.RsubScalar, emit: reversedCall, single: true},
	{class: opclass.MulScalar, emit: scalarCall("Multiply", 0), single: true},
	{class: opclass.DivScalar, emit: scalarCall("Div", 0), single: true},
}

// nodeNamed returns the row of the node table with a name, nil if there is none.
func nodeNamed(name string) *graph.NodeType {
	for _, t := range graph.NodeTypes {
		if t != nil && t.Name == name {
			return t
		}
	}
	return nil
}

// unary adds a node that reads the first argument, in that argument's memory order.
func (c *lowerCall) unary(t *graph.NodeType) *graph.Node {
	x, y := c.call.Args[0], c.out()
	o := c.follow(x)
	return c.Node(t, []int{c.value(x, o)}, c.result(y, o))
}

func unaryCall(name string) func(*lowerCall) error {
	return func(c *lowerCall) error {
		c.unary(nodeNamed(name))
		return nil
	}
}

func (c *lowerCall) scalarUnary(name string, x float32) error {
	graph.Params[graph.ScalarParams](c.unary(nodeNamed(name))).Value = x
	return nil
}

// clamp adds a clamp node. For float16 the node maps NaN to the lower bound, as the bounds of nodes
// do. On its own it would differ from the operator, so it requires an operand whose node has
// bounds.
func (c *lowerCall) clamp(lo, hi float32) error {
	if !(lo < hi) {
		return refuse("bounds %v to %v", lo, hi)
	}
	x := c.call.Args[0]
	if row := c.loweringAt(c.in.Writer(x)); c.half && (row == nil || !row.bounds) {
		return refuse("bounds of a float16 tensor that is not a product or sum")
	}
	o := c.follow(x)
	in := c.value(x, o)
	if err := c.checkBounds(&c.Graph.Values[in], lo, hi); err != nil {
		return err
	}
	to := c.like(in, c.Graph.Values[in].Shape)
	n := c.Node(graph.NodeTypes[graph.TagClamp], []int{in}, to)
	n.Min, n.Max = lo, hi
	c.put(c.out(), o, to)
	return nil
}

func clampCall(c *lowerCall) error {
	lo, hi := -graph.Inf, graph.Inf
	if !c.none(1) {
		lo = c.float(1)
	}
	if !c.none(2) {
		hi = c.float(2)
	}
	return c.clamp(lo, hi)
}

func geluCall(c *lowerCall) error {
	if how := c.arg(1); how.Kind != tensor.None && how.Str != "none" {
		return refuse("gelu approximated by %q", how.Str)
	}
	return unaryCall("Gelu")(c)
}

// siluCall lowers silu to a tensor times its sigmoid.
func siluCall(c *lowerCall) error {
	x, y := c.call.Args[0], c.out()
	o := c.follow(x)
	in := c.value(x, o)
	s := c.made(c.Graph.Values[in].Shape)
	c.Node(nodeNamed("Sigmoid"), []int{in}, s)
	c.Node(graph.NodeTypes[graph.TagMultiply], []int{in, s}, c.result(y, o))
	return nil
}

func eluCall(c *lowerCall) error {
	if alpha := c.float(1); !(alpha > 0) || c.float(2) != 1 || c.float(3) != 1 {
		return refuse("alpha %v, scale %v and input scale %v, want a positive number, 1 and 1", alpha, c.float(2), c.float(3))
	}
	return c.scalarUnary("ELU", c.float(1))
}

func powCall(c *lowerCall) error {
	if c.float(1) != 2 {
		return refuse("exponent %v, want 2", c.float(1))
	}
	return unaryCall("Square")(c)
}

// softmaxCall lowers a softmax over the dimension that is innermost in memory.
func softmaxCall(c *lowerCall) error {
	x, dim := c.call.Args[0], c.int(1)
	rank := len(c.arg(0).Sizes)
	if dim < 0 {
		dim += rank
	}
	for _, o := range []order{contiguous, channelsLast} {
		if perm := o.perm(rank); rank > 0 && perm[rank-1] == dim {
			c.Node(nodeNamed("Softmax"), []int{c.value(x, o)}, c.result(c.out(), o))
			return nil
		}
	}
	return refuse("softmax along dimension %d of %d", dim, rank)
}

// binaryCall lowers an elementwise function of two tensors. alpha is the index of the argument that
// the second tensor is multiplied by, 0 if there is none.
func binaryCall(name string, alpha int) func(*lowerCall) error {
	return func(c *lowerCall) error { return c.binary(name, alpha) }
}

func (c *lowerCall) binary(name string, alpha int) error {
	if alpha > 0 && c.float(alpha) != 1 {
		return refuse("alpha %v, want 1", c.float(alpha))
	}
	a, b, y := c.call.Args[0], c.call.Args[1], c.out()
	if c.to != nil && (c.arg(0).IsConst() || c.arg(1).IsConst()) {
		return refuse("a constant operand of a quantized operation")
	}
	rank := len(c.vals[y].Sizes)
	o := contiguous
	if max(len(c.arg(0).Sizes), len(c.arg(1).Sizes)) == c.variableRank(a, b) {
		o = c.follow(a, b)
	}
	c.Node(nodeNamed(name), []int{c.operand(a, o, rank), c.operand(b, o, rank)}, c.result(y, o))
	return nil
}

// variableRank returns the rank of the tensors that are not constant, none if their ranks differ.
func (c *lowerCall) variableRank(list ...int) int {
	rank := graph.None
	for _, v := range list {
		x := &c.vals[v]
		switch {
		case x.IsConst() || len(x.Sizes) == rank:
		case rank == graph.None:
			rank = len(x.Sizes)
		default:
			return graph.None
		}
	}
	return rank
}

// operand returns a tensor's value in a memory order, for broadcasting to a rank.
func (c *lowerCall) operand(v int, o order, rank int) int {
	x := &c.vals[v]
	switch {
	case !x.IsConst():
		return c.value(v, o)
	case x.DType != tensor.Float32 && !c.half:
		return c.scalar(x)
	case o == contiguous || memoryShapeOf(x, contiguous).Numel() == 1:
		return c.value(v, contiguous)
	}
	key := paddedConstant{v, rank, o}
	if _, ok := c.padded[key]; !ok {
		c.padded[key] = c.constantIn(c.numbers(v), o, rank)
	}
	return c.padded[key]
}

// scalar returns a constant of any type without dimensions, as float32.
func (c *lowerCall) scalar(x *lowering.GraphValue) int {
	var number [1]float32
	tensor.Loader[float32](x.DType)(number[:], x.Data)
	return c.floats(number[:], 1)
}

func scalarCall(name string, alpha int) func(*lowerCall) error {
	return func(c *lowerCall) error { return c.withScalar(name, alpha) }
}

func (c *lowerCall) withScalar(name string, alpha int) error {
	if alpha > 0 && c.float(alpha) != 1 {
		return refuse("alpha %v, want 1", c.float(alpha))
	}
	if err := checkNumber(c.float(1), name == "Div"); err != nil {
		return err
	}
	x := c.call.Args[0]
	o := c.follow(x)
	c.Node(nodeNamed(name), []int{c.value(x, o), c.floats([]float32{c.float(1)}, 1)}, c.result(c.out(), o))
	return nil
}

// checkNumber returns an error for infinities, NaN, zero divisors and subnormal numbers. The
// library treats subnormals as zeros: 0 times infinity, and 0 over 0, are NaN.
func checkNumber(x float32, divisor bool) error {
	if x-x != 0 || divisor && x == 0 || x != 0 && max(x, -x) < 0x1p-126 {
		return refuse("the number %v", x)
	}
	return nil
}

// reversedCall lowers a number minus a tensor.
func reversedCall(c *lowerCall) error {
	if c.float(2) != 1 {
		return refuse("alpha %v, want 1", c.float(2))
	}
	if err := checkNumber(c.float(1), false); err != nil {
		return err
	}
	x := c.call.Args[0]
	o := c.follow(x)
	c.Node(nodeNamed("Subtract"), []int{c.floats([]float32{c.float(1)}, 1), c.value(x, o)}, c.result(c.out(), o))
	return nil
}
