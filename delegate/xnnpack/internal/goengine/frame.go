package goengine

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// frame is what the loops of a unit work on: the values of its graph, packed constants, working memory and threads.
type frame struct {
	graph  *graph.Graph
	shapes []graph.Shape
	data   [][]byte  // of every value, including constants and arguments
	tokens [][]token // scales of dynamically quantized values
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

// token is the scale and zero point of one group of dynamically quantized elements.
type token struct {
	scale float32
	zero  int32
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
