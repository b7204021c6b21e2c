package goengine

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// repeats are the results of the nodes that depend on constants and on some inputs alone: while these inputs do not change, the nodes
// do not run again. They are kept from the first call on in which the inputs had not changed.
type repeats struct {
	nodes  []bool   // by node: it is one of these; nil if there are none
	values []bool   // by value: it is a result of them that other nodes or the caller read
	bytes  [][]byte // by value: those of results, nil before any is kept
	same   bool     // the inputs have not changed since the last call
	valid  bool     // bytes are the results of the last call
}

// plan finds the nodes that depend on constants and on these inputs alone, and returns the size of their results. Without a product or a
// convolution among them nothing is kept: a copy of a result takes as long as any other node.
func (r *repeats) plan(e *numbers.Values, inputs []bool) (bytes int64) {
	g := e.Graph
	*r = repeats{nodes: make([]bool, len(g.Nodes)), values: make([]bool, len(g.Values))}
	fixed, products := make([]bool, len(g.Values)), false
	for v := range g.Values {
		x := &g.Values[v]
		fixed[v] = x.IsConst() || x.Arg != graph.None && x.Input && inputs[x.Arg]
	}
	isFixed := func(v int) bool { return v == graph.None || fixed[v] }
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if r.nodes[i] = !slices.ContainsFunc(n.In, func(v int) bool { return !isFixed(v) }); r.nodes[i] {
			products = products || n.Type.Convolution || n.Type.Tag == graph.TagFullyConnected || n.Type.Tag == graph.TagBatchMatrixMultiply
			for _, v := range n.Out {
				fixed[v], r.values[v] = true, g.Values[v].Arg != graph.None
			}
			continue
		}
		for _, v := range n.In {
			if v != graph.None && fixed[v] && !g.Values[v].IsConst() && !g.Values[v].Input {
				r.values[v] = true
			}
		}
	}
	if !products {
		*r = repeats{}
	}
	for v, kept := range r.values {
		if kept {
			bytes += int64(g.Values[v].Datatype.Bytes(e.Shapes[v]) + numbers.Overread)
		}
	}
	return bytes
}

// keep makes the memory of results, and lets nodes write those between nodes there. It reports whether it did.
func (r *repeats) keep(e *numbers.Values) bool {
	if !r.same || r.bytes != nil || r.nodes == nil {
		return false
	}
	r.bytes = make([][]byte, len(r.values))
	for v, kept := range r.values {
		if !kept {
			continue
		}
		n := e.Graph.Values[v].Datatype.Bytes(e.Shapes[v])
		r.bytes[v] = tensor.AlignedBytes(n + numbers.Overread)[: n : n+numbers.Overread]
		if e.Graph.Values[v].Arg == graph.None {
			e.Data[v] = r.bytes[v]
		}
	}
	return true
}

// copy copies the results of a node that the caller reads: to what is kept if the node ran, or else from there.
func (r *repeats) copy(e *numbers.Values, n *graph.Node) {
	for _, v := range n.Out {
		switch kept := r.bytes[v]; {
		case e.Graph.Values[v].Arg == graph.None || kept == nil:
		case r.valid:
			copy(e.Data[v], kept)
		default:
			copy(kept, e.Data[v])
		}
	}
}

// size returns the bytes of the results.
func (r *repeats) size() (n int64) {
	for _, b := range r.bytes {
		n += int64(cap(b))
	}
	return n
}
