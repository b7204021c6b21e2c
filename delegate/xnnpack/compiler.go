package xnnpack

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var (
	_ delegate.Compiler = Backend{}
	_ delegate.Selector = Backend{}
	_ delegate.Checker  = (*native)(nil)
	_ delegate.Checker  = (*reference)(nil)
)

// Unsupported implements delegate.Selector.
func (b Backend) Unsupported(op *kernels.Op) string {
	if lowerings[op.Name()] == nil {
		return noNode
	}
	return ""
}

// Accepts implements delegate.Compiler. It lowers the call alone, and checks whether the library
// supports the result.
func (b Backend) Accepts(g *delegate.Graph, i int) string {
	l := lowerFor(g, true)
	defer l.again()
	if err := l.call(i); err != nil {
		return reasonOf(err)
	}
	x, shapes, err := l.finishCall(i)
	if err != nil {
		return reasonOf(err)
	}
	return x.refuses(shapes)
}

// lowerFor returns a lowering to graphs that the library may run.
func lowerFor(g *delegate.Graph, dry bool) *lowering { return newLowering(g, dry, (*graph).refuses) }

// reasonOf returns the text of an error without the backend's name.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*delegate.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// finishCall returns the graph of one call, whose tensors are its inputs and outputs, with the shapes
// at the declared sizes.
func (l *lowering) finishCall(i int) (*graph, []shape, error) {
	var inputs, outputs []int
	seen := make(map[int]bool)
	for _, v := range l.in.Reads(nil, i) {
		if x := &l.vals[v]; !seen[v] && !x.IsConst() && l.known(v) {
			inputs = append(inputs, v)
		}
		seen[v] = true
	}
	for _, v := range l.in.Writes(nil, i) {
		if l.known(v) {
			outputs = append(outputs, v)
		}
	}
	g, err := l.complete(inputs, outputs)
	if err != nil {
		return nil, nil, err
	}
	s, err := g.declared()
	if err != nil {
		return nil, nil, inPayload(err)
	}
	return g, s, l.checkOutputs(g, s, outputs)
}

// known reports whether the graph has a value for a tensor.
func (l *lowering) known(v int) bool {
	return *l.holds(v) != nothing
}

// complete returns the checked graph with these inputs and outputs.
func (l *lowering) complete(inputs, outputs []int) (*graph, error) {
	values, err := l.outputs(outputs)
	if err != nil {
		return nil, err
	}
	l.externals(l.inputValues(inputs), values)
	g, err := l.finish()
	if err == nil {
		g.static = !slices.ContainsFunc(inputs, func(v int) bool { return l.vals[v].Dynamism != tensor.Static })
	}
	return g, err
}

// checkOutputs checks that the outputs have their declared sizes.
func (l *lowering) checkOutputs(g *graph, s []shape, outputs []int) error {
	for i, v := range outputs {
		x, got := &l.in.Values[v], s[g.Args[g.Inputs+i]]
		o, _ := declaredOrder(x)
		if want := memoryShapeOf(x, o); x.Dynamism == tensor.Static && got != want {
			return unsupported(argumentPlace(g, g.Inputs+i), "sizes %v, declared as %v", got, want)
		}
	}
	return nil
}

// whole lowers all calls and returns their graph.
func (l *lowering) whole() (*graph, error) {
	g := l.in
	l.g.Values, l.g.Nodes = slices.Grow(l.g.Values, len(g.Inputs)+2*len(g.Calls)), slices.Grow(l.g.Nodes, len(g.Calls))
	for _, v := range g.Inputs {
		if err := checkInput(g, v); err != nil {
			return nil, unsupported("", "%w", err)
		}
		l.input(v)
	}
	for i := range g.Calls {
		if err := l.call(i); err != nil {
			return nil, unsupported(g.Calls[i].Place, "%w", err)
		}
	}
	for _, v := range g.Outputs {
		if !l.known(v) && !l.vals[v].IsConst() {
			return nil, unsupported("", "an output that no call computes")
		}
	}
	return l.complete(g.Inputs, g.Outputs)
}

