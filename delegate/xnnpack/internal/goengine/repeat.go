package goengine

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
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

var _ lowering.Repeater = (*unit)(nil)

// Repeats implements lowering.Repeater. Without a product or a convolution among the nodes nothing is kept: a copy of a result takes as
// long as any other node.
func (e *unit) Repeats(inputs []bool) (bytes int64) {
	g, r := e.graph, repeats{nodes: make([]bool, len(e.graph.Nodes)), values: make([]bool, len(e.graph.Values))}
	e.forget()
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
	if e.results = (repeats{}); !products {
		return 0
	}
	e.results = r
	for v, kept := range r.values {
		if kept {
			bytes += int64(g.Values[v].Datatype.Bytes(e.shapes[v]) + overread)
		}
	}
	return bytes
}

// Unchanged implements lowering.Repeater.
func (e *unit) Unchanged(same bool) { e.results.same, e.results.valid = same, e.results.valid && same }

// forget drops what is kept; the values between nodes get other memory before the next call.
func (e *unit) forget() {
	if e.results.bytes != nil {
		e.results.bytes, e.results.valid, e.bound, e.ready = nil, false, false, false
	}
}

// keep makes the memory of results, and lets nodes write those between nodes there.
func (e *unit) keep() {
	if !e.results.same || e.results.bytes != nil || e.results.nodes == nil {
		return
	}
	e.results.bytes = make([][]byte, len(e.results.values))
	for v, kept := range e.results.values {
		if !kept {
			continue
		}
		n := e.graph.Values[v].Datatype.Bytes(e.shapes[v])
		e.results.bytes[v] = tensor.AlignedBytes(n + overread)[: n : n+overread]
		if e.graph.Values[v].Arg == graph.None {
			e.data[v] = e.results.bytes[v]
		}
	}
	e.generation++
}

// node runs a node, or returns its results as they are kept.
func (e *unit) node(i int) {
	if e.results.bytes == nil || !e.results.nodes[i] {
		e.steps[i].run(e)
		return
	}
	if !e.results.valid {
		e.steps[i].run(e)
	}
	for _, v := range e.steps[i].node.Out {
		switch kept := e.results.bytes[v]; {
		case e.graph.Values[v].Arg == graph.None || kept == nil:
		case e.results.valid:
			copy(e.data[v], kept)
		default:
			copy(kept, e.data[v])
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
