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
		types[tag] = nodeType{define: func(b *builder, n *graph.Node) call { return b.unary(op, nil, n) }}
	}
	for tag, t := range map[uint8]nodeType{
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
	} {
		types[tag] = t
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
