package xnnpack

import (
	"errors"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

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

// detach returns the constants of a dry lowering's graph that are not final. The lowering continues with
// another graph. ok is false if others are not final, either.
func (l *lowering) detach() (late []lateConstant, ok bool) {
	if l.rough {
		return nil, false
	}
	l.g, l.copies = spareGraph(), nil // late constants refer to the copies
	return l.late, true
}

// spareGraphs contains empty graphs with memory.
var spareGraphs sync.Pool

func spareGraph() *graph {
	if g, ok := spareGraphs.Get().(*graph); ok {
		return g
	}
	return &graph{Version: identifiers[0]}
}

// recycle makes the memory of a graph available to other lowerings. It must not be used any longer.
func recycle(g *graph) {
	emptyGraph(g)
	spareGraphs.Put(g)
}

// emptyGraph removes values, nodes and arguments.
func emptyGraph(g *graph) {
	clear(g.Values)
	clear(g.Nodes)
	*g = graph{Version: g.Version, Values: g.Values[:0], Nodes: g.Nodes[:0], Args: g.Args[:0]}
}
