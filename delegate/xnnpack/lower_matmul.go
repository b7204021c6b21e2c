package xnnpack

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
)

var matmulLowerings = []lowerRow{
	{op: "aten::mm.out", emit: func(c *lowerCall) error { return c.product(c.call.Args[0], c.call.Args[1], none, true) }},
	{op: "aten::addmm.out", emit: addmmCall},
	{op: "aten::linear.out", emit: linearCall},
	{op: "aten::bmm.out", emit: func(c *lowerCall) error {
		return c.multiply(c.call.Args[0], c.call.Args[1])
	}},
}

// multiply is a product of matrices that need not be constant.
func (c *lowerCall) multiply(a, b int) error {
	c.node(nodeTypes[tagBatchMatrixMultiply], []int{c.value(a, contiguous), c.value(b, contiguous)}, c.result(c.out(), contiguous))
	return nil
}

func addmmCall(c *lowerCall) error {
	if c.float(3) != 1 || c.float(4) != 1 {
		return refuse("beta %v and alpha %v, want 1", c.float(3), c.float(4))
	}
	return c.product(c.call.Args[1], c.call.Args[2], c.call.Args[0], true)
}

func linearCall(c *lowerCall) error {
	bias := none
	if !c.none(2) {
		bias = c.call.Args[2]
	}
	return c.product(c.call.Args[0], c.call.Args[1], bias, false)
}

// product is x times a constant filter, which is [input, output channels] where it is
// flipped and [output, input channels] otherwise, plus a bias, which may be none. What a
// fully connected node does not take becomes a node of its own.
func (c *lowerCall) product(x, filter, bias int, flipped bool) error {
	f, y := &c.in.Values[filter], c.out()
	if len(f.Sizes) != 2 {
		return refuse("a filter of sizes %v", f.Sizes)
	}
	if !f.IsConst() {
		if bias != none || !flipped {
			return refuse("a filter that is no constant")
		}
		return c.multiply(x, filter)
	}
	if c.in.Values[x].IsConst() {
		return refuse("a constant times a constant")
	}
	channels := f.Sizes[0]
	if flipped {
		channels = f.Sizes[1]
	}
	packed, added := c.bias(bias, channels), bias
	if packed != none {
		added = none
	}
	out := c.result(y, contiguous)
	sum := out
	if added != none {
		out = c.graphBuilder.value(fp32, c.g.Values[sum].Shape, quant{})
	}
	n := c.node(nodeTypes[tagFullyConnected], []int{c.value(x, contiguous), none, packed}, out)
	n.In[1], n.Flags = c.rows(filter, flipped)
	if added != none {
		c.node(nodeNamed("Add"), []int{out, c.value(added, contiguous)}, sum)
	}
	return nil
}

// rows is a matrix of weights as it lies in memory, and the flag that says which way.
func (c *lowerCall) rows(filter int, flipped bool) (v int, flags uint32) {
	f := &c.in.Values[filter]
	transposed := slices.Equal(f.DimOrder, []uint8{1, 0})
	if transposed != flipped {
		flags = flagTransposeWeights
	}
	sizes := slices.Clone(f.Sizes)
	if transposed {
		slices.Reverse(sizes)
	}
	return c.graphBuilder.constant(fp32, shapeOf(sizes...), quant{}, f.Data), flags
}

// bias is a constant of one element a channel, none where the tensor is another one.
func (c *lowerCall) bias(v, channels int) int {
	if v == none {
		return none
	}
	x := &c.in.Values[v]
	if !x.IsConst() || x.DType != tensor.Float32 {
		return none
	}
	s := memoryShapeOf(x, contiguous)
	switch {
	case s.numel() == 1:
		list := make([]float32, channels)
		for i := range list {
			list[i] = tensor.View[float32](x.Data)[0]
		}
		return c.floats(list, channels)
	case s.numel() == channels && s.last() == channels:
		return c.graphBuilder.constant(fp32, shapeOf(channels), quant{}, x.Data)
	}
	return none
}
