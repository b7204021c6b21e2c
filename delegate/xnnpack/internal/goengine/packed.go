package goengine

import (
	"context"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// packed contains the constants of a graph as the loops of the Go engine read them, by node: filters of products of
// floats, and of bytes and 4-bit elements. A node has at most one of the two.
//
// It is made when the image is compiled, by [packWork], or by the first call that the library cannot run. The image owns it, and
// its units share it and change nothing in it. The panels of all filters are in one block of memory, node by node, whose layout
// follows from the graph; the block may be a file of the weights cache. After the last part of a filter is packed, its bytes
// in the program are released. The memory is freed when the image is closed, or is unreachable with its units.
type packed struct {
	floats []*floatFilter
	bytes  []*int8Weights
	memory *filterMemory // of panels, nil for the Go heap
}

// packWork is the packing of a graph.
type packWork struct {
	packing
	to *packed
}

// packConstants packs the constants of a graph, on as many threads as pay. It calls release for each node as soon as its filter is
// not read any more, for one at a time. Once a filter is released, which release reports, packing no longer ends with ctx:
// the graph could not be compiled again.
func packConstants(ctx context.Context, g *graph.Graph, shapes []graph.Shape, threads int,
	release func(*graph.Node) bool) (*packed, error) {
	return newPacking(g, shapes, release).pack(ctx, threads)
}

// newPacking returns the packing of a graph.
func newPacking(g *graph.Graph, shapes []graph.Shape, release func(*graph.Node) bool) *packWork {
	n := len(g.Nodes)
	return &packWork{packing{values: constantsOf(g, shapes), release: release, size: panelBytes(g, shapes)},
		&packed{make([]*floatFilter, n), make([]*int8Weights, n), nil}}
}

// pack packs the constants, except the panels that are stored.
func (w *packWork) pack(ctx context.Context, threads int) (*packed, error) {
	if !w.stored {
		w.to.memory, w.memory = newFilterMemory(w.size)
	}
	w.free = w.memory
	w.nodes = make([]packedNode, len(w.graph.Nodes))
	for i := range w.graph.Nodes {
		w.add(&w.nodes[i], &w.graph.Nodes[i])
	}
	if err := w.run(ctx, threads); err != nil {
		w.to.memory.Close()
		return nil, err
	}
	return w.to, nil
}

// panelBytes returns the size of the panels of all filters.
func panelBytes(g *graph.Graph, shapes []graph.Shape) (bytes int64) {
	for i := range g.Nodes {
		switch n := &g.Nodes[i]; {
		case packsFloats(g, n):
			bytes += graph.AlignUp(4 * int64(panelElements(g, n, shapes)))
		case supportsInt8(g, n):
			bytes += panelBytes8(g, n)
		}
	}
	return bytes
}

// add divides the packing of a node into parts.
func (w *packWork) add(own *packedNode, n *graph.Node) {
	own.node, own.finish, w.last = n, func() {}, own
	switch {
	case packsFloats(w.graph, n):
		w.to.floats[n.At], own.finish = packFloats(&w.packing, n)
	case supportsInt8(w.graph, n):
		w.to.bytes[n.At], own.finish = packInt8(&w.packing, n)
	default:
		return
	}
	if own.left.Load() == 0 {
		w.part(0, func() {})
	}
}

// packedForGo returns the size of the constants that the Go engine packs.
func packedForGo(g *graph.Graph, s []graph.Shape) (n int64) {
	for i := range g.Nodes {
		node := &g.Nodes[i]
		switch {
		case !node.Type.Packs:
		case supportsInt8(g, node):
			n = graph.Plus(n, packedInt8(g, node))
		case packsFloats(g, node):
			n = graph.Plus(n, packedFloats(g, node, s))
		}
	}
	return n
}
