package goengine

import (
	"context"
	"slices"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// unit computes a graph in Go. It computes floats in float32 and rounds them to the
// datatype of the value. Sums of quantized products are exact integers, which are scaled in float32
// and rounded half to even, as in the library. Elementwise functions of quantized values are
// computed on their dequantized numbers. The library approximates these, so results may differ by
// one step.
type unit struct {
	frame.Frame
	memory
	results    repeats
	args       []*graph.Argument
	bound      bool
	ready      bool   // memory and products are planned for Shapes
	finish     bool   // arguments must be finished after the last node
	generation uint64 // of the addresses and shapes of values
	steps      []step
	timed      bool
	times      []time.Duration // of the nodes in the last timed Execute
}

// step is a node and its loop.
type step struct {
	node       *graph.Node
	loop       frame.Loop
	generation uint64 // of the addresses and shapes to which the loop is bound
}

// prepare plans a unit of static sizes before its first call. An arena is left to that call: the units of an instance announce
// what they need first.
func (e *unit) prepare() {
	if e.blocks == nil {
		e.plan()
		return
	}
	e.ready = e.allocate() == nil // otherwise the first call has the error
}

// Execute runs the graph. It checks ctx before each node, and in the loops of a node.
func (e *unit) Execute(ctx context.Context, args []*tensor.Value) (err error) {
	if !e.isBound(args) {
		if err := e.bind(args); err != nil {
			return err
		}
	}
	e.Run.StopWhen(ctx.Done())
	defer func() {
		if ctx.Err() != nil { // other panics keep their stack
			err = e.stopped(ctx, err, recover())
		}
	}()
	if e.results.keep(&e.Values) {
		e.generation++
	}
	for i := range e.steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !e.timed {
			e.node(i)
			continue
		}
		start := time.Now()
		e.node(i)
		e.times[i] = time.Since(start)
	}
	e.results.valid = e.results.bytes != nil
	if e.finish {
		graph.Finish(e.args)
	}
	return nil
}

// stopped returns the error of a run that ended with err or a panic after its ctx had ended. The next run binds all loops
// again.
func (e *unit) stopped(ctx context.Context, err error, fault any) error {
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
func (s *step) run(e *unit) {
	if s.generation != e.generation {
		s.loop.Bind(&e.Frame, s.node)
		s.generation = e.generation
	}
	s.loop.Compute(&e.Frame, s.node)
}

// allocate sets the memory for the current shapes, and plans the loops.
func (e *unit) allocate() error {
	e.forget()
	if err := e.place(&e.Frame); err != nil {
		return err
	}
	e.plan()
	return nil
}

// node runs a node, or copies its results as they are kept.
func (e *unit) node(i int) {
	kept := e.results.bytes != nil && e.results.nodes[i]
	if !kept || !e.results.valid {
		e.steps[i].run(e)
	}
	if kept {
		e.results.copy(&e.Values, e.steps[i].node)
	}
}

// plan plans the loops for the current shapes.
func (e *unit) plan() {
	for i := range e.steps {
		if l, ok := e.steps[i].loop.(frame.Planner); ok {
			l.PlanShapes()
		}
	}
}

// isBound reports whether the unit can run with these arguments as it is.
func (e *unit) isBound(args []*tensor.Value) bool {
	if !e.arena.current(e.uses) {
		e.bound, e.ready = false, false
	}
	return e.bound && graph.SameArguments(e.args, args)
}

// bind checks the arguments, stores their sizes and addresses, and sets the memory of values
// between nodes.
func (e *unit) bind(args []*tensor.Value) error {
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
		e.Data[v] = e.args[i].Data
	}
	e.finish = slices.ContainsFunc(e.args, func(a *graph.Argument) bool { return a.After != nil })
	e.bound = true
	e.generation++
	return nil
}

// SetProfiling implements delegate.Profiler.
func (e *unit) SetProfiling(on bool) error {
	if e.timed = on; on && e.times == nil {
		e.times = make([]time.Duration, len(e.Graph.Nodes))
	}
	return nil
}

// Profile implements delegate.Profiler.
func (e *unit) Profile(dst []delegate.NodeTime) []delegate.NodeTime {
	if !e.timed {
		return dst
	}
	for i, t := range e.times {
		dst = append(dst, delegate.NodeTime{Name: e.Graph.Nodes[i].Type.Name, Duration: t})
	}
	return dst
}

// Close does nothing: the arena closes itself, other memory is garbage collected.
func (e *unit) Close() error { return nil }

var _ lowering.Checker = (*unit)(nil)

// Check implements lowering.Checker.
func (e *unit) Check(args []*tensor.Value) error {
	if e.isBound(args) {
		return nil
	}
	return e.bind(args)
}

// Memory returns the bytes that the unit has besides the arena and its blocks.
func (e *unit) Memory() int64 { return e.kept + e.results.size() }

var _ lowering.Repeater = (*unit)(nil)

// Repeats implements lowering.Repeater.
func (e *unit) Repeats(inputs []bool) int64 {
	e.forget()
	return e.results.plan(&e.Values, inputs)
}

// Unchanged implements lowering.Repeater.
func (e *unit) Unchanged(same bool) { e.results.same, e.results.valid = same, e.results.valid && same }

// forget drops what is kept; the values between nodes get other memory before the next call.
func (e *unit) forget() {
	if e.results.bytes != nil {
		e.results.bytes, e.results.valid, e.bound, e.ready = nil, false, false, false
	}
}
