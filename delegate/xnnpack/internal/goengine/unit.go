package goengine

import (
	"context"
	"slices"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Unit is a unit that computes in Go. It computes floats in float32 and rounds them to the
// datatype of the value. Sums of quantized products are exact integers, which are scaled in float32
// and rounded half to even, as in the library. Elementwise functions of quantized values are
// computed on their dequantized numbers. The library approximates these, so results may differ by
// one step.
type Unit struct {
	Graph  *graph.Graph
	limits delegate.Limits
	args   []*graph.Argument
	Shapes []graph.Shape
	bound  bool
	ready  bool  // memory and products are planned for Shapes
	finish bool  // arguments must be finished after the last node
	kept   int64 // bytes that loops keep between runs

	Bytes   [][]byte       // of every value, including constants and arguments
	blocks  [][]byte       // for the declared sizes, see image.Workspace; nil for none
	Planned *Places        // of the blocks
	worked  lowering.Span  // of the last block: the nodes that may use it
	Arena   *arena         // contains the bytes of values between nodes if no blocks do
	Places  *Places        // of the current shapes, in the blocks or in the arena
	Apart   map[int][]byte // values with their own memory, set by tests
	Tokens  [][]token      // scales of dynamically quantized values
	floats  [][]float32
	floated []bool // floats contains the numbers of the constant
	slots   [3][]float32
	out     []float32

	pool        *cpu.Pool
	run         cpu.Run
	Plain       bool // use only the plain loops, which tests compare with
	packed      *packed
	direct      []bool         // by node: its loop reads and writes the bytes of the values themselves
	states      []nodeState    // by node
	generation  uint64         // of the addresses and shapes of values
	lines       [][]float32    // of the workers: rows or lines of floats, in the arena
	repeats     []pieces       // of the workers: broadcast operands
	Products    []*int8Product // by node; nil if its products are of floats
	work        []int8Work     // of the workers
	staged      []uint8
	tables      []*[256]uint8 // of nodes that map bytes to bytes
	byteLoop    int8Elements
	bytesBinary int8Binary
	bytesPool   int8MaxPool
	filters     []*filter // of the plain loops, by node
	product     product
	rows        denseRows
	patch       patch
	timed       bool
	times       []time.Duration // of the nodes in the last timed Execute
}

// token is the scale and zero point of one group of dynamically quantized elements.
type token struct {
	Scale float32
	Zero  int32
}

// prepare plans a unit of static sizes before its first call. An arena is left to that call: the units of an instance announce
// what they need first.
func (e *Unit) prepare() {
	if e.blocks == nil {
		e.planInt8()
		return
	}
	e.ready = e.allocate() == nil // otherwise the first call has the error
}

// Execute runs the graph. It checks ctx before each node, and in the loops of a node.
func (e *Unit) Execute(ctx context.Context, args []*tensor.Value) (err error) {
	if !e.bound || !graph.SameArguments(e.args, args) {
		if err := e.bind(args); err != nil {
			return err
		}
	}
	at := 0
	e.run.StopWhen(ctx.Done())
	defer func() {
		if ctx.Err() != nil { // other panics keep their stack
			err = e.stopped(ctx, at, err, recover())
		}
	}()
	for i := range e.Graph.Nodes {
		n := &e.Graph.Nodes[i]
		if at = i; ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !e.timed {
			e.runNode(n)
			continue
		}
		start := time.Now()
		e.runNode(n)
		e.times[i] = time.Since(start)
	}
	if e.finish {
		graph.Finish(e.args)
	}
	return nil
}

// stopped returns the error of a run that ended with err or a panic after its ctx had ended. A node whose loop
// was stopped prepares it again in the next run.
func (e *Unit) stopped(ctx context.Context, at int, err error, fault any) error {
	switch fault {
	case nil:
		return err
	case cpu.Stopped{}:
		e.states[at], e.bound = nodeState{}, false
		return context.Cause(ctx)
	}
	panic(fault)
}

// runNode runs a node. The plain loops do not apply merged functions.
func (e *Unit) runNode(n *graph.Node) {
	typeOf(n).Run(e, n)
	if e.Plain && n.Then != nil {
		y := e.result(n.Out[0])
		finishNode(n, y, 1, len(y), 0, len(y))
	}
}

// bind checks the arguments, stores their sizes and addresses, and sets the memory of values
// between nodes.
func (e *Unit) bind(args []*tensor.Value) error {
	rebind := !e.bound
	e.bound = false
	ready := e.ready
	e.ready = false
	reshaped, err := graph.BindArguments(e.Graph, e.args, args, e.Shapes, rebind)
	if err != nil {
		return err
	}
	if reshaped || rebind && !ready {
		if err := e.allocate(); err != nil {
			return err
		}
	}
	for i, v := range e.Graph.Args {
		e.Bytes[v] = e.args[i].Data
	}
	e.finish = slices.ContainsFunc(e.args, func(a *graph.Argument) bool { return a.After != nil })
	e.bound = true
	e.generation++
	return nil
}

// Parallel implements [strided.Threads].
func (e *Unit) Parallel(n, grain int, body cpu.Body) { e.pool.Do(&e.run, n, grain, body) }

// threads returns the largest number of workers that compute a node.
func (e *Unit) threads() int {
	if e.pool == nil {
		return 1
	}
	return e.pool.Size()
}

// allocate sets the memory of values between nodes, and that of the nodes' loops. Each of both is in the
// blocks if these suit the shapes, or else in an arena: what is in blocks at the declared sizes, and when,
// need not be enough at others.
func (e *Unit) allocate() error {
	w := workAt(e.Graph, e.Shapes, e.threads())
	values, loops, inBlocks := e.matchingBlocks(w)
	if !inBlocks && !e.Places.isFor(e.Shapes) {
		e.Places = placesFor(e.Graph, slices.Clone(e.Shapes))
	}
	own := int64(0)
	if !inBlocks {
		own = graph.AlignUp(e.Places.bytes)
	}
	at := own
	if loops == nil {
		own = graph.Plus(own, w.shared(e.threads()))
	}
	if own > 0 || !e.Planned.isFor(e.Shapes) {
		needs := needsWith(e.Graph, w, e.Shapes, e.Places.bytes, e.threads())
		if err := needs.Check(e.limits); err != nil {
			return err
		}
	}
	memory := e.Arena.take(own)
	if !inBlocks {
		values = e.Places.cut(memory)
	}
	if loops == nil {
		loops = memory[at:]
	}
	e.kept = w.kept
	e.divide(w, loops)
	e.assign(values)
	e.planInt8()
	return nil
}

// matchingBlocks returns the blocks for the values, and whether they suit the current shapes; and the block for
// the nodes' loops, nil if that does not.
func (e *Unit) matchingBlocks(w *work) (values [][]byte, loops []byte, inBlocks bool) {
	n := len(e.blocks) - 1
	if e.Planned == nil || n != len(e.Planned.items) {
		return nil, nil, false
	}
	if inBlocks = e.Planned.matches(e.Graph, e.Shapes, e.blocks[:n]); inBlocks {
		e.Places, values = e.Planned, e.blocks[:n]
	}
	if w.fitsIn(e.blocks[n], e.worked, e.threads()) {
		loops = e.blocks[n]
	}
	return values, loops, inBlocks
}

// assign sets the bytes of the values between nodes, in the blocks of their items.
func (e *Unit) assign(blocks [][]byte) {
	for v, at := range e.Places.index {
		if at == graph.None {
			continue
		}
		n := e.Graph.Values[v].Datatype.Bytes(e.Shapes[v])
		if own := e.Apart[v]; own != nil && len(own) >= n {
			e.Bytes[v] = own[:n]
			continue
		}
		e.Bytes[v] = blocks[at][: n : n+overread]
	}
}

// SetProfiling implements delegate.Profiler.
func (e *Unit) SetProfiling(on bool) error {
	if e.timed = on; on && e.times == nil {
		e.times = make([]time.Duration, len(e.Graph.Nodes))
	}
	return nil
}

// Profile implements delegate.Profiler.
func (e *Unit) Profile(dst []delegate.NodeTime) []delegate.NodeTime {
	if !e.timed {
		return dst
	}
	for i, t := range e.times {
		dst = append(dst, delegate.NodeTime{Name: e.Graph.Nodes[i].Type.Name, Duration: t})
	}
	return dst
}

// Close does nothing: the unit's memory is garbage collected.
func (e *Unit) Close() error { return nil }

// load returns the numbers of a value. Unless they are float32, it decodes them into the i-th
// buffer.
func (e *Unit) load(i, v int) []float32 {
	n := e.Shapes[v].Numel()
	if e.Graph.Values[v].Datatype == graph.FP32 {
		return tensor.View[float32](e.Bytes[v])[:n]
	}
	e.slots[i] = grow(e.slots[i], n)
	e.Decode(e.slots[i], v)
	return e.slots[i]
}

// constant returns the numbers of a constant, which are decoded once.
func (e *Unit) constant(v int) []float32 {
	if e.Graph.Values[v].Datatype == graph.FP32 {
		return tensor.View[float32](e.Bytes[v])[:e.Shapes[v].Numel()]
	}
	if !e.floated[v] {
		e.floats[v] = make([]float32, e.Shapes[v].Numel())
		e.Decode(e.floats[v], v)
		e.floated[v] = true
	}
	return e.floats[v]
}

// result returns the buffer for the numbers of an output; store writes them to the output.
func (e *Unit) result(v int) []float32 {
	n := e.Shapes[v].Numel()
	if e.Graph.Values[v].Datatype == graph.FP32 {
		return tensor.View[float32](e.Bytes[v])[:n]
	}
	e.out = grow(e.out, n)
	return e.out
}

// store rounds the numbers of result to the datatype of the value.
func (e *Unit) store(v int) {
	if e.Graph.Values[v].Datatype != graph.FP32 {
		e.encode(v, e.out)
	}
}

var _ lowering.Checker = (*Unit)(nil)

// Check implements lowering.Checker.
func (e *Unit) Check(args []*tensor.Value) error {
	if e.bound && graph.SameArguments(e.args, args) {
		return nil
	}
	return e.bind(args)
}

// denseRows is a source of the rows of a matrix.
type denseRows struct {
	x []float32
	k int
}

func (r *denseRows) row(dst []float32, _, p int) { copy(dst, r.x[p*r.k:(p+1)*r.k]) }

// lookUp computes a node from bytes to bytes.
func (e *Unit) lookUp(n *graph.Node, table *[256]uint8) {
	count := e.Shapes[n.Out[0]].Numel()
	e.byteLoop = int8Elements{op: lookUp, table: table, in: e.Bytes[n.In[0]][:count], out: e.Bytes[n.Out[0]][:count]}
	e.Parallel(count, elementsPerRange, &e.byteLoop)
}

// workBlock returns the block of the nodes' working memory, from the first to the last node that uses it
// at the given shapes.
func workBlock(g *graph.Graph, s []graph.Shape, threads int) lowering.Block {
	w, last := workAt(g, s, threads), len(g.Nodes)-1
	if w.used.Last < w.used.First {
		return lowering.Block{Span: lowering.Span{First: last, Last: last}}
	}
	return lowering.Block{Bytes: w.shared(threads), Span: w.used}
}

// loopOf returns the loop of the node, a T, and reports whether it must be prepared for the current
// addresses of values. That is always so if the loop reads copies of values, whose addresses
// change.
func loopOf[T any](e *Unit, n *graph.Node, inPlace bool) (loop *T, stale bool) {
	s := &e.states[n.At]
	loop, ok := s.loop.(*T)
	if !ok {
		loop = new(T)
		s.loop = loop
	}
	stale = !ok || !inPlace || s.generation != e.generation
	s.generation = e.generation
	return loop, stale
}

// directNodes reports for each node whether its loop works on the bytes of the values themselves:
// its operands are all float32 and its filter, if any, is constant.
func (e *Unit) directNodes() []bool {
	direct := make([]bool, len(e.Graph.Nodes))
	for i := range e.Graph.Nodes {
		n := &e.Graph.Nodes[i]
		direct[i] = typeOf(n).pack == nil || e.packed.Floats[i] != nil
		for _, list := range [][]int{n.In, n.Out} {
			for k, v := range list {
				if packed := k > 0 && typeOf(n).pack != nil; v != graph.None && !packed {
					direct[i] = direct[i] && e.Graph.Values[v].Datatype == graph.FP32
				}
			}
		}
	}
	return direct
}

// Memory returns the bytes that the unit has besides the arena and its blocks.
func (e *Unit) Memory() int64 { return e.kept }
