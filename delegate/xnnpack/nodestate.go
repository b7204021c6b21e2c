package xnnpack

// nodeState is what a unit keeps for a node from one execute to the next: a loop with all
// decided, which stays good while values keep their places and shapes.
type nodeState struct {
	loop       any
	generation uint64 // of the places that the loop was made for
}

// loopOf is the node's loop, a T, and whether it has yet to be made for the places that values
// have now: always where the loop reads copies of values, whose places change.
func loopOf[T any](e *reference, n *node, inPlace bool) (loop *T, stale bool) {
	s := &e.states[n.at]
	loop, ok := s.loop.(*T)
	if !ok {
		loop = new(T)
		s.loop = loop
	}
	stale = !ok || !inPlace || s.generation != e.generation
	s.generation = e.generation
	return loop, stale
}

// directNodes are those whose operands are all float32, and whose filters are constant: their
// loops work on the values' own bytes.
func (e *reference) directNodes() []bool {
	direct := make([]bool, len(e.graph.Nodes))
	for i := range e.graph.Nodes {
		n := &e.graph.Nodes[i]
		direct[i] = n.Type.pack == nil || e.packed[i] != nil
		for _, list := range [][]int{n.In, n.Out} {
			for k, v := range list {
				if packed := k > 0 && n.Type.pack != nil; v != none && !packed {
					direct[i] = direct[i] && e.graph.Values[v].Datatype == fp32
				}
			}
		}
	}
	return direct
}
