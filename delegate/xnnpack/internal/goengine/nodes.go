package goengine

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
)

func init() {
	for tag, f := range map[uint8]func(dst, src []float32){
		graph.TagSigmoid: simd.Sigmoid, graph.TagFloor: simd.Floor, graph.TagSquareRoot: simd.Sqrt,
		graph.TagCeiling: simd.Ceil, graph.TagHardswish: simd.HardswishProduct, graph.TagNegate: simd.Neg,
		graph.TagSquare: square, graph.TagAbs: simd.Abs, graph.TagReciprocalSquareRoot: simd.Rsqrt,
		graph.TagLog: simd.Log, graph.TagGelu: simd.GELU, graph.TagTanh: simd.Tanh,
		graph.TagExp: simd.Exp, graph.TagSin: simd.Sin, graph.TagCos: simd.Cos,
		graph.TagSiLU: simd.SiLU,
	} {
		Types[tag] = unary(8, func(_ *graph.Node, dst, src []float32) { f(dst, src) })
	}
	for tag, f := range map[uint8]func(dst, a, b []float32){graph.TagAdd: simd.Add, graph.TagSubtract: simd.Sub, graph.TagMultiply: simd.Mul,
		graph.TagDiv: simd.Div, graph.TagMinimum: simd.Minimum, graph.TagMaximum: simd.Maximum, graph.TagPReLU: simd.PReLU} {
		Types[tag] = nodeType{work: binaryWork, Run: func(e *Unit, n *graph.Node) { e.mapBinary(n, f) }}
	}
	for tag, t := range map[uint8]nodeType{
		graph.TagLeakyReLU: unary(4, withScalar(simd.LeakyReLU)),
		graph.TagELU:       unary(4, withScalar(elu)),
		graph.TagClamp:     {work: elementWork, Run: func(e *Unit, n *graph.Node) { e.mapUnary(n, 1, clampElements) }},
		graph.TagConvert:   {work: convertWork, Run: (*Unit).convert},
		graph.TagTable:     {Run: func(e *Unit, n *graph.Node) { e.lookUp(n, graph.Params[[256]uint8](n)) }},

		graph.TagConv2d:          {work: products(windowWork), pack: packConvolution, Run: (*Unit).convolution},
		graph.TagDepthwiseConv2d: {work: products(depthwiseWork), pack: packDepthwise, Run: (*Unit).depthwise},
		graph.TagConvTranspose2d: {work: products(windowWork), pack: packConvolution, Run: (*Unit).transposed},

		graph.TagFullyConnected:      {work: products(connectedWork), pack: packFullyConnected, Run: (*Unit).fullyConnected},
		graph.TagBatchMatrixMultiply: {work: products(batchWork), Run: (*Unit).batchMatrix},

		graph.TagAvgPooling2d:       {work: poolWork, Run: (*Unit).averagePool},
		graph.TagMaxPooling2d:       {work: poolWork, Run: (*Unit).maxPool},
		graph.TagArgMaxPooling2d:    {work: decodeWork, Run: (*Unit).argmaxPool},
		graph.TagGlobalAvgPooling2d: {work: poolWork, Run: (*Unit).globalPool},
		graph.TagSoftmax:            {work: decodeWork, Run: (*Unit).softmax},

		graph.TagStaticTranspose:   {Run: (*Unit).transpose},
		graph.TagStaticReshape:     {Run: (*Unit).copy},
		graph.TagCopy:              {Run: (*Unit).copy},
		graph.TagStaticSlice:       {Run: (*Unit).slice},
		graph.TagStaticConstantPad: {Run: (*Unit).pad},
		graph.TagConcatenate2:      {Run: (*Unit).concatenate},
		graph.TagConcatenate3:      {Run: (*Unit).concatenate},
		graph.TagConcatenate4:      {Run: (*Unit).concatenate},
		graph.TagConcatenate5:      {Run: (*Unit).concatenate},
		graph.TagRearrange:         {Run: func(e *Unit, n *graph.Node) { e.copyBoxes(n, planRearrange) }},
		graph.TagResizeBilinear2D:  {work: resizeWork, Run: (*Unit).resize},
		graph.TagResizePlanes:      {work: resizeWork, Run: (*Unit).resizePlanes},
	} {
		Types[tag] = t
	}
}

// unary returns the row of a function of each element, which takes about as long as so many multiplications.
func unary(cost int, f unaryFunc) nodeType {
	return nodeType{elements: f, work: elementWork, Run: func(e *Unit, n *graph.Node) { e.mapUnary(n, cost, f) }}
}

// withScalar returns the function with the node's parameter.
func withScalar(f func(dst, src []float32, p float32)) unaryFunc {
	return func(n *graph.Node, dst, src []float32) { f(dst, src, graph.Params[graph.ScalarParams](n).Value) }
}

func square(dst, src []float32) { simd.Mul(dst, src, src) }

func elu(dst, src []float32, alpha float32) { simd.ELU(dst, src, alpha, 1, 1) }

func clampElements(n *graph.Node, dst, src []float32) { simd.Clamp(dst, src, n.Min, n.Max) }

// convert converts between datatypes.
func (e *Unit) convert(n *graph.Node) {
	if e.Graph.Values[n.Out[0]].Datatype == graph.QDInt8 {
		e.quantizeDynamic(n.Out[0], e.load(0, n.In[0]), e.Graph.Values[n.In[0]].Datatype == graph.FP16)
		return
	}
	if e.int8Convert(n) {
		return
	}
	copy(e.result(n.Out[0]), e.load(0, n.In[0]))
	e.store(n.Out[0])
}