func checkInput(g *delegate.Graph, v int) error {
	x := &g.Values[v]
	if x.Kind != tensor.KindTensor {
		return refuse("the input is not a tensor")
	}
	if x.DType != tensor.Float32 && x.DType != tensor.Float16 && codeQuantization(g, v) == nil {
		return refuse("an input of %v", x.DType)
	}
	return checkTensor(x)
}

// plan lowers all calls and plans their graph.
func (l *lowering) plan() (*plan, error) {
	g, err := l.whole()
	if err != nil {
		return nil, err
	}
	x, err := planOf(g)
	if err != nil {
		return nil, err
	}
	return x, l.checkOutputs(g, x.shapes, l.in.Outputs)
}

// keptPlan is the plan of a region, from its first estimate until it is compiled.
type keptPlan struct {
	*plan
	late    []lateConstant
	threads int // that it was estimated for
}

// keep keeps the plan of a dry lowering for the graph's next call, if only late constants are not
// final. The lowering continues with another graph.
func (l *lowering) keep(x *plan) {
	if l.rough || x.repaired != nil {
		return
	}
	l.in.Kept = &keptPlan{x, l.late, max(l.in.Threads, 1)}
	l.g, l.copies = spareGraph(), nil // late constants refer to the copies
}

// spareGraphs contains empty graphs with memory.
var spareGraphs sync.Pool

func spareGraph() *graph {
	if g, ok := spareGraphs.Get().(*graph); ok {
		return g
	}
	return &graph{Version: identifiers[0]}
}

// Drop gives the memory of the plan to other lowerings.
func (k *keptPlan) Drop() {
	k.graph.empty()
	spareGraphs.Put(k.graph)
}

// empty removes values, nodes and arguments.
func (g *graph) empty() {
	clear(g.Values)
	clear(g.Nodes)
	*g = graph{Version: g.Version, Values: g.Values[:0], Nodes: g.Nodes[:0], Args: g.Args[:0]}
}

// planRegion returns the plan of a region with all its constants. The graph no longer keeps it.
func planRegion(g *delegate.Graph) (*plan, error) {
	if k, ok := g.Kept.(*keptPlan); ok {
		g.Kept = nil
		k.graph.fill(k.late)
		if k.threads != max(g.Threads, 1) {
			k.plan.estimates = estimates{}
		}
		return k.plan, nil
	}
	return lowerFor(g, false).plan()
}

// CompileGraph implements delegate.Compiler.
func (b Backend) CompileGraph(ctx context.Context, g *delegate.Graph) (delegate.Image, error) {
	expected := b.engine() // as estimated
	made, err := planRegion(g)
	if err != nil {
		return nil, err
	}
	release := g.Release
	if slices.ContainsFunc(g.Inputs, func(v int) bool { return g.Values[v].Dynamism != tensor.Static }) {
		release = nil // the calls remain
	}
	img, err := b.compile(ctx, made.image(&compilation{limits: g.Limits, scratch: g.Scratch, threadCount: g.Threads, release: made.graph.discardOr(release), region: true}, false))
	if err != nil {
		return nil, err
	}
	m := img.(*image)
	if m.notNative != "" && expected == byLibrary { // the original calls are faster
		m.Close()
		return nil, unsupported("", "%s", m.notNative)
	}
	if release != nil && m.release != nil {
		m.releaseUnread(g)
	}
	return img, nil
}

// Check implements delegate.Checker. It rejects sizes at which the library must not run the graph:
// there the original calls are faster than the Go engine.
func (u *native) Check(args []*tensor.Value) error {
	if err := u.follow(args); err != nil {
		return err
	}
	if u.useOther {
		return unsupported("", "sizes that the library may not have")
	}
	return nil
}

// Check implements delegate.Checker.
func (e *reference) Check(args []*tensor.Value) error {
	if e.bound && sameArguments(e.args, args) {
		return nil
	}
	return e.bind(args)
}
