package lowering

import (
	"bytes"
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var matmulLowerings = []lowerRow{
	{class: opclass.MM, quantizes: true, weights: true, bounds: true, rows8: true, emit: func(c *lowerCall) error {
		return c.product(c.call.Args[0], c.call.Args[1], graph.None, true)
	}},
	{class: opclass.AddMM, emit: addmmCall, quantizes: true, weights: true, bounds: true, rows8: true, input: 1},
	{class: opclass.Linear, emit: linearCall, quantizes: true, weights: true, bounds: true, rows8: true},
	{class: opclass.BMM, emit: bmmCall},
}

// bmmCall lowers a product of batches of matrices. Linear layers of a batch are such products by the same constant in each item:
// as a filter it is stored and packed once. A filter accepts any batch, so that the one of the operand must be known.
func bmmCall(c *lowerCall) error {
	x, b := c.call.Args[0], c.call.Args[1]
	if left := &c.vals[x]; c.to != nil || left.IsConst() || left.Dynamism != tensor.Static || !c.isRepeated(b) ||
		len(left.Sizes) != 3 || left.Sizes[0] != c.vals[b].Sizes[0] {
		return c.multiply(x, b)
	}
	sizes := c.vals[b].Sizes
	k, n := sizes[1], sizes[2]
	data := c.asFloat32(b).Data[:4*k*n]
	c.owns(data, c.vals[b].Data)
	w := c.Builder.Constant(graph.FP32, graph.ShapeOf(k, n), graph.Quant{}, data)
	c.Node(graph.NodeTypes[graph.TagFullyConnected], []int{c.value(x, contiguous), w, graph.None},
		c.result(c.out(), contiguous)).Flags = graph.FlagTransposeWeights
	return nil
}

// isRepeated reports whether a value is a constant of equal matrices.
func (c *lowerCall) isRepeated(v int) bool {
	x := &c.vals[v]
	if !x.IsConst() || len(x.Sizes) != 3 || c.int8Constants[v] != nil || x.DType != tensor.Float32 && x.DType != tensor.Float16 ||
		!slices.Equal(x.DimOrder, contiguousOrder[:len(x.DimOrder)]) {
		return false
	}
	n := x.DType.Size() * x.Sizes[1] * x.Sizes[2]
	return n > 0 && len(x.Data) >= n && bytes.Equal(x.Data[n:], x.Data[:len(x.Data)-n])
}

var contiguousOrder = []uint8{0, 1, 2}

// multiply lowers a product of matrices that need not be constant.
func (c *lowerCall) multiply(a, b int) error {
	if c.to != nil {
		return refuse("a product of quantized elements")
	}
	c.Node(graph.NodeTypes[graph.TagBatchMatrixMultiply], []int{c.value(a, contiguous), c.value(b, contiguous)},
		c.result(c.out(), contiguous)).Exact = true
	return nil
}

func addmmCall(c *lowerCall) error {
	if c.float(3) != 1 || c.float(4) != 1 {
		return refuse("beta %v and alpha %v, want 1", c.float(3), c.float(4))
	}
	return c.product(c.call.Args[1], c.call.Args[2], c.call.Args[0], true)
}

func linearCall(c *lowerCall) error {
	bias := graph.None
	if !c.none(2) {
		bias = c.call.Args[2]
	}
	return c.product(c.call.Args[0], c.call.Args[1], bias, false)
}

// product lowers x times a constant filter, plus a bias, which may be none. The filter is [input,
// output channels] if it is flipped, otherwise [output, input channels]. A bias that a fully
// connected node does not support becomes a separate node. A filter that is not constant becomes
// the second operand of multiply, if it is flipped and there is no bias.
func (c *lowerCall) product(x, filter, bias int, flipped bool) error {
	f, y := &c.vals[filter], c.out()
	if len(f.Sizes) != 2 {
		return refuse("a filter of sizes %v", f.Sizes)
	}
	if !f.IsConst() {
		if bias != graph.None || !flipped {
			return refuse("the filter is not a constant")
		}
		return c.multiply(x, filter)
	}
	if c.vals[x].IsConst() {
		return refuse("both operands are constants")
	}
	channels := f.Sizes[0]
	if flipped {
		channels = f.Sizes[1]
	}
	in := c.dynamicInput(x)
	short := in != graph.None || c.to != nil
	if in == graph.None {
		in = c.value(x, contiguous)
	}
	w, flags, err := c.rows(filter, flipped, short)
	if err != nil {
		return err
	}
	if bias != graph.None && !isBias(&c.vals[bias], channels) {
		return c.productAndSum(in, w, flags, bias)
	}
	packed, err := c.bias(bias, w, in, channels)
	if err == nil {
		c.Node(graph.NodeTypes[graph.TagFullyConnected], []int{in, w, packed}, c.result(y, contiguous)).Flags = flags
	}
	return err
}

// productAndSum adds a tensor that is not a bias in a separate node.
func (c *lowerCall) productAndSum(in, w int, flags uint32, added int) error {
	if c.to != nil {
		return refuse("the bias is not a constant vector")
	}
	y := c.out()
	product := c.made(memoryShapeOf(&c.vals[y], contiguous))
	c.Node(graph.NodeTypes[graph.TagFullyConnected], []int{in, w, graph.None}, product).Flags = flags
	c.Node(nodeNamed("Add"), []int{product, c.value(added, contiguous)}, c.result(y, contiguous)).Exact = true
	return nil
}

// rows returns a matrix of weights in its own memory layout, and the flag for its orientation.
func (c *lowerCall) rows(filter int, flipped, short bool) (v int, flags uint32, err error) {
	f, channel := &c.vals[filter], 0
	transposed := slices.Equal(f.DimOrder, []uint8{1, 0})
	if transposed != flipped {
		flags, channel = graph.FlagTransposeWeights, 1
	}
	sizes := slices.Clone(f.Sizes)
	if transposed {
		slices.Reverse(sizes)
	}
	if short {
		dims, step := padDims(f, 0)
		perm := []int{0, 1}
		if transposed {
			perm = []int{1, 0}
		}
		axis := 0
		if flipped {
			axis = 1
		}
		if v = c.int8Filter(filter, axis, graph.ShapeOf(sizes...), channel, dims, step, perm); v != graph.None {
			return v, flags, nil
		}
	}
	data := c.asFloat32(filter).Data
	c.owns(data, c.vals[filter].Data)
	v, err = c.weights(graph.ShapeOf(sizes...), channel, data, short)
	return v, flags, err
}

// isBias reports whether x is a constant of one element per channel, or of one element for all.
func isBias(x *lowering.GraphValue, channels int) bool {
	s := memoryShapeOf(x, contiguous)
	float := x.DType == tensor.Float32 || x.DType == tensor.Float16
	return x.IsConst() && float && (s.Numel() == 1 || s.Numel() == channels && s.Last() == channels)
}

// weights returns a constant filter of float32, or of 8-bit elements if short is set.
func (c *lowerCall) weights(s graph.Shape, channel int, data []byte, short bool) (int, error) {
	if short {
		return c.int8Weights(s, channel, data)
	}
	return c.Builder.Constant(graph.FP32, s, graph.Quant{}, data), nil
}

// bias returns a constant tensor as the bias for a filter and an input. It returns none if v is
// none.
func (c *lowerCall) bias(v, filter, in, channels int) (int, error) {
	if v == graph.None {
		return graph.None, nil
	}
	x := &c.vals[v]
	if !isBias(x, channels) {
		return graph.None, refuse("the bias is not a constant vector")
	}
	data := c.asFloat32(v).Data
	if memoryShapeOf(x, contiguous).Numel() < channels {
		data = allocPadded(4 * channels)
		for i := range tensor.View[float32](data) {
			tensor.View[float32](data)[i] = tensor.View[float32](c.asFloat32(v).Data)[0]
		}
	}
	if c.to != nil {
		return c.int32Bias(tensor.View[float32](data)[:channels], filter, in)
	}
	return c.Builder.Constant(graph.FP32, graph.ShapeOf(channels), graph.Quant{}, data), nil
}
