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
	frame
	memory
	limits     delegate.Limits
	args       []*graph.Argument
	bound      bool
	ready      bool   // memory and products are planned for Shapes
	finish     bool   // arguments must be finished after the last node
	generation uint64 // of the addresses and shapes of values
	steps      []step
	timed      bool
	times      []time.Duration // of the nodes in the last timed Execute
}

// memory is where the values between nodes and the working memory of loops are.
type memory struct {
	blocks  [][]byte       // for the declared sizes, see image.Workspace; nil for none
	Planned *Places        // of the blocks
	worked  lowering.Span  // of the last block: the nodes that may use it
	Arena   *arena         // contains the bytes of values between nodes if no blocks do
	Places  *Places        // of the current shapes, in the blocks or in the arena
	Apart   map[int][]byte // values with their own memory, set by tests
	kept    int64          // bytes that loops keep between runs
}

// step is a node and its loop.
type step struct {
	node       *graph.Node
	loop       loop
	generation uint64 // of the addresses and shapes to which the loop is bound
}

// prepare plans a unit of static sizes before its first call. An arena is left to that call: the units of an instance announce
// what they need first.
func (e *Unit) prepare() {
	if e.blocks == nil {
		e.plan()
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
	e.run.StopWhen(ctx.Done())
	defer func() {
		if ctx.Err() != nil { // other panics keep their stack
			err = e.stopped(ctx, err, recover())
		}
	}()
	for i := range e.steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !e.timed {
			e.steps[i].run(e)
			continue
		}
		start := time.Now()
		e.steps[i].run(e)
		e.times[i] = time.Since(start)
	}
	if e.finish {
		graph.Finish(e.args)
	}
	return nil
}

// stopped returns the error of a run that ended with err or a panic after its ctx had ended. The next run binds all loops
// again.
func (e *Unit) stopped(ctx context.Context, err error, fault any) error {
	switch fault {
	case nil:
		return err
	case cpu.Stopped{}:
		e.bound = false
		return context.Cause(ctx)
	}
	panic(fault)
}

// run runs a node.
func (s *step) run(e *Unit) {
	if s.generation != e.generation {
		s.loop.bind(&e.frame, s.node)
		s.generation = e.generation
	}
	s.loop.run(&e.frame, s.node)
}

// plan plans the loops for the current shapes.
func (e *Unit) plan() {
	e.bytes = e.Arena.workers(e.threads())
	for i := range e.steps {
		if l, ok := e.steps[i].loop.(planner); ok {
			l.plan()
		}
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
	e.plan()
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

var _ lowering.Checker = (*Unit)(nil)

// Check implements lowering.Checker.
func (e *Unit) Check(args []*tensor.Value) error {
	if e.bound && graph.SameArguments(e.args, args) {
		return nil
	}
	return e.bind(args)
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

// Memory returns the bytes that the unit has besides the arena and its blocks.
func (e *Unit) Memory() int64 { return e.kept }
