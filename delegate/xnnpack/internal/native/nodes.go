package native

import (
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

func init() {
	copy(types[:], []nodeType{
		graph.TagLeakyReLU: {define: withParam(xnn.LeakyReLU), rule: finiteScalar, viaFloats: true},
		graph.TagELU:       {define: withParam(xnn.ELU), rule: finiteScalar},
		graph.TagClamp:     {define: defineClamp, rule: every(sameQuantization, boundLimits)},
		graph.TagConvert:   {define: func(b *builder, n *graph.Node) call { return b.unary(xnn.Convert, nil, n) }, viaFloats: true},

		graph.TagAdd:      bounded(xnn.Add, every(sumLimits, boundLimits)),
		graph.TagSubtract: bounded(xnn.Subtract, every(sumLimits, boundLimits)),
		graph.TagMultiply: bounded(xnn.Multiply, every(productLimits, boundLimits)),
		graph.TagDiv:      bounded(xnn.Divide, boundLimits),
		graph.TagMinimum:  unbounded(xnn.Minimum),
		graph.TagMaximum:  unbounded(xnn.Maximum),
		graph.TagPReLU:    unbounded(xnn.PReLU),

		graph.TagConv2d: {define: (*builder).convolution, rule: convolutionRules,
			tables: windowTables, scratch: windowScratch, layout: imageChannels},
		graph.TagDepthwiseConv2d: {define: (*builder).depthwise, rule: convolutionRules,
			tables: windowTables, scratch: windowScratch, layout: imageChannels},
		graph.TagConvTranspose2d: {define: (*builder).deconvolution, rule: every(convolutionRules, transposedLimits), bySize: true,
			tables: windowTables, scratch: windowScratch, layout: imageChannels},

		graph.TagFullyConnected: {define: (*builder).fullyConnected, scratch: fullyConnectedScratch,
			rule: every(fullyConnectedDatatypes, rowLimits, weightLimits, boundLimits)},
		graph.TagBatchMatrixMultiply: {define: (*builder).batchMatrix, rule: oneQuantizedMatrix, scratch: productScratch, layout: fullOperands},

		graph.TagAvgPooling2d: {define: (*builder).averagePool, rule: every(windowLimits, averageLimits), bySize: true,
			tables: windowTables, scratch: windowScratch, layout: imageChannels},
		graph.TagMaxPooling2d: {define: (*builder).maxPool, rule: every(windowLimits, poolLimits, boundLimits),
			tables: windowTables, layout: imageChannels},
		graph.TagArgMaxPooling2d:    {rule: argmaxLimits, layout: imageChannels},
		graph.TagGlobalAvgPooling2d: {define: (*builder).globalPool, rule: meanLimits, tables: reduceTables, scratch: reduceScratch},
		graph.TagSoftmax:            {define: (*builder).softmax},

		graph.TagStaticTranspose: {define: (*builder).transpose, rule: nativeMove},
		graph.TagStaticReshape:   {define: (*builder).reshape, rule: nativeMove},
		graph.TagCopy:            {define: (*builder).copy, rule: nativeMove},
		graph.TagStaticSlice:     {define: (*builder).slice, rule: nativeMove},
		graph.TagStaticConstantPad: {define: (*builder).pad,
			rule: every(nativeMove, finiteParam(func(n *graph.Node) float32 { return graph.Params[graph.PadParams](n).Value }))},
		graph.TagConcatenate2: {define: (*builder).concatenate, rule: nativeMove, perInput: true},
		graph.TagConcatenate3: {define: (*builder).concatenate, rule: nativeMove, perInput: true},
		graph.TagConcatenate4: {define: (*builder).concatenate, rule: nativeMove, perInput: true},
		graph.TagConcatenate5: {define: (*builder).concatenate, rule: nativeMove, perInput: true},
		graph.TagResizeBilinear2D: {define: (*builder).resize, rule: every(nativeMove, resizeLimits), bySize: true,
			tables: resizeTables, layout: imageChannels, viaFloats: true},
	})
	for tag, op := range map[uint8]xnn.UnaryOperator{
		graph.TagSigmoid: xnn.Sigmoid, graph.TagFloor: xnn.Floor, graph.TagSquareRoot: xnn.SquareRoot,
		graph.TagCeiling: xnn.Ceiling, graph.TagHardswish: xnn.Hardswish, graph.TagNegate: xnn.Negate,
		graph.TagSquare: xnn.Square, graph.TagAbs: xnn.Abs, graph.TagReciprocalSquareRoot: xnn.ReciprocalSquareRoot,
		graph.TagLog: xnn.Log, graph.TagGelu: xnn.Gelu, graph.TagTanh: xnn.Tanh,
		graph.TagExp: xnn.Exp, graph.TagSin: xnn.Sine, graph.TagCos: xnn.Cosine,
	} {
		types[tag] = nodeType{define: func(b *builder, n *graph.Node) call { return b.unary(op, nil, n) }}
	}
}

// withParam defines a function with one parameter.
func withParam(op xnn.UnaryOperator) func(b *builder, n *graph.Node) call {
	return func(b *builder, n *graph.Node) call {
		return b.unary(op, &xnn.UnaryParams{graph.Params[graph.ScalarParams](n).Value}, n)
	}
}

func defineClamp(b *builder, n *graph.Node) call {
	return b.unary(xnn.Clamp, &xnn.UnaryParams{n.Min, n.Max}, n)
}

// bounded returns the row of a function of two operands that clamps its output.
func bounded(op xnn.BinaryOperator, r rule) nodeType {
	return nodeType{rule: r, clampsApart: true, define: func(b *builder, n *graph.Node) call {
		return b.binary(op, &xnn.BinaryParams{OutputMin: float64(n.Min), OutputMax: float64(n.Max)}, n)
	}}
}

func unbounded(op xnn.BinaryOperator) nodeType {
	return nodeType{define: func(b *builder, n *graph.Node) call { return b.binary(op, nil, n) }}
}

// nodeType says how the library runs one kind of node.
type nodeType struct {
	// Define adds the node to the library's subgraph; nil if the library has no such node.
	define func(b *builder, n *graph.Node) call
	// Rule checks what the library requires to be safe; nil if it supports all that the node's check accepts.
	rule rule
	// bySize is set if Rule depends on sizes: a call may be rejected where others are not.
	bySize bool
	// tables returns the bytes that the library allocates for the node, in addition to its values
	// and descriptors, and keeps; nil for none.
	tables func(g *graph.Graph, n *graph.Node, s []graph.Shape) int64
	// scratch returns the bytes of the workspace that the node needs while it runs; nil for none.
	scratch func(g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) int64
	// layout returns, as a number, the part of the shapes that must not change during the lifetime
	// of a library runtime; nil if all shapes may change.
	layout func(n *graph.Node, s []graph.Shape) int
	// perInput marks nodes for which the library has an operator for each input; clampsApart those
	// whose bounds are another node of the library; viaFloats those that compute on float32 if they are of bytes.
	perInput, clampsApart, viaFloats bool
}

// Types is the library's table, by tag. The rows refer to it, so init fills it.
var types [graph.Tags]nodeType

// typeOf returns the row of the node's type.
func typeOf(n *graph.Node) *nodeType { return &types[n.Type.Tag] }

// The library's nodes of bytes multiply by ratios of scales, slopes and weights of pixels that are rounded to 8 or 11 bits:
// one element in 20 is a step beside that of PyTorch and of the Go engine. With halves, scales are rounded to halves. Such
// nodes are computed on float32, between two conversions, which are exact.

// isViaFloats reports whether a node is computed on float32.
func isViaFloats(g *graph.Graph, n *graph.Node) bool {
	x, y := g.Values[n.In[0]].Datatype, g.Values[n.Out[0]].Datatype
	bytes := x.Info().Quant == graph.PerTensor || y.Info().Quant == graph.PerTensor
	return typeOf(n).viaFloats && bytes && x != graph.FP32 && y != graph.FP32
}
