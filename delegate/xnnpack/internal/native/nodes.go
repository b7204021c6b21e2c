package native

import (
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

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
		graph.TagLeakyReLU: {Define: withParam(xnn.LeakyReLU), Rule: finiteScalar, viaFloats: true},
		graph.TagELU:       {Define: withParam(xnn.ELU), Rule: finiteScalar},
		graph.TagClamp:     {Define: defineClamp, Rule: every(sameQuantization, boundLimits)},
		graph.TagConvert:   {Define: func(b *builder, n *graph.Node) call { return b.unary(xnn.Convert, nil, n) }, viaFloats: true},

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
			tables: resizeTables, layout: imageChannels, viaFloats: true},
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
