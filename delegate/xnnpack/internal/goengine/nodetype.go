package goengine

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

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
