package graph

import (
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/delegate"
)

// flagNames are the names of a node's flags, by type.
var flagNames = map[uint8]map[uint32]string{
	TagConv2d:              {FlagSamePadding: "same padding"},
	TagDepthwiseConv2d:     {FlagSamePadding: "same padding"},
	TagAvgPooling2d:        {FlagSamePadding: "same padding"},
	TagMaxPooling2d:        {FlagSamePadding: "same padding"},
	TagFullyConnected:      {FlagTransposeWeights: "transposed filter", FlagReshape2D: "reshape to 2 dimensions"},
	TagBatchMatrixMultiply: {FlagTransposeWeights: "transposed second input"},
	TagResizeBilinear2D:    {FlagLegacyResize: "legacy mode", FlagAlignCorners: "align corners"},
}

// Attributes returns the parameters of a node, its bounds and flags, and the quantization of its operands and outputs.
func (g *Graph) Attributes(n *Node) (list []delegate.Attribute) {
	add := func(name string, value any) {
		if x, ok := value.(float32); ok && x-x != 0 { // JSON has no NaN and no infinity
			value = fmt.Sprint(x)
		}
		list = append(list, delegate.Attribute{Name: name, Value: value})
	}
	n.parameters(add)
	if n.Min > -Inf {
		add("output min", n.Min)
	}
	if n.Max < Inf {
		add("output max", n.Max)
	}
	for bit := uint32(1); bit != 0; bit <<= 1 {
		if name := flagNames[n.Type.Tag][n.Flags&bit]; name != "" {
			add(name, true)
		}
	}
	if n.Then != nil {
		add("then", n.Then.Type.Name)
		n.Then.parameters(func(name string, value any) { add("then "+name, value) })
	}
	for i, v := range n.In {
		g.addQuant(v, n.operand(i), add)
	}
	for _, v := range n.Out {
		g.addQuant(v, "output", add)
	}
	return list
}

// operand returns the name of operand i.
func (n *Node) operand(i int) string {
	switch {
	case n.Type.Weighted():
		return [...]string{"input", "filter", "bias"}[min(i, 2)]
	case len(n.In) == 1:
		return "input"
	}
	return fmt.Sprintf("input %d", i)
}

// parameters adds the parameters of the node's family.
func (n *Node) parameters(add func(name string, value any)) {
	switch p := n.Params.(type) {
	case *Window:
		n.window(p, add)
	case *TransposeParams:
		add("permutation", p.Perm)
	case *ReshapeParams:
		add("sizes", p.Sizes)
	case *SliceParams:
		add("offsets", p.Offsets)
		add("sizes", p.Sizes)
	case *PadParams:
		add("before", p.Before)
		add("after", p.After)
		add("value", p.Value)
	case *ResizeParams:
		add("sizes", []int{p.Height, p.Width})
	case *ConcatenateParams:
		add("axis", p.Axis)
	case *ScalarParams:
		add("value", p.Value)
	}
}

// window adds the fields of a window that nodes of the type have.
func (n *Node) window(w *Window, add func(name string, value any)) {
	count, pool := windowFields[n.Type.Name]
	if pool && count == 0 {
		return
	}
	add("kernel", []int{w.KernelH, w.KernelW})
	add("padding", []int{w.Top, w.Right, w.Bottom, w.Left})
	if pool && count < 10 {
		return
	}
	add("stride", []int{w.StrideH, w.StrideW})
	add("dilation", []int{w.DilationH, w.DilationW})
	if pool {
		return
	}
	add("groups", w.Groups)
	add("group channels", []int{w.GroupIn, w.GroupOut})
	if n.Type.Tag == TagConvTranspose2d {
		add("output padding", []int{w.AdjustH, w.AdjustW})
	}
}

// addQuant adds how a value is quantized.
func (g *Graph) addQuant(v int, name string, add func(name string, value any)) {
	if v == None {
		return
	}
	q := &g.Values[v].Quant
	switch g.Values[v].Datatype.Info().Quant {
	case PerTensor:
		add(name+" scale", q.Scale)
		add(name+" zero point", q.ZeroPoint)
	case PerToken:
		add(name+" scale", fmt.Sprintf("computed in each run; inner dimensions that share it: %d", q.Nonbatch))
	case PerChannel:
		add(name+" scales", fmt.Sprintf("%d, of the channels of dimension %d, %s", len(q.Scales), q.ChannelDim, span32(q.Scales)))
	case PerGroup:
		add(name+" scales", fmt.Sprintf("%d, of groups of %d elements, %s", len(q.Blocks), q.GroupSize, spanOfBlocks(q.Blocks)))
	}
}

func span32(list []float32) string {
	if len(list) == 0 {
		return "none"
	}
	return fmt.Sprintf("%v to %v", slices.Min(list), slices.Max(list))
}

// spanOfBlocks is span32 for scales of groups. They are positive, so that their bits have the order of the numbers.
func spanOfBlocks(list []uint16) string {
	if len(list) == 0 {
		return "none"
	}
	least, most := list[0], list[0]
	for _, s := range list { // there may be millions
		least, most = min(least, s), max(most, s)
	}
	return span32(blockScales([]uint16{least, most}))
}

// blockScales returns the scales of groups as numbers.
func blockScales(blocks []uint16) []float32 {
	list := make([]float32, len(blocks))
	for i, b := range blocks {
		list[i] = math.Float32frombits(uint32(b) << 16)
	}
	return list
}

// Elements returns what the elements of a constant mean, nil if they are the numbers.
func (x *Value) Elements() *delegate.Elements {
	if !x.IsConst() {
		return nil
	}
	e := &delegate.Elements{Bits: x.Datatype.Info().Bits, Sizes: x.Shape.Dims(), ZeroPoint: int(x.Quant.ZeroPoint), Dim: x.Quant.ChannelDim}
	switch x.Datatype.Info().Quant {
	case PerTensor:
		e.Scales = []float32{x.Quant.Scale}
	case PerChannel:
		e.Scales = x.Quant.Scales
	case PerGroup:
		e.Scales, e.Group = blockScales(x.Quant.Blocks), x.Quant.GroupSize
	default:
		return nil
	}
	return e
}
