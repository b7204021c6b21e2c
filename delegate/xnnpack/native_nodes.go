package xnnpack

import "github.com/etrun-go/etrun/cbindings/xnn"

// nativeType says how the library runs one kind of node.
type nativeType struct {
	// define adds the node to the library's subgraph; nil if the library has no such node.
	define func(b *builder, n *node) call
	// rule checks what the library requires to be safe; nil if it supports all that the node's check accepts.
	rule rule
	// bySize is set if rule depends on sizes: a call may be rejected where others are not.
	bySize bool
	// tables returns the bytes that the library allocates for the node, in addition to its values
	// and descriptors, and keeps; nil for none.
	tables func(g *graph, n *node, s []shape) int64
	// scratch returns the bytes of the workspace that the node needs while it runs; nil for none.
	scratch func(g *graph, n *node, s []shape, threads int) int64
	// layout returns, as a number, the part of the shapes that must not change during the lifetime
	// of a library runtime; nil if all shapes may change.
	layout func(n *node, s []shape) int
	// perInput marks nodes for which the library has an operator for each input; clampsApart those
	// whose bounds are another node of the library.
	perInput, clampsApart bool
}

// nativeTypes is the library's table, by tag. The rows refer to it, so init fills it.
var nativeTypes [256]nativeType

// nativeTypeOf returns the row of the node's type.
func nativeTypeOf(n *node) *nativeType { return &nativeTypes[n.Type.tag] }

func init() {
	for tag, op := range map[uint8]xnn.UnaryOperator{tagSigmoid: xnn.Sigmoid, tagFloor: xnn.Floor, tagSquareRoot: xnn.SquareRoot,
		tagCeiling: xnn.Ceiling, tagHardswish: xnn.Hardswish, tagNegate: xnn.Negate, tagSquare: xnn.Square, tagAbs: xnn.Abs,
		tagReciprocalSquareRoot: xnn.ReciprocalSquareRoot, tagLog: xnn.Log, tagGelu: xnn.Gelu, tagTanh: xnn.Tanh, tagExp: xnn.Exp,
		tagSin: xnn.Sine, tagCos: xnn.Cosine} {
		nativeTypes[tag] = nativeType{define: func(b *builder, n *node) call { return b.unary(op, nil, n) }}
	}
	for tag, t := range map[uint8]nativeType{
		tagLeakyReLU: {define: withParam(xnn.LeakyReLU), rule: every(finiteScalar, leakyLimits)},
		tagELU:       {define: withParam(xnn.ELU), rule: finiteScalar},
		tagClamp:     {define: defineClamp, rule: every(sameQuantization, boundLimits)},
		tagConvert:   {define: func(b *builder, n *node) call { return b.unary(xnn.Convert, nil, n) }, rule: convertLimits},

		tagAdd:      bounded(xnn.Add, every(sumLimits, boundLimits)),
		tagSubtract: bounded(xnn.Subtract, every(sumLimits, boundLimits)),
		tagMultiply: bounded(xnn.Multiply, every(productLimits, boundLimits)),
		tagDiv:      bounded(xnn.Divide, boundLimits),
		tagMinimum:  unbounded(xnn.Minimum),
		tagMaximum:  unbounded(xnn.Maximum),
		tagPReLU:    unbounded(xnn.PReLU),

		tagConv2d: {define: (*builder).convolution, rule: convolutionRules,
			tables: windowTables, scratch: windowScratch, layout: imageChannels},
		tagDepthwiseConv2d: {define: (*builder).depthwise, rule: convolutionRules,
			tables: windowTables, scratch: windowScratch, layout: imageChannels},
		tagConvTranspose2d: {define: (*builder).deconvolution, rule: every(convolutionRules, transposedLimits), bySize: true,
			tables: windowTables, scratch: windowScratch, layout: imageChannels},

		tagFullyConnected: {define: (*builder).fullyConnected, scratch: fullyConnectedScratch,
			rule: every(fullyConnectedDatatypes, rowLimits, weightLimits, boundLimits)},
		tagBatchMatrixMultiply: {define: (*builder).batchMatrix, rule: oneQuantizedMatrix, scratch: productScratch, layout: fullOperands},

		tagAvgPooling2d: {define: (*builder).averagePool, rule: every(windowLimits, averageLimits), bySize: true,
			tables: windowTables, scratch: windowScratch, layout: imageChannels},
		tagMaxPooling2d: {define: (*builder).maxPool, rule: every(windowLimits, poolLimits, boundLimits),
			tables: windowTables, layout: imageChannels},
		tagArgMaxPooling2d:    {rule: argmaxLimits, layout: imageChannels},
		tagGlobalAvgPooling2d: {define: (*builder).globalPool, rule: meanLimits, tables: reduceTables, scratch: reduceScratch},
		tagSoftmax:            {define: (*builder).softmax},

		tagStaticTranspose: {define: (*builder).transpose, rule: nativeMove},
		tagStaticReshape:   {define: (*builder).reshape, rule: nativeMove},
		tagCopy:            {define: (*builder).copy, rule: nativeMove},
		tagStaticSlice:     {define: (*builder).slice, rule: nativeMove},
		tagStaticConstantPad: {define: (*builder).pad,
			rule: every(nativeMove, finiteParam(func(n *node) float32 { return params[padParams](n).value }))},
		tagConcatenate2: {define: (*builder).concatenate, rule: nativeMove, perInput: true},
		tagConcatenate3: {define: (*builder).concatenate, rule: nativeMove, perInput: true},
		tagConcatenate4: {define: (*builder).concatenate, rule: nativeMove, perInput: true},
		tagConcatenate5: {define: (*builder).concatenate, rule: nativeMove, perInput: true},
		tagResizeBilinear2D: {define: (*builder).resize, rule: every(nativeMove, resizeLimits), bySize: true,
			tables: resizeTables, layout: imageChannels},
	} {
		nativeTypes[tag] = t
	}
}

// withParam defines a function with one parameter.
func withParam(op xnn.UnaryOperator) func(b *builder, n *node) call {
	return func(b *builder, n *node) call { return b.unary(op, &xnn.UnaryParams{params[scalarParams](n).value}, n) }
}

func defineClamp(b *builder, n *node) call {
	return b.unary(xnn.Clamp, &xnn.UnaryParams{n.Min, n.Max}, n)
}

// bounded returns the row of a function of two operands that clamps its output.
func bounded(op xnn.BinaryOperator, r rule) nativeType {
	return nativeType{rule: r, clampsApart: true, define: func(b *builder, n *node) call {
		return b.binary(op, &xnn.BinaryParams{OutputMin: float64(n.Min), OutputMax: float64(n.Max)}, n)
	}}
}

func unbounded(op xnn.BinaryOperator) nativeType {
	return nativeType{define: func(b *builder, n *node) call { return b.binary(op, nil, n) }}
}
