package xnnpack

import "github.com/etrun-go/etrun/internal/simd"

// goType says how the Go engine runs one kind of node.
type goType struct {
	// run computes the outputs.
	run func(e *reference, n *node)
	// work adds the memory that the loops need for the node; nil if they need none.
	work workFunc
	// pack packs the filter of the node for products of floats; nil if it has none.
	pack packer
	// elements computes a function of each float; nil for nodes that are no such function.
	elements unaryFunc
	// finishes is set if the loops over floats apply node.then.
	finishes bool
}

// goTypes is the Go engine's table, by tag. The rows refer to it, so init fills it.
var goTypes [256]goType

// goTypeOf returns the row of the node's type.
func goTypeOf(n *node) *goType { return &goTypes[n.Type.tag] }

func init() {
	for tag, f := range map[uint8]func(dst, src []float32){tagSigmoid: simd.Sigmoid, tagFloor: simd.Floor, tagSquareRoot: simd.Sqrt,
		tagCeiling: simd.Ceil, tagHardswish: simd.HardswishProduct, tagNegate: simd.Neg, tagSquare: square, tagAbs: simd.Abs,
		tagReciprocalSquareRoot: simd.Rsqrt, tagLog: simd.Log, tagGelu: simd.GELU, tagTanh: simd.Tanh, tagExp: simd.Exp,
		tagSin: simd.Sin, tagCos: simd.Cos, tagSiLU: simd.SiLU} {
		goTypes[tag] = unary(8, func(_ *node, dst, src []float32) { f(dst, src) })
	}
	for tag, f := range map[uint8]func(dst, a, b []float32){tagAdd: simd.Add, tagSubtract: simd.Sub, tagMultiply: simd.Mul,
		tagDiv: simd.Div, tagMinimum: simd.Minimum, tagMaximum: simd.Maximum, tagPReLU: simd.PReLU} {
		goTypes[tag] = goType{work: binaryWork, run: func(e *reference, n *node) { e.mapBinary(n, f) }}
	}
	for tag, t := range map[uint8]goType{
		tagLeakyReLU: unary(4, withScalar(simd.LeakyReLU)),
		tagELU:       unary(4, withScalar(elu)),
		tagClamp:     {work: elementWork, run: func(e *reference, n *node) { e.mapUnary(n, 1, clampElements) }},
		tagConvert:   {work: convertWork, run: (*reference).convert},
		tagTable:     {run: func(e *reference, n *node) { e.lookUp(n, params[[256]uint8](n)) }},

		tagConv2d:          {work: products(windowWork), pack: packConvolution, finishes: true, run: (*reference).convolution},
		tagDepthwiseConv2d: {work: products(depthwiseWork), pack: packDepthwise, finishes: true, run: (*reference).depthwise},
		tagConvTranspose2d: {work: products(windowWork), pack: packConvolution, run: (*reference).transposed},

		tagFullyConnected:      {work: products(connectedWork), pack: packFullyConnected, finishes: true, run: (*reference).fullyConnected},
		tagBatchMatrixMultiply: {work: products(batchWork), run: (*reference).batchMatrix},

		tagAvgPooling2d:       {work: poolWork, run: (*reference).averagePool},
		tagMaxPooling2d:       {work: poolWork, run: (*reference).maxPool},
		tagArgMaxPooling2d:    {work: decodeWork, run: (*reference).argmaxPool},
		tagGlobalAvgPooling2d: {work: meanWork, run: (*reference).globalPool},
		tagSoftmax:            {work: decodeWork, run: (*reference).softmax},

		tagStaticTranspose:   {run: (*reference).transpose},
		tagStaticReshape:     {run: (*reference).copy},
		tagCopy:              {run: (*reference).copy},
		tagStaticSlice:       {run: (*reference).slice},
		tagStaticConstantPad: {run: (*reference).pad},
		tagConcatenate2:      {run: (*reference).concatenate},
		tagConcatenate3:      {run: (*reference).concatenate},
		tagConcatenate4:      {run: (*reference).concatenate},
		tagConcatenate5:      {run: (*reference).concatenate},
		tagRearrange:         {run: func(e *reference, n *node) { e.copyBoxes(n, planRearrange) }},
		tagResizeBilinear2D:  {work: resizeWork, run: (*reference).resize},
		tagResizePlanes:      {work: resizeWork, run: (*reference).resizePlanes},
	} {
		goTypes[tag] = t
	}
}

// unary returns the row of a function of each element, which takes about as long as so many multiplications.
func unary(cost int, f unaryFunc) goType {
	return goType{elements: f, work: elementWork, run: func(e *reference, n *node) { e.mapUnary(n, cost, f) }}
}

// withScalar returns the function with the node's parameter.
func withScalar(f func(dst, src []float32, p float32)) unaryFunc {
	return func(n *node, dst, src []float32) { f(dst, src, params[scalarParams](n).value) }
}

func square(dst, src []float32) { simd.Mul(dst, src, src) }

func elu(dst, src []float32, alpha float32) { simd.ELU(dst, src, alpha, 1, 1) }

func clampElements(n *node, dst, src []float32) { simd.Clamp(dst, src, n.Min, n.Max) }

// boundFloats clamps numbers to the node's bounds, in place.
func boundFloats(n *node, x []float32) {
	if n.Min == -inf && n.Max == inf {
		return
	}
	simd.Clamp(x, x, n.Min, n.Max)
}

// convert converts between datatypes.
func (e *reference) convert(n *node) {
	if e.int8Convert(n) {
		return
	}
	x := e.load(0, n.In[0])
	if e.graph.Values[n.Out[0]].Datatype == qdint8 {
		e.quantizeDynamic(n.Out[0], x, e.graph.Values[n.In[0]].Datatype == fp16)
		return
	}
	copy(e.result(n.Out[0]), x)
	e.store(n.Out[0])
}
