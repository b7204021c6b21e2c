package graph

// Minimum MACs of a graph that is computed by several threads: in all, which is about 0.1 ms on one
// thread, and per node, since threads synchronize after each node. With 5e4 a model takes 1.3 times as long as on one
// thread, with 25e4 as long.
const (
	parallelCost     = 3e6
	parallelNodeCost = 2e5
)

// Parallel reports whether a call of that cost, of a graph with so many nodes, is large enough for
// several threads.
func Parallel(cost float64, nodes int) bool {
	return cost >= parallelCost && cost >= parallelNodeCost*float64(nodes)
}
