package frame

import (
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Work is the memory of a unit of the Go engine in addition to values and packed filters, in bytes.
// Nodes run one after the other, so they share it, except what they keep. Units of an instance
// share all but tile and kept. What a node needs depends on the sizes, and may be more at smaller
// ones: operands that are repeated, padded or packed.
type Work struct {
	slots  [4]int64             // operands and output as float32, see Load and Result
	Staged int64                // an operand in the form that products read
	Line   int64                // rows or lines of floats, for each worker
	Tile   int64                // rows and sums of 8-bit products, for each worker
	Kept   int64                // what loops keep between runs
	used   [parts]lowering.Span // per part that units share: from the first to the last node that uses it
}

// The parts that units share: slots, staged operands, and the lines of all workers.
const (
	stagedPart = outSlot + 1
	linesPart  = stagedPart + 1
	parts      = linesPart + 1
)

// Part is a part of the memory that units share.
type Part struct {
	lowering.Block
	index int
}

// Memory has the bytes of each part.
type Memory [parts][]byte

// Add adds the work of the i-th node, behind those before it.
func (w *Work) Add(own *Work, i, threads int) {
	for _, p := range own.Parts(threads) {
		if w.size(p.index, threads) == 0 {
			w.used[p.index].First = i
		}
		w.used[p.index].Last = i
	}
	for i, bytes := range own.slots {
		w.Slot(i, bytes)
	}
	w.Staged, w.Line, w.Tile, w.Kept = max(w.Staged, own.Staged), max(w.Line, own.Line), max(w.Tile, own.Tile), graph.Plus(w.Kept, own.Kept)
}

// size returns the size of a part.
func (w *Work) size(part, threads int) int64 {
	switch part {
	case stagedPart:
		return graph.AlignUp(w.Staged)
	case linesPart:
		return graph.Repeat(threads, graph.AlignUp(w.Line))
	}
	return graph.AlignUp(w.slots[part])
}

// Parts returns the parts that a node uses. Each is a block of its own in memory plans: parts are used by few nodes.
func (w *Work) Parts(threads int) (list []Part) {
	for i := range parts {
		if n := w.size(i, threads); n > 0 {
			list = append(list, Part{lowering.Block{Bytes: n, Span: w.used[i]}, i})
		}
	}
	return list
}

// In returns the parts in the blocks of a plan, nil unless each fits: in the bytes of its block, and in the nodes that may use it.
func (w *Work) In(blocks [][]byte, plan []Part, threads int) *Memory {
	var m Memory
	var used [parts]lowering.Span
	for i, p := range plan {
		m[p.index], used[p.index] = blocks[i], p.Span
	}
	for _, p := range w.Parts(threads) {
		if at := used[p.index]; p.Bytes > int64(len(m[p.index])) || p.First < at.First || at.Last < p.Last {
			return nil
		}
	}
	return &m
}

// Cut returns the parts one behind the other.
func (w *Work) Cut(bytes []byte, threads int) *Memory {
	var m Memory
	for _, p := range w.Parts(threads) {
		m[p.index], bytes = bytes[:p.Bytes:p.Bytes], bytes[p.Bytes:]
	}
	return &m
}

// Shared returns the size of all parts that units share.
func (w *Work) Shared(threads int) (n int64) {
	for i := range parts {
		n = graph.Plus(n, w.size(i, threads))
	}
	return n
}

func (w *Work) Slot(i int, bytes int64) { w.slots[i] = max(w.slots[i], bytes) }

// WorkFunc adds the work of a node to w.
type WorkFunc func(w *Work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int)

// outSlot is the index of the output's slot.
const outSlot = 3

// Divide sets the work that units share.
func (e *Frame) Divide(w *Work, m *Memory) {
	cut := func(part int, at, n int64) []byte {
		if n == 0 {
			return nil
		}
		return m[part][at:][:n:n]
	}
	for i, n := range w.slots[:outSlot] {
		e.Slots[i] = tensor.View[float32](cut(i, 0, n))
	}
	e.out = tensor.View[float32](cut(outSlot, 0, w.slots[outSlot]))
	e.Staged = cut(stagedPart, 0, w.Staged)
	if len(e.Workers) < e.Threads() {
		e.Workers = make([]worker, e.Threads())
	}
	for i := range e.Workers {
		e.Workers[i].Line = tensor.View[float32](cut(linesPart, int64(i)*graph.AlignUp(w.Line), w.Line))
	}
}

// DecodeWork is of loops over floats. Packed filters are not read.
func DecodeWork(w *Work, g *graph.Graph, n *graph.Node, s []graph.Shape, _ int) {
	for k, v := range n.In {
		if v != graph.None && k < outSlot && !(k > 0 && filters.PacksFloats(g, n)) {
			w.Slot(k, numbers.NumberBytes(g, v, s))
		}
	}
	w.Slot(outSlot, numbers.NumberBytes(g, n.Out[0], s))
}
