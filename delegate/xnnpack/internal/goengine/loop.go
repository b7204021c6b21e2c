package goengine

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

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
