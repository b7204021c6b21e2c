package goengine

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/floats"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/integers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/moves"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// nodeType says how the Go engine runs one kind of node. Another row is for the nodes that it accepts: those whose loops
// are over bytes, for example.
type nodeType struct {
	work    frame.WorkFunc // adds the memory that the loops need for the node; nil if they need none
	loop    frame.Maker
	accepts func(*graph.Graph, *graph.Node) bool // nil for all
	other   *nodeType                            // for those that are not accepted
}

// typeOf returns the row of a node.
func typeOf(g *graph.Graph, n *graph.Node) *nodeType {
	t := &types[n.Type.Tag]
	for t.accepts != nil && !t.accepts(g, n) {
		t = t.other
	}
	return t
}

func isDepthwise(_ *graph.Graph, n *graph.Node) bool { return n.IsDepthwise() }

var convolution = nodeType{work: floats.WindowWork, loop: floats.Convolution}

// types is the table, by tag. Functions of each element and of two operands are added by init.
var types = [graph.Tags]nodeType{
	graph.TagConvert: {integers.ConvertWork, integers.Convert, integers.ConvertsBytes, &nodeType{work: frame.DecodeWork, loop: floats.Unary}},
	graph.TagTable:   {loop: integers.Table},

	graph.TagConv2d: {integers.ProductWork, integers.Product, filters.PacksInt8, &convolution},
	graph.TagDepthwiseConv2d: {integers.ProductWork, integers.Product, filters.PacksInt8,
		&nodeType{floats.DepthwiseWork, floats.Depthwise, isDepthwise, &convolution}},
	graph.TagConvTranspose2d: {integers.ProductWork, integers.Product, filters.PacksInt8,
		&nodeType{work: floats.WindowWork, loop: floats.Transposed}},
	graph.TagFullyConnected: {integers.ProductWork, integers.Product, filters.PacksInt8,
		&nodeType{work: floats.ConnectedWork, loop: floats.Dense}},
	graph.TagBatchMatrixMultiply: {integers.ProductWork, integers.Product, filters.PacksInt8,
		&nodeType{work: floats.BatchWork, loop: floats.Batch}},

	graph.TagAvgPooling2d: {work: floats.PoolWork, loop: floats.AveragePool},
	graph.TagMaxPooling2d: {integers.MaxPoolWork(floats.PoolWork), integers.MaxPool(floats.MaxPool), numbers.ReadsBytes,
		&nodeType{work: floats.PoolWork, loop: floats.MaxPool}},
	graph.TagArgMaxPooling2d:    {work: frame.DecodeWork, loop: floats.ArgmaxPool},
	graph.TagGlobalAvgPooling2d: {work: floats.PoolWork, loop: floats.GlobalPool},
	graph.TagSoftmax:            {work: frame.DecodeWork, loop: floats.Softmax},

	graph.TagStaticTranspose:   {loop: moves.Transpose},
	graph.TagStaticReshape:     {loop: moves.Copy},
	graph.TagCopy:              {loop: moves.Copy},
	graph.TagStaticSlice:       {loop: moves.Slice},
	graph.TagStaticConstantPad: {loop: moves.Pad},
	graph.TagConcatenate2:      {loop: moves.Concatenate},
	graph.TagConcatenate3:      {loop: moves.Concatenate},
	graph.TagConcatenate4:      {loop: moves.Concatenate},
	graph.TagConcatenate5:      {loop: moves.Concatenate},
	graph.TagRearrange:         {loop: moves.Rearrange},
	graph.TagResizeBilinear2D:  {work: floats.ResizeWork, loop: floats.Resize},
	graph.TagResizePlanes:      {work: floats.ResizeWork, loop: floats.Resize},
}

func init() {
	floating := &nodeType{work: frame.DecodeWork, loop: floats.Unary}
	for tag := range frame.Elements {
		if types[tag].loop == nil && frame.Elements[tag].Cost > 0 {
			types[tag] = nodeType{integers.TableWork, integers.Table, numbers.MapsBytes, floating}
		}
	}
	for i := range graph.BinaryNodes {
		types[graph.BinaryNodes[i].Tag] = nodeType{integers.BinaryWork, integers.Binary, integers.ComputesBinary,
			&nodeType{work: floats.BinaryWork, loop: floats.Binary}}
	}
}
