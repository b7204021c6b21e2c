package xnnpack

import (
	"context"
	"slices"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// reference is a unit that computes in Go. Floats are computed in float32 and rounded
// to the value's datatype; sums of quantized products are exact integers, scaled in
// float32 and rounded half to even, as the library does. Elementwise functions of
// quantized values are computed on the numbers that they stand for, which the library
// approximates: results may be one step apart there.
type reference struct {
	graph  *graph
	limits delegate.Limits
	args   []*argument
	shapes []shape
	bound  bool
	finish bool // arguments have work left behind the last node

	bytes   [][]byte       // elements of every value, constants and arguments included
	arena   *arena         // of those, the ones between nodes
	places  *places        // in the arena
	apart   map[int][]byte // values that have memory of their own, as tests give it
	tokens  [][]token      // scales of dynamically quantized values
	floats  [][]float32
	floated []bool // floats holds a constant's numbers already
	slots   [3][]float32
	out     []float32

	pool        *cpu.Pool
	run         cpu.Run
	plain       bool           // compute by the plain loops only, as tests compare with
	packed      []*floatFilter // by node, nil where constants are not known before
	direct      []bool         // by node: its loop works on the values' own bytes
	states      []nodeState    // by node
	generation  uint64         // of the places and shapes of values
	gathered    [][]float32    // of the workers: rows of a product
	repeats     []pieces       // of the workers: operands that are repeated
	filter8     *int8Store
	products    []*int8Product // by node, nil where floats are multiplied
	work        []int8Work     // of the workers
	staged      []uint8
	tables      []*[256]uint8 // of nodes from bytes to bytes
	byteLoop    int8Elements
	bytesBinary int8Binary
	bytesPool   int8MaxPool
	filters     []*filter // prepared, by node
	product     product
	rows        denseRows
	patch       patch
	pooled      pooled
	timed       bool
	times       []time.Duration // of the nodes of the last Execute that was timed
}

// token is how one group of dynamically quantized elements stands for numbers.
type token struct {
	scale float32
	zero  int32
}

func newReference(m *image, in delegate.Instance) *reference {
	n := len(m.graph.Values)
	e := &reference{packed: m.filters(), graph: m.graph, limits: m.limits, args: newArguments(m.graph), shapes: slices.Clone(m.shapes), pool: in.Pool,
		arena: arenaIn(in.Scratch), places: m.places, bytes: make([][]byte, n), tokens: make([][]token, n),
		floats: make([][]float32, n), floated: make([]bool, n), filters: make([]*filter, len(m.graph.Nodes)),
		filter8: &m.int8, states: make([]nodeState, len(m.graph.Nodes))}
	if m.places != nil && !m.hasDynamicArgs() {
		e.arena.expect(m.places.bytes)
	}
	e.direct = e.directNodes()
	for v := range m.graph.Values {
		e.bytes[v] = m.graph.Values[v].Data
	}
	return e
}

// Execute runs the graph. ctx ends it between two nodes.
func (e *reference) Execute(ctx context.Context, args []*tensor.Value) error {
	if !e.bound || !sameArguments(e.args, args) {
		if err := e.bind(args); err != nil {
			return err
		}
	}
	for i := range e.graph.Nodes {
		n := &e.graph.Nodes[i]
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !e.timed {
			n.Type.run(e, n)
			continue
		}
		start := time.Now()
		n.Type.run(e, n)
		e.times[i] = time.Since(start)
	}
	if e.finish {
		finish(e.args)
	}
	return nil
}

// bind checks the arguments, takes their sizes and addresses, and gives values between nodes
// their memory.
func (e *reference) bind(args []*tensor.Value) error {
	anew := !e.bound
	e.bound = false
	reshaped, err := bindArguments(e.graph, e.args, args, e.shapes, anew)
	if err != nil {
		return err
	}
	if reshaped || anew {
		if !e.places.fit(e.shapes) {
			e.places = e.graph.placesFor(slices.Clone(e.shapes))
		}
		if err := e.graph.referenceNeeds(e.places, e.threads()).check(e.limits); err != nil {
			return err
		}
		e.allocate()
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

// threads is how many workers compute a node at most.
func (e *reference) threads() int {
	if e.pool == nil {
		return 1
	}
	return e.pool.Size()
}

// allocate gives values between nodes their memory.
func (e *reference) allocate() {
	arena := e.arena.take(e.places.bytes)
	for v, at := range e.places.offsets {
		if at == none {
			continue
		}
		n := e.graph.Values[v].Datatype.bytes(e.shapes[v])
		if own := e.apart[v]; own != nil && len(own) >= n {
			e.bytes[v] = own[:n]
			continue
		}
		e.bytes[v] = arena[at:][: n : n+overread]
	}
	e.planInt8()
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

// Close does nothing: the unit's memory is Go's.
func (e *reference) Close() error { return nil }

// load gives the numbers of a value, decoded into the i-th buffer unless they are
// float32 already.
func (e *reference) load(i, v int) []float32 {
	n := e.shapes[v].numel()
	if e.graph.Values[v].Datatype == fp32 {
		return tensor.View[float32](e.bytes[v])[:n]
	}
	e.slots[i] = grow(e.slots[i], n)
	e.decode(e.slots[i], v)
	return e.slots[i]
}

// constant gives the numbers of a constant, decoded once.
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

// result gives the place for the numbers of an output; store brings them there.
func (e *reference) result(v int) []float32 {
	n := e.shapes[v].numel()
	if e.graph.Values[v].Datatype == fp32 {
		return tensor.View[float32](e.bytes[v])[:n]
	}
	e.out = grow(e.out, n)
	return e.out
}

// store rounds the numbers of result to the value's datatype.
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
