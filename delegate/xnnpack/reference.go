package xnnpack

import (
	"context"
	"slices"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// reference is a unit that computes in Go. It computes floats in float32 and rounds them to the
// datatype of the value. Sums of quantized products are exact integers, which are scaled in float32
// and rounded half to even, as in the library. Elementwise functions of quantized values are
// computed on their dequantized numbers. The library approximates these, so results may differ by
// one step.
type reference struct {
	graph  *graph
	limits delegate.Limits
	args   []*argument
	shapes []shape
	bound  bool
	finish bool // arguments must be finished after the last node

	bytes   [][]byte       // of every value, including constants and arguments
	blocks  [][]byte       // for the declared sizes, see image.Workspace; nil for none
	planned *places        // of the blocks
	worked  delegate.Span  // of the last block: the nodes that may use it
	arena   *arena         // contains the bytes of values between nodes if no blocks do
	places  *places        // of the current shapes, in the blocks or in the arena
	apart   map[int][]byte // values with their own memory, set by tests
	tokens  [][]token      // scales of dynamically quantized values
	floats  [][]float32
	floated []bool // floats contains the numbers of the constant
	slots   [3][]float32
	out     []float32

	pool        *cpu.Pool
	run         cpu.Run
	plain       bool // use only the plain loops, which tests compare with
	packed      *packed
	direct      []bool         // by node: its loop reads and writes the bytes of the values themselves
	states      []nodeState    // by node
	generation  uint64         // of the addresses and shapes of values
	lines       [][]float32    // of the workers: rows or lines of floats, in the arena
	repeats     []pieces       // of the workers: broadcast operands
	products    []*int8Product // by node; nil if its products are of floats
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
	pooled      pooled
	timed       bool
	times       []time.Duration // of the nodes in the last timed Execute
}

// token is the scale and zero point of one group of dynamically quantized elements.
type token struct {
	scale float32
	zero  int32
}

func newReference(m *goImage, in delegate.Instance) *reference {
	n := len(m.graph.Values)
	e := &reference{packed: m.constants(), graph: m.graph, limits: m.limits, args: newArguments(m.graph, m.shapes, m.args),
		shapes: slices.Clone(m.shapes),
		pool:   in.Pool, arena: arenaIn(in.Scratch), blocks: in.Blocks, planned: m.places, places: m.places,
		bytes: make([][]byte, n), tokens: make([][]token, n), floats: make([][]float32, n), floated: make([]bool, n), filters: make([]*filter, len(m.graph.Nodes)),
		states: make([]nodeState, len(m.graph.Nodes))}
	if m.places != nil && !m.hasDynamicArgs() && e.blocks == nil {
		e.arena.expect(m.memory.shared)
	}
	if m.places != nil && e.blocks != nil {
		e.worked = workBlock(m.graph, m.places.shapes, m.instanceThreads()).Span
	}
	for i, used := range argSpans(m.graph) {
		e.args[i].used = used
	}
	e.direct = e.directNodes()
	for v := range m.graph.Values {
		e.bytes[v] = m.graph.Values[v].Data
	}
	return e
}

// Execute runs the graph. It checks ctx before each node, and in the loops of a node.
func (e *reference) Execute(ctx context.Context, args []*tensor.Value) (err error) {
	if !e.bound || !sameArguments(e.args, args) {
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
	for i := range e.graph.Nodes {
		n := &e.graph.Nodes[i]
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
		finish(e.args)
	}
	return nil
}

// stopped returns the error of a run that ended with err or a panic after its ctx had ended. A node whose loop
// was stopped prepares it again in the next run.
func (e *reference) stopped(ctx context.Context, at int, err error, fault any) error {
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
func (e *reference) runNode(n *node) {
	goTypeOf(n).run(e, n)
	if e.plain && n.then != nil {
		y := e.result(n.Out[0])
		finishNode(n, y, 1, len(y), 0, len(y))
	}
}

// bind checks the arguments, stores their sizes and addresses, and sets the memory of values
// between nodes.
func (e *reference) bind(args []*tensor.Value) error {
	rebind := !e.bound
	e.bound = false
	reshaped, err := bindArguments(e.graph, e.args, args, e.shapes, rebind)
	if err != nil {
		return err
	}
	if reshaped || rebind {
		if err := e.allocate(); err != nil {
			return err
		}
	}
	for i, v := range e.graph.Args {
		e.bytes[v] = e.args[i].data
	}
	e.finish = slices.ContainsFunc(e.args, func(a *argument) bool { return a.after != nil })
	e.bound = true
	e.generation++
	return nil
}

// Parallel implements [strided.Threads].
func (e *reference) Parallel(n, grain int, body cpu.Body) { e.pool.Do(&e.run, n, grain, body) }

// threads returns the largest number of workers that compute a node.
func (e *reference) threads() int {
	if e.pool == nil {
		return 1
	}
	return e.pool.Size()
}

// allocate sets the memory of values between nodes, and that of the nodes' loops. Each of both is in the
// blocks if these suit the shapes, or else in an arena: what is in blocks at the declared sizes, and when,
// need not be enough at others.
func (e *reference) allocate() error {
	w := workAt(e.graph, e.shapes, e.threads())
	values, loops, inBlocks := e.suitable(w)
	if !inBlocks && !e.places.fit(e.shapes) {
		e.places = placesFor(e.graph, slices.Clone(e.shapes))
	}
	own := int64(0)
	if !inBlocks {
		own = lineUp(e.places.bytes)
	}
	at := own
	if loops == nil {
		own = plus(own, w.shared(e.threads()))
	}
	if own > 0 || !e.planned.fit(e.shapes) {
		needs := needsWith(e.graph, w, e.shapes, e.places.bytes, e.threads())
		if err := needs.check(e.limits); err != nil {
			return err
		}
	}
	memory := e.arena.take(own)
	if !inBlocks {
		values = e.places.cut(memory)
	}
	if loops == nil {
		loops = memory[at:]
	}
	e.divide(w, loops)
	e.assign(values)
	e.planInt8()
	return nil
}

// suitable returns the blocks for the values, and whether they suit the current shapes; and the block for
// the nodes' loops, nil if that does not.
func (e *reference) suitable(w *work) (values [][]byte, loops []byte, inBlocks bool) {
	n := len(e.blocks) - 1
	if e.planned == nil || n != len(e.planned.items) {
		return nil, nil, false
	}
	if inBlocks = e.planned.suit(e.graph, e.shapes, e.blocks[:n]); inBlocks {
		e.places, values = e.planned, e.blocks[:n]
	}
	if w.suits(e.blocks[n], e.worked, e.threads()) {
		loops = e.blocks[n]
	}
	return values, loops, inBlocks
}

// assign sets the bytes of the values between nodes, in the blocks of their items.
func (e *reference) assign(blocks [][]byte) {
	for v, at := range e.places.index {
		if at == none {
			continue
		}
		n := e.graph.Values[v].Datatype.bytes(e.shapes[v])
		if own := e.apart[v]; own != nil && len(own) >= n {
			e.bytes[v] = own[:n]
			continue
		}
		e.bytes[v] = blocks[at][: n : n+overread]
	}
}

// SetProfiling implements delegate.Profiler.
func (e *reference) SetProfiling(on bool) error {
	if e.timed = on; on && e.times == nil {
		e.times = make([]time.Duration, len(e.graph.Nodes))
	}
	return nil
}

// Profile implements delegate.Profiler.
func (e *reference) Profile(dst []delegate.NodeTime) []delegate.NodeTime {
	if !e.timed {
		return dst
	}
	for i, t := range e.times {
		dst = append(dst, delegate.NodeTime{Name: e.graph.Nodes[i].Type.name, Duration: t})
	}
	return dst
}

// Close does nothing: the unit's memory is garbage collected.
func (e *reference) Close() error { return nil }

// load returns the numbers of a value. Unless they are float32, it decodes them into the i-th
// buffer.
func (e *reference) load(i, v int) []float32 {
	n := e.shapes[v].numel()
	if e.graph.Values[v].Datatype == fp32 {
		return tensor.View[float32](e.bytes[v])[:n]
	}
	e.slots[i] = grow(e.slots[i], n)
	e.decode(e.slots[i], v)
	return e.slots[i]
}

// constant returns the numbers of a constant, which are decoded once.
func (e *reference) constant(v int) []float32 {
	if e.graph.Values[v].Datatype == fp32 {
		return tensor.View[float32](e.bytes[v])[:e.shapes[v].numel()]
	}
	if !e.floated[v] {
		e.floats[v] = make([]float32, e.shapes[v].numel())
		e.decode(e.floats[v], v)
		e.floated[v] = true
	}
	return e.floats[v]
}

// result returns the buffer for the numbers of an output; store writes them to the output.
func (e *reference) result(v int) []float32 {
	n := e.shapes[v].numel()
	if e.graph.Values[v].Datatype == fp32 {
		return tensor.View[float32](e.bytes[v])[:n]
	}
	e.out = grow(e.out, n)
	return e.out
}

// store rounds the numbers of result to the datatype of the value.
func (e *reference) store(v int) {
	if e.graph.Values[v].Datatype != fp32 {
		e.encode(v, e.out)
	}
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

var _ delegate.Checker = (*reference)(nil)

// Check implements delegate.Checker.
func (e *reference) Check(args []*tensor.Value) error {
	if e.bound && sameArguments(e.args, args) {
		return nil
	}
	return e.bind(args)
}
