package frame

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/nhwc"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Frame is what the loops of a unit work on: the values of its graph, packed constants, working memory and threads.
type Frame struct {
	numbers.Values
	Packed *filters.Packed
	Pool   *cpu.Pool
	Run    cpu.Run
	scratch
}

// scratch is the memory that nodes share, see work.
type scratch struct {
	Slots   [3][]float32 // of operands, see Load
	out     []float32    // of the output, see Result
	Staged  []uint8
	Ordered []uint8 // rows of the last product with 4-bit weights: staged, or the activations themselves
	Workers []worker
	Bytes   []Int8Work // of the workers, for products of bytes
}

// worker is the memory of one worker.
type worker struct {
	Line     []float32    // rows or lines of floats
	Operands Pieces       // of a function of two operands
	Binary   *simd.Binary // of bytes; nil if no node computes them
	Repeated [2][]uint8   // repeated operands of bytes
}

// Parallel implements [strided.Threads].
func (e *Frame) Parallel(n, grain int, body cpu.Body) { e.Pool.Do(&e.Run, n, grain, body) }

// Threads returns the largest number of workers that compute a node.
func (e *Frame) Threads() int { return e.Pool.Size() }

// Load returns the numbers of a value. Unless they are float32, it decodes them into the i-th
// buffer.
func (e *Frame) Load(i, v int) []float32 {
	n := e.Shapes[v].Numel()
	if e.Graph.Values[v].Datatype == graph.FP32 {
		return tensor.View[float32](e.Data[v])[:n]
	}
	e.Slots[i] = pack.Grow(e.Slots[i], n)
	e.Decode(e.Slots[i], v)
	return e.Slots[i]
}

// Result returns the buffer for the numbers of an output; store writes them to the output.
func (e *Frame) Result(v int) []float32 {
	n := e.Shapes[v].Numel()
	if e.Graph.Values[v].Datatype == graph.FP32 {
		return tensor.View[float32](e.Data[v])[:n]
	}
	e.out = pack.Grow(e.out, n)
	return e.out
}

// Store rounds the numbers of result to the datatype of the value.
func (e *Frame) Store(v int) {
	if e.Graph.Values[v].Datatype != graph.FP32 {
		e.Encode(v, e.out)
	}
}

// Loop computes the outputs of a node.
type Loop interface {
	// bind prepares the loop for the current shapes and addresses of values.
	Bind(e *Frame, n *graph.Node)
	Compute(e *Frame, n *graph.Node)
}

// Planner is a loop that is planned for shapes before the addresses of values are known.
type Planner interface{ PlanShapes() }

// Decoded runs a loop over floats on copies of values of other datatypes, whose addresses change: it is bound in each run.
type Decoded struct{ Floats Loop }

func (Decoded) Bind(*Frame, *graph.Node) {}

func (d Decoded) Compute(e *Frame, n *graph.Node) {
	d.Floats.Bind(e, n)
	d.Floats.Compute(e, n)
	e.Store(n.Out[0])
}

// OnFloats returns a loop over floats for the node, which decodes its values unless the loop can work on their bytes: if they are
// all float32 and the filter, if any, is packed.
func (e *Frame) OnFloats(n *graph.Node, l Loop) Loop {
	weighted := filters.IsWeighted(n)
	if weighted && e.Packed.Floats[n.At] == nil {
		return Decoded{l}
	}
	for _, list := range [][]int{n.In, n.Out} {
		for k, v := range list {
			if isPacked := k > 0 && weighted; v != graph.None && !isPacked && e.Graph.Values[v].Datatype != graph.FP32 {
				return Decoded{l}
			}
		}
	}
	return l
}

// Pieces contains expanded operands of one worker.
type Pieces struct {
	Data [2][]float32
	At   [2]int // index of the first element in the operand, -1 for none
	Rows [2]int // number of expanded rows
}

// Int8Work is a worker's working memory for a task.
type Int8Work struct {
	Rows     []int // offsets of rows: in places, or in the product's table
	Offsets  []int
	Sums     []int32
	Floats   []float32
	Zeros    []int32
	Factors  []float32
	Gathered []uint8
}

// Reserve makes sure that each worker has so many floats in its line. Only loops that work cannot
// know, those of tests, allocate.
func (e *Frame) Reserve(floats int) {
	for i := range e.Workers {
		e.Workers[i].Line = pack.Grow(e.Workers[i].Line, floats)
	}
}

// BoundFloats clamps numbers to the node's bounds, in place.
func BoundFloats(n *graph.Node, x []float32) {
	if n.Min == -graph.Inf && n.Max == graph.Inf {
		return
	}
	simd.Clamp(x, x, n.Min, n.Max)
}

// ElementsPerRange is the minimum work for a thread, about 20 µs.
const ElementsPerRange = 64 << 10

// BatchOffset returns the index of the operand's matrix for matrix i of the output.
func BatchOffset(i int, out, operand graph.Shape) int {
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

// Repeated returns the strides of an operand along the output's dimensions, 0 where it is repeated.
func Repeated(in, out graph.Shape) (s graph.Steps) {
	own := graph.Strides(in)
	for i := range in.Rank {
		if in.Dim[i] > 1 {
			s[out.Rank-in.Rank+i] = own[i]
		}
	}
	return s
}

// Merged drops dimensions of size 1, and merges adjacent ones along which both operands are
// contiguous or repeated.
func Merged(out graph.Shape, a, b graph.Steps) (dims graph.Shape, sa, sb graph.Steps) {
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

// Maker returns the loop of a node. It depends on datatypes; loops that depend on shapes are chosen when they are bound.
type Maker func(e *Frame, n *graph.Node) Loop

// Images returns the windows of a grid over its images.
func Images(s *graph.WindowGrid) nhwc.Images {
	w, n := s.W, nhwc.Images{C: s.In.Dim[3]}
	n.In, n.Out = [3]int{1, s.In.Dim[1], s.In.Dim[2]}, [3]int{1, s.Out.Dim[1], s.Out.Dim[2]}
	n.Kernel, n.Stride = [3]int{1, w.KernelH, w.KernelW}, [3]int{1, w.StrideH, w.StrideW}
	n.Pad, n.Dilate = [3]int{0, s.Top, s.Left}, [3]int{1, w.DilationH, w.DilationW}
	return n
}

// ImagesOf returns the windows of a node over an input [N, H, W, C].
func ImagesOf(n *graph.Node, in, out graph.Shape) nhwc.Images {
	top, left := n.Padding(in.Dim[1], in.Dim[2])
	return Images(&graph.WindowGrid{W: n.Window(), In: in, Out: out, Top: top, Left: left})
}

// RowsOf returns the windows of a convolution as rows of a matrix.
func RowsOf[T comparable](n *graph.Node, in, out graph.Shape, x []T) nhwc.Rows[T] {
	return nhwc.Rows[T]{Images: ImagesOf(n, in, out), Group: n.Window().GroupIn, Transposed: n.Type.Tag == graph.TagConvTranspose2d, X: x}
}
