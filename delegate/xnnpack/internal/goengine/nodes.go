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
		types[tag] = unary(8, func(_ *graph.Node, dst, src []float32) { f(dst, src) })
	}
	for tag, f := range binaryFuncs {
		types[tag] = nodeType{work: binaryWork, loop: func(e *frame, n *graph.Node) loop { return e.binary(n, f) }}
	}
	moved := func(plan func(e *frame, n *graph.Node, c *copies)) nodeType {
		return nodeType{loop: func(*frame, *graph.Node) loop { return &copies{plan: plan} }}
	}
	copied := nodeType{loop: func(*frame, *graph.Node) loop { return copyBytes{} }}
	for tag, t := range map[uint8]nodeType{
		graph.TagLeakyReLU: unary(4, withScalar(simd.LeakyReLU)),
		graph.TagELU:       unary(4, withScalar(elu)),
		graph.TagClamp:     unary(1, clampElements),
		graph.TagConvert:   {work: convertWork, loop: convert},
		graph.TagTable: {loop: func(_ *frame, n *graph.Node) loop {
			return &int8Elements{op: lookUp, table: graph.Params[[256]uint8](n)}
		}},

		graph.TagConv2d:              {work: products(windowWork), pack: packConvolution, loop: product[windowProduct]},
		graph.TagDepthwiseConv2d:     {work: products(depthwiseWork), pack: packDepthwise, loop: depthwise},
		graph.TagConvTranspose2d:     {work: products(windowWork), pack: packConvolution, loop: product[transposedLines]},
		graph.TagFullyConnected:      {work: products(connectedWork), pack: packFullyConnected, loop: product[denseProduct]},
		graph.TagBatchMatrixMultiply: {work: products(batchWork), loop: product[batchProduct]},

		graph.TagAvgPooling2d:       {work: poolWork, loop: averagePool},
		graph.TagMaxPooling2d:       {work: poolWork, loop: maxPool},
		graph.TagArgMaxPooling2d:    {work: decodeWork, loop: func(*frame, *graph.Node) loop { return decoded{argmaxPool{}} }},
		graph.TagGlobalAvgPooling2d: {work: poolWork, loop: globalPool},
		graph.TagSoftmax:            {work: decodeWork, loop: floats[softmaxRows]},

		graph.TagStaticTranspose:   moved(planTranspose),
		graph.TagStaticReshape:     copied,
		graph.TagCopy:              copied,
		graph.TagStaticSlice:       moved(planSlice),
		graph.TagStaticConstantPad: {loop: func(*frame, *graph.Node) loop { return &padding{copies{plan: planPad}} }},
		graph.TagConcatenate2:      moved(planConcatenate),
		graph.TagConcatenate3:      moved(planConcatenate),
		graph.TagConcatenate4:      moved(planConcatenate),
		graph.TagConcatenate5:      moved(planConcatenate),
		graph.TagRearrange:         moved(planRearrange),
		graph.TagResizeBilinear2D:  {work: resizeWork, loop: floats[resizeLines]},
		graph.TagResizePlanes: {work: resizeWork, loop: func(e *frame, n *graph.Node) loop {
			return e.onFloats(n, &resizeLines{planes: true})
		}},
	} {
		types[tag] = t
	}
}

// binaryFuncs are the functions of two operands.
var binaryFuncs = map[uint8]binaryFunc{
	graph.TagAdd: simd.Add, graph.TagSubtract: simd.Sub, graph.TagMultiply: simd.Mul, graph.TagDiv: simd.Div,
	graph.TagMinimum: simd.Minimum, graph.TagMaximum: simd.Maximum, graph.TagPReLU: simd.PReLU,
}

// loopOf is a loop *L.
type loopOf[L any] interface {
	*L
	loop
}

// floats returns the loop *L over floats for a node.
func floats[L any, P loopOf[L]](e *frame, n *graph.Node) loop { return e.onFloats(n, P(new(L))) }

// product returns the loop of a node with a filter: over bytes, or the loop *L over floats.
func product[L any, P loopOf[L]](e *frame, n *graph.Node) loop { return e.product(n, P(new(L))) }

// unary returns the row of a function of each element, which takes about as long as so many multiplications.
func unary(cost int, f unaryFunc) nodeType {
	return nodeType{elements: f, work: elementWork, loop: func(e *frame, n *graph.Node) loop { return e.unary(n, cost, f) }}
}

// withScalar returns the function with the node's parameter.
func withScalar(f func(dst, src []float32, p float32)) unaryFunc {
	return func(n *graph.Node, dst, src []float32) { f(dst, src, graph.Params[graph.ScalarParams](n).Value) }
}

func square(dst, src []float32) { simd.Mul(dst, src, src) }

func elu(dst, src []float32, alpha float32) { simd.ELU(dst, src, alpha, 1, 1) }

func clampElements(n *graph.Node, dst, src []float32) { simd.Clamp(dst, src, n.Min, n.Max) }

// nodeType says how the Go engine runs one kind of node.
type nodeType struct {
	// Loop returns the loop of a node, which depends on datatypes; those that depend on shapes are chosen when it is bound.
	loop func(e *frame, n *graph.Node) loop
	// work adds the memory that the loops need for the node; nil if they need none.
	work workFunc
	// pack packs the filter of the node for products of floats; nil if it has none.
	pack packer
	// elements computes a function of each float; nil for nodes that are no such function.
	elements unaryFunc
}

// Types is the Go engine's table, by tag. The rows refer to it, so init fills it.
var types [256]nodeType

// typeOf returns the row of the node's type.
func typeOf(n *graph.Node) *nodeType { return &types[n.Type.Tag] }

// loop computes the outputs of a node.
type loop interface {
	// bind prepares the loop for the current shapes and addresses of values.
	bind(e *frame, n *graph.Node)
	run(e *frame, n *graph.Node)
}

// planner is a loop that is planned for shapes before the addresses of values are known.
type planner interface{ plan() }

// decoded runs a loop over floats on copies of values of other datatypes, whose addresses change: it is bound in each run.
type decoded struct{ floats loop }

func (decoded) bind(*frame, *graph.Node) {}

func (d decoded) run(e *frame, n *graph.Node) {
	d.floats.bind(e, n)
	d.floats.run(e, n)
	e.store(n.Out[0])
}

// onFloats returns a loop over floats for the node, which decodes its values unless the loop can work on their bytes: if they are
// all float32 and the filter, if any, is packed.
func (e *frame) onFloats(n *graph.Node, l loop) loop {
	weighted := typeOf(n).pack != nil
	if weighted && e.packed.floats[n.At] == nil {
		return decoded{l}
	}
	for _, list := range [][]int{n.In, n.Out} {
		for k, v := range list {
			if isPacked := k > 0 && weighted; v != graph.None && !isPacked && e.graph.Values[v].Datatype != graph.FP32 {
				return decoded{l}
			}
		}
	}
	return l
}
