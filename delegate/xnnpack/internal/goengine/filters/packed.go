package filters

import (
	"context"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// Packed contains the constants of a graph as the loops of the Go engine read them, by node: filters of products of
// floats, and of bytes and 4-bit elements. A node has at most one of the two.
//
// It is made when the image is compiled, by [Packing], or by the first call that the library cannot run. The image owns it, and
// its units share it and change nothing in it. The panels of all filters are in one block of memory, node by node, whose layout
// follows from the graph; the block may be a file of the weights cache. After the last part of a filter is packed, its bytes
// in the program are released. The memory is freed when the image is closed, or is unreachable with its units.
type Packed struct {
	Floats []*Float
	Bytes  []*Int8
	Memory *filterMemory // of panels, nil for the Go heap
}

// Packing is the packing of a graph.
type Packing struct {
	partition
	to *Packed
}

// NewPacking returns the packing of a graph. release may be nil.
func NewPacking(g *graph.Graph, shapes []graph.Shape, release func(*graph.Node) bool) *Packing {
	n := len(g.Nodes)
	return &Packing{partition{Values: numbers.ConstantsOf(g, shapes), release: release, Size: panelBytes(g, shapes)},
		&Packed{make([]*Float, n), make([]*Int8, n), nil}}
}

// Pack packs the constants, except the panels that are stored, on as many threads as pay. It calls release for each node as soon as its
// filter is not read any more, for one at a time. Once a filter is released, which release reports, packing no longer ends with ctx: the
// graph could not be compiled again.
func (w *Packing) Pack(ctx context.Context, threads int) (*Packed, error) {
	if !w.stored {
		w.to.Memory, w.memory = newFilterMemory(w.Size)
	}
	w.stored = w.stored || w.Blank
	w.free = w.memory
	w.nodes = make([]packedNode, len(w.Graph.Nodes))
	for i := range w.Graph.Nodes {
		w.add(&w.nodes[i], &w.Graph.Nodes[i])
	}
	if err := w.run(ctx, threads); err != nil {
		w.to.Memory.Close()
		return nil, err
	}
	return w.to, nil
}

// panelBytes returns the size of the panels of all filters.
func panelBytes(g *graph.Graph, shapes []graph.Shape) (bytes int64) {
	for i := range g.Nodes {
		switch n := &g.Nodes[i]; {
		case PacksFloats(g, n):
			bytes += graph.AlignUp(4 * int64(PanelElements(g, n, shapes)))
		case PacksInt8(g, n):
			bytes += panelBytes8(g, n)
		}
	}
	return bytes
}

// add divides the packing of a node into parts.
func (w *Packing) add(own *packedNode, n *graph.Node) {
	own.node, own.finish, w.last = n, func() {}, own
	switch {
	case PacksFloats(w.Graph, n):
		w.to.Floats[n.At], own.finish = packFloats(&w.partition, n)
	case PacksInt8(w.Graph, n):
		w.to.Bytes[n.At], own.finish = packInt8(&w.partition, n)
	default:
		return
	}
	if own.left.Load() == 0 {
		w.part(0, func() {})
	}
}
