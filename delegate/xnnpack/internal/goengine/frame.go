package goengine

import (
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// frame is what the loops of a unit work on: the values of its graph, packed constants, working memory and threads.
type frame struct {
	values
	packed *packed
	pool   *cpu.Pool
	run    cpu.Run
	scratch
}

// scratch is the memory that nodes share, see work.
type scratch struct {
	slots   [3][]float32 // of operands, see load
	out     []float32    // of the output, see result
	staged  []uint8
	ordered []uint8 // rows of the last product with 4-bit weights: staged, or the activations themselves
	workers []worker
	bytes   []int8Work // of the workers, for products of bytes
}

// worker is the memory of one worker.
type worker struct {
	line     []float32    // rows or lines of floats
	operands pieces       // of a function of two operands
	binary   *simd.Binary // of bytes; nil if no node computes them
	repeated [2][]uint8   // repeated operands of bytes
}

// Parallel implements [strided.Threads].
func (e *frame) Parallel(n, grain int, body cpu.Body) { e.pool.Do(&e.run, n, grain, body) }

// threads returns the largest number of workers that compute a node.
func (e *frame) threads() int {
	if e.pool == nil {
		return 1
	}
	return e.pool.Size()
}

// load returns the numbers of a value. Unless they are float32, it decodes them into the i-th
// buffer.
func (e *frame) load(i, v int) []float32 {
	n := e.shapes[v].Numel()
	if e.graph.Values[v].Datatype == graph.FP32 {
		return tensor.View[float32](e.data[v])[:n]
	}
	e.slots[i] = pack.Grow(e.slots[i], n)
	e.decode(e.slots[i], v)
	return e.slots[i]
}

// result returns the buffer for the numbers of an output; store writes them to the output.
func (e *frame) result(v int) []float32 {
	n := e.shapes[v].Numel()
	if e.graph.Values[v].Datatype == graph.FP32 {
		return tensor.View[float32](e.data[v])[:n]
	}
	e.out = pack.Grow(e.out, n)
	return e.out
}

// store rounds the numbers of result to the datatype of the value.
func (e *frame) store(v int) {
	if e.graph.Values[v].Datatype != graph.FP32 {
		e.encode(v, e.out)
	}
}

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
	weighted := packers[n.Type.Tag] != nil
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

// pieces contains expanded operands of one worker.
type pieces struct {
	data [2][]float32
	at   [2]int // index of the first element in the operand, -1 for none
	rows [2]int // number of expanded rows
}

// int8Work is a worker's working memory for a task.
type int8Work struct {
	rows     []int // offsets of rows: in places, or in the product's table
	offsets  []int
	sums     []int32
	floats   []float32
	zeros    []int32
	factors  []float32
	gathered []uint8
}

// unaryFunc computes elements for a node.
type unaryFunc func(n *graph.Node, dst, src []float32)

// reserve makes sure that each worker has so many floats in its line. Only loops that work cannot
// know, those of tests, allocate.
func (e *frame) reserve(floats int) {
	for i := range e.workers {
		e.workers[i].line = pack.Grow(e.workers[i].line, floats)
	}
}

// boundFloats clamps numbers to the node's bounds, in place.
func boundFloats(n *graph.Node, x []float32) {
	if n.Min == -graph.Inf && n.Max == graph.Inf {
		return
	}
	simd.Clamp(x, x, n.Min, n.Max)
}

// elementsPerRange is the minimum work for a thread, about 20 µs.
const elementsPerRange = 64 << 10

// batchOffset returns the index of the operand's matrix for matrix i of the output.
func batchOffset(i int, out, operand graph.Shape) int {
	at, stride := 0, 1
	for d := 2; d < out.Rank; d++ {
		index := i % out.FromEnd(d)
		i /= out.FromEnd(d)
		if size := operand.FromEnd(d); size > 1 {
			at += index * stride
			stride *= size
		}
	}
	return at
}

// repeated returns the strides of an operand along the output's dimensions, 0 where it is repeated.
func repeated(in, out graph.Shape) (s graph.Steps) {
	own := graph.Strides(in)
	for i := range in.Rank {
		if in.Dim[i] > 1 {
			s[out.Rank-in.Rank+i] = own[i]
		}
	}
	return s
}

// merged drops dimensions of size 1, and merges adjacent ones along which both operands are
// contiguous or repeated.
func merged(out graph.Shape, a, b graph.Steps) (dims graph.Shape, sa, sb graph.Steps) {
	for i := range out.Rank {
		size := out.Dim[i]
		if size == 1 {
			continue
		}
		if up := dims.Rank - 1; up >= 0 && sa[up] == a[i]*size && sb[up] == b[i]*size {
			dims.Dim[up] *= size
			sa[up], sb[up] = a[i], b[i]
			continue
		}
		dims.Dim[dims.Rank], sa[dims.Rank], sb[dims.Rank] = size, a[i], b[i]
		dims.Rank++
	}
	if dims.Rank == 0 {
		dims = graph.ShapeOf(1)
	}
	return dims, sa, sb
}

// work is the memory of a unit of the Go engine in addition to values and packed filters, in bytes.
// Nodes run one after the other, so they share it, except what they keep. Units of an instance
// share all but tile and kept. What a node needs depends on the sizes, and may be more at smaller
// ones: operands that are repeated, padded or packed.
type work struct {
	slots  [4]int64 // operands and output as float32, see load and result
	staged int64    // an operand in the form that products read
	line   int64    // rows or lines of floats, for each worker
	tile   int64    // rows and sums of 8-bit products, for each worker
	kept   int64    // what loops keep between runs
	// used are the nodes from the first to the last one that uses the shared part; none if Last is before First.
	used lowering.Span
}

// add adds the work of a node.
func (w *work) add(own *work) {
	for i, bytes := range own.slots {
		w.slot(i, bytes)
	}
	w.staged, w.line, w.tile, w.kept = max(w.staged, own.staged), max(w.line, own.line), max(w.tile, own.tile), graph.Plus(w.kept, own.kept)
}

// fitsIn reports whether the shared part fits in a block: in its bytes, and in the nodes that may use it.
func (w *work) fitsIn(block []byte, at lowering.Span, threads int) bool {
	n := w.shared(threads)
	return n == 0 || n <= int64(len(block)) && at.First <= w.used.First && w.used.Last <= at.Last
}

// shared returns the size of the part that units share; its parts are aligned.
func (w *work) shared(threads int) int64 {
	n := graph.Plus(graph.AlignUp(w.staged), graph.Repeat(threads, graph.AlignUp(w.line)))
	for _, slot := range w.slots {
		n = graph.Plus(n, graph.AlignUp(slot))
	}
	return n
}

func (w *work) slot(i int, bytes int64) { w.slots[i] = max(w.slots[i], bytes) }

// workFunc adds the work of a node to w.
type workFunc func(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int)

// outSlot is the index of the output's slot.
const outSlot = 3

// divide cuts the work that units share from memory.
func (e *frame) divide(w *work, memory []byte) {
	cut := func(n int64) []byte {
		b := memory[:n:n]
		memory = memory[graph.AlignUp(n):]
		return b
	}
	for i, n := range w.slots[:outSlot] {
		e.slots[i] = tensor.View[float32](cut(n))
	}
	e.out = tensor.View[float32](cut(w.slots[outSlot]))
	e.staged = cut(w.staged)
	if len(e.workers) < e.threads() {
		e.workers = make([]worker, e.threads())
	}
	for i := range e.workers {
		e.workers[i].line = tensor.View[float32](cut(w.line))
	}
}

// decodeWork is of loops over floats. Packed filters are not read.
func decodeWork(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, _ int) {
	for k, v := range n.In {
		if v != graph.None && k < outSlot && !(k > 0 && packsFloats(g, n)) {
			w.slot(k, numberBytes(g, v, s))
		}
	}
	w.slot(outSlot, numberBytes(g, n.Out[0], s))
}
