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
	slots  [4]int64 // operands and output as float32, see Load and Result
	Staged int64    // an operand in the form that products read
	Line   int64    // rows or lines of floats, for each worker
	Tile   int64    // rows and sums of 8-bit products, for each worker
	Kept   int64    // what loops keep between runs
	// used are the nodes from the first to the last one that uses the shared part; none if Last is before First.
	Used lowering.Span
}

// Add adds the work of a node.
func (w *Work) Add(own *Work) {
	for i, bytes := range own.slots {
		w.Slot(i, bytes)
	}
	w.Staged, w.Line, w.Tile, w.Kept = max(w.Staged, own.Staged), max(w.Line, own.Line), max(w.Tile, own.Tile), graph.Plus(w.Kept, own.Kept)
}

// FitsIn reports whether the shared part fits in a block: in its bytes, and in the nodes that may use it.
func (w *Work) FitsIn(block []byte, at lowering.Span, threads int) bool {
	n := w.Shared(threads)
	return n == 0 || n <= int64(len(block)) && at.First <= w.Used.First && w.Used.Last <= at.Last
}

// Shared returns the size of the part that units share; its parts are aligned.
func (w *Work) Shared(threads int) int64 {
	n := graph.Plus(graph.AlignUp(w.Staged), graph.Repeat(threads, graph.AlignUp(w.Line)))
	for _, slot := range w.slots {
		n = graph.Plus(n, graph.AlignUp(slot))
	}
	return n
}

func (w *Work) Slot(i int, bytes int64) { w.slots[i] = max(w.slots[i], bytes) }

// WorkFunc adds the work of a node to w.
type WorkFunc func(w *Work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int)

// outSlot is the index of the output's slot.
const outSlot = 3

// Divide cuts the work that units share from memory.
func (e *Frame) Divide(w *Work, memory []byte) {
	cut := func(n int64) []byte {
		b := memory[:n:n]
		memory = memory[graph.AlignUp(n):]
		return b
	}
	for i, n := range w.slots[:outSlot] {
		e.Slots[i] = tensor.View[float32](cut(n))
	}
	e.out = tensor.View[float32](cut(w.slots[outSlot]))
	e.Staged = cut(w.Staged)
	if len(e.Workers) < e.Threads() {
		e.Workers = make([]worker, e.Threads())
	}
	for i := range e.Workers {
		e.Workers[i].Line = tensor.View[float32](cut(w.Line))
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
