package goengine

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// nodeState is the state that a unit holds for a node between runs: a prepared loop, which is valid
// while values keep their addresses and shapes.
type nodeState struct {
	loop       any
	generation uint64 // of the addresses that the loop was prepared for
}

// loopOf returns the loop of the node, a T, and reports whether it must be prepared for the current
// addresses of values. That is always so if the loop reads copies of values, whose addresses
// change.
func loopOf[T any](e *Unit, n *graph.Node, inPlace bool) (loop *T, stale bool) {
	s := &e.states[n.At]
	loop, ok := s.loop.(*T)
	if !ok {
		loop = new(T)
		s.loop = loop
	}
	stale = !ok || !inPlace || s.generation != e.generation
	s.generation = e.generation
	return loop, stale
}

// directNodes reports for each node whether its loop works on the bytes of the values themselves:
// its operands are all float32 and its filter, if any, is constant.
func (e *Unit) directNodes() []bool {
	direct := make([]bool, len(e.Graph.Nodes))
	for i := range e.Graph.Nodes {
		n := &e.Graph.Nodes[i]
		direct[i] = typeOf(n).pack == nil || e.packed.Floats[i] != nil
		for _, list := range [][]int{n.In, n.Out} {
			for k, v := range list {
				if packed := k > 0 && typeOf(n).pack != nil; v != graph.None && !packed {
					direct[i] = direct[i] && e.Graph.Values[v].Datatype == graph.FP32
				}
			}
		}
	}
	return direct
}
