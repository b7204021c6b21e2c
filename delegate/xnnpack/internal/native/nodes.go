package native

import (
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// nodeType says how the library runs one kind of node.
type nodeType struct {
	// Define adds the node to the library's subgraph; nil if the library has no such node.
	Define func(b *builder, n *graph.Node) call
	// Rule checks what the library requires to be safe; nil if it supports all that the node's check accepts.
	Rule rule
	// graph.BySize is set if rule depends on sizes: a call may be rejected where others are not.
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
	// whose bounds are another node of the library.
	perInput, clampsApart bool
}

// Types is the library's table, by tag. The rows refer to it, so init fills it.
var Types [256]nodeType

// typeOf returns the row of the node's type.
func typeOf(n *graph.Node) *nodeType { return &Types[n.Type.Tag] }

func init() {
	for tag, op := range map[uint8]xnn.UnaryOperator{
		graph.TagSigmoid: xnn.Sigmoid, graph.TagFloor: xnn.Floor, graph.TagSquareRoot: xnn.SquareRoot,
		graph.TagCeiling: xnn.Ceiling, graph.TagHardswish: xnn.Hardswish, graph.TagNegate: xnn.Negate,
		graph.TagSquare: xnn.Square, graph.TagAbs: xnn.Abs, graph.TagReciprocalSquareRoot: xnn.ReciprocalSquareRoot,
		graph.TagLog: xnn.Log, graph.TagGelu: xnn.Gelu, graph.TagTanh: xnn.Tanh,
		graph.TagExp: xnn.Exp, graph.TagSin: xnn.Sine, graph.TagCos: xnn.Cosine,
	} {
		Types[tag] = nodeType{Define: func(b *builder, n *graph.Node) call { return b.unary(op, nil, n) }}
	}
	for tag, t := range map[uint8]nodeType{
		graph.TagLeakyReLU: {Define: withParam(xnn.LeakyReLU), Rule: every(finiteScalar, leakyLimits)},
		graph.TagELU:       {Define: withParam(xnn.ELU), Rule: finiteScalar},
		graph.TagClamp:     {Define: defineClamp, Rule: every(sameQuantization, boundLimits)},
		graph.TagConvert:   {Define: func(b *builder, n *graph.Node) call { return b.unary(xnn.Convert, nil, n) }, Rule: convertLimits},

		graph.TagAdd:      bounded(xnn.Add, every(sumLimits, boundLimits)),
		graph.TagSubtract: bounded(xnn.Subtract, every(sumLimits, boundLimits)),
		graph.TagMultiply: bounded(xnn.Multiply, every(productLimits, boundLimits)),
		graph.TagDiv:      bounded(xnn.Divide, boundLimits),
		graph.TagMinimum:  unbounded(xnn.Minimum),
		graph.TagMaximum:  unbounded(xnn.Maximum),
		graph.TagPReLU:    unbounded(xnn.PReLU),

		graph.TagConv2d: {Define: (*builder).convolution, Rule: convolutionRules,
			tables: windowTables, scratch: windowScratch, layout: imageChannels},
		graph.TagDepthwiseConv2d: {Define: (*builder).depthwise, Rule: convolutionRules,
			tables: windowTables, scratch: windowScratch, layout: imageChannels},
		graph.TagConvTranspose2d: {Define: (*builder).deconvolution, Rule: every(convolutionRules, transposedLimits), bySize: true,
			tables: windowTables, scratch: windowScratch, layout: imageChannels},

		graph.TagFullyConnected: {Define: (*builder).fullyConnected, scratch: fullyConnectedScratch,
			Rule: every(fullyConnectedDatatypes, rowLimits, weightLimits, boundLimits)},
		graph.TagBatchMatrixMultiply: {Define: (*builder).batchMatrix, Rule: oneQuantizedMatrix, scratch: productScratch, layout: fullOperands},

		graph.TagAvgPooling2d: {Define: (*builder).averagePool, Rule: every(windowLimits, averageLimits), bySize: true,
			tables: windowTables, scratch: windowScratch, layout: imageChannels},
		graph.TagMaxPooling2d: {Define: (*builder).maxPool, Rule: every(windowLimits, poolLimits, boundLimits),
			tables: windowTables, layout: imageChannels},
		graph.TagArgMaxPooling2d:    {Rule: argmaxLimits, layout: imageChannels},
		graph.TagGlobalAvgPooling2d: {Define: (*builder).globalPool, Rule: meanLimits, tables: reduceTables, scratch: reduceScratch},
		graph.TagSoftmax:            {Define: (*builder).softmax},

		graph.TagStaticTranspose: {Define: (*builder).transpose, Rule: nativeMove},
		graph.TagStaticReshape:   {Define: (*builder).reshape, Rule: nativeMove},
		graph.TagCopy:            {Define: (*builder).copy, Rule: nativeMove},
		graph.TagStaticSlice:     {Define: (*builder).slice, Rule: nativeMove},
		graph.TagStaticConstantPad: {Define: (*builder).pad,
			Rule: every(nativeMove, finiteParam(func(n *graph.Node) float32 { return graph.Params[graph.PadParams](n).Value }))},
		graph.TagConcatenate2: {Define: (*builder).concatenate, Rule: nativeMove, perInput: true},
		graph.TagConcatenate3: {Define: (*builder).concatenate, Rule: nativeMove, perInput: true},
		graph.TagConcatenate4: {Define: (*builder).concatenate, Rule: nativeMove, perInput: true},
		graph.TagConcatenate5: {Define: (*builder).concatenate, Rule: nativeMove, perInput: true},
		graph.TagResizeBilinear2D: {Define: (*builder).resize, Rule: every(nativeMove, resizeLimits), bySize: true,
			tables: resizeTables, layout: imageChannels},
	} {
		Types[tag] = t
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
	return nodeType{Rule: r, clampsApart: true, Define: func(b *builder, n *graph.Node) call {
		return b.binary(op, &xnn.BinaryParams{OutputMin: float64(n.Min), OutputMax: float64(n.Max)}, n)
	}}
}

func unbounded(op xnn.BinaryOperator) nodeType {
	return nodeType{Define: func(b *builder, n *graph.Node) call { return b.binary(op, nil, n) }}
}
