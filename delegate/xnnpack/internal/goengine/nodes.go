package goengine

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

func init() {
	for tag, x := range elements {
		if x.f != nil {
			table := nodeType{tableWork, func(*frame, *graph.Node) loop { return &int8Elements{op: lookUp, f: x.f} }}
			types[tag] = either(mapsBytes, table, nodeType{decodeWork, func(e *frame, n *graph.Node) loop {
				return e.onFloats(n, &unaryLoop{f: x.f, grain: elementsPerRange / x.cost})
			}})
		}
	}
	for tag, f := range binaryFuncs {
		types[tag] = nodeType{binaryWork, func(e *frame, n *graph.Node) loop { return e.onFloats(n, &binaryLoop{f: f}) }}
	}
	for tag, op := range binaryOps {
		types[tag] = either(writesBytes, nodeType{byteBinaryWork, func(*frame, *graph.Node) loop { return &int8Binary{op: op} }}, types[tag])
	}
	moved := func(plan func(e *frame, n *graph.Node, c *copies)) nodeType {
		return nodeType{loop: func(*frame, *graph.Node) loop { return &copies{plan: plan} }}
	}
	copied := nodeType{loop: func(*frame, *graph.Node) loop { return copyBytes{} }}
	convolution := nodeType{windowWork, floats[windowProduct]}
	for tag, t := range map[uint8]nodeType{
		graph.TagConvert: {convertWork, convert},
		graph.TagTable: {loop: func(_ *frame, n *graph.Node) loop {
			return &int8Elements{op: lookUp, table: graph.Params[[256]uint8](n)}
		}},

		graph.TagConv2d:              product(convolution),
		graph.TagDepthwiseConv2d:     product(either(multipliesChannels, convolution, nodeType{depthwiseWork, floats[depthwiseLines]})),
		graph.TagConvTranspose2d:     product(nodeType{windowWork, floats[transposedLines]}),
		graph.TagFullyConnected:      product(nodeType{connectedWork, floats[denseProduct]}),
		graph.TagBatchMatrixMultiply: product(nodeType{batchWork, floats[batchProduct]}),

		graph.TagAvgPooling2d: {poolWork, averagePool},
		graph.TagMaxPooling2d: either(readsBytes, nodeType{maxPoolWork(poolWork), func(*frame, *graph.Node) loop {
			return &int8MaxPool{floats: decoded{&linePool{}}}
		}}, nodeType{poolWork, floats[linePool]}),
		graph.TagArgMaxPooling2d:    {decodeWork, func(*frame, *graph.Node) loop { return decoded{argmaxPool{}} }},
		graph.TagGlobalAvgPooling2d: {poolWork, globalPool},
		graph.TagSoftmax:            {decodeWork, floats[softmaxRows]},

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
		graph.TagResizeBilinear2D:  {resizeWork, floats[resizeLines]},
		graph.TagResizePlanes:      {resizeWork, func(e *frame, n *graph.Node) loop { return e.onFloats(n, &resizeLines{planes: true}) }},
	} {
		types[tag] = t
	}
}

// either returns the row of a node that special computes if is reports so, and else other.
func either(is func(*graph.Graph, *graph.Node) bool, special, other nodeType) nodeType {
	of := func(g *graph.Graph, n *graph.Node) *nodeType {
		if is(g, n) {
			return &special
		}
		return &other
	}
	return nodeType{
		func(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
			of(g, n).work(w, g, n, s, threads)
		},
		func(e *frame, n *graph.Node) loop { return of(e.graph, n).loop(e, n) },
	}
}

// product returns the row of a node with a filter, whose loops over bytes are always the same.
func product(floats nodeType) nodeType {
	return either(supportsInt8, nodeType{workInt8, func(e *frame, n *graph.Node) loop {
		return &int8Product{e: e, node: n, int8Weights: e.packed.bytes[n.At]}
	}}, floats)
}

// multipliesChannels reports whether a depthwise convolution has several output channels per input channel: it is a grouped
// convolution with one input channel per group.
func multipliesChannels(_ *graph.Graph, n *graph.Node) bool { return n.Window().GroupOut > 1 }

// loopOf is a loop *L.
type loopOf[L any] interface {
	*L
	loop
}

// floats returns the loop *L over floats for a node.
func floats[L any, P loopOf[L]](e *frame, n *graph.Node) loop { return e.onFloats(n, P(new(L))) }

// nodeType says how the Go engine runs one kind of node.
type nodeType struct {
	// work adds the memory that the loops need for the node; nil if they need none.
	work workFunc
	// loop returns the loop of a node, which depends on datatypes; those that depend on shapes are chosen when it is bound.
	loop func(e *frame, n *graph.Node) loop
}

// Types is the Go engine's table, by tag. The rows refer to it, so init fills it.
var types [256]nodeType

// typeOf returns the row of the node's type.
func typeOf(n *graph.Node) *nodeType { return &types[n.Type.Tag] }
