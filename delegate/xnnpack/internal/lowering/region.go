package lowering

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Reject returns why a call is not lowered, "" if it is: it has no lowering, or the library, which refuses some graphs, or other
// rejects its graph.
func Reject(g *lowering.Graph, i int, refuses func(*graph.Graph, []graph.Shape) string, other func(*graph.Graph) string) string {
	l := New(g, true, refuses)
	defer l.Recycle()
	if err := l.call(i); err != nil {
		return ReasonOf(err)
	}
	x, shapes, err := l.finishCall(i)
	if err != nil {
		return ReasonOf(err)
	}
	if why := refuses(x, shapes); why != "" {
		return why
	}
	return other(x)
}

// finishCall returns the graph of one call, whose tensors are its inputs and outputs, with the shapes
// at the declared sizes.
func (l *Lowering) finishCall(i int) (*graph.Graph, []graph.Shape, error) {
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
	s, err := g.Declared()
	if err != nil {
		return nil, nil, graph.InPayload(err)
	}
	return g, s, l.CheckOutputs(g, s, outputs)
}

// known reports whether the graph has a value for a tensor.
func (l *Lowering) known(v int) bool {
	return *l.layoutsOf(v) != nothing
}

// complete returns the checked graph with these inputs and outputs.
func (l *Lowering) complete(inputs, outputs []int) (*graph.Graph, error) {
	values, err := l.outputs(outputs)
	if err != nil {
		return nil, err
	}
	l.Externals(l.inputValues(inputs), values)
	g, err := l.Finish()
	if err == nil {
		g.Static = !slices.ContainsFunc(inputs, func(v int) bool { return l.vals[v].Dynamism != tensor.Static })
		for _, v := range inputs {
			g.Varies = append(g.Varies, varies(&l.vals[v]))
		}
	}
	return g, err
}

// varies returns how the dimensions of a tensor vary, in memory order, nil for a static tensor.
func varies(x *lowering.GraphValue) []int {
	if x.Dynamism == tensor.Static {
		return nil
	}
	o, _ := declaredOrder(x)
	list := make([]int, len(x.Sizes))
	for i, d := range o.perm(len(x.Sizes)) {
		if list[i] = -1; x.Varies != nil {
			list[i] = x.Varies[d]
		}
	}
	return list
}

// CheckOutputs checks that the outputs have their declared sizes.
func (l *Lowering) CheckOutputs(g *graph.Graph, s []graph.Shape, outputs []int) error {
	for i, v := range outputs {
		arg := g.Args[g.Inputs+i]
		x, got := &l.in.Values[v], g.Values[arg].ArgumentShape(s[arg])
		o, _ := declaredOrder(x)
		if want := memoryShapeOf(x, o); x.Dynamism == tensor.Static && got != want {
			return graph.Unsupported(graph.ArgumentLocation(g, g.Inputs+i), "sizes %v, declared as %v", got, want)
		}
	}
	return nil
}

// LowerAll lowers all calls and returns their graph.
func (l *Lowering) LowerAll() (*graph.Graph, error) {
	g := l.in
	l.Graph.Values, l.Graph.Nodes = slices.Grow(l.Graph.Values, len(g.Inputs)+2*len(g.Calls)), slices.Grow(l.Graph.Nodes, len(g.Calls))
	for _, v := range g.Inputs {
		if err := checkInput(g, v); err != nil {
			return nil, graph.Unsupported("", "%w", err)
		}
		l.input(v)
	}
	for i := range g.Calls {
		if err := l.call(i); err != nil {
			return nil, graph.Unsupported(g.Calls[i].Place, "%w", err)
		}
	}
	for _, v := range g.Outputs {
		if !l.known(v) && !l.vals[v].IsConst() {
			return nil, graph.Unsupported("", "an output that no call computes")
		}
	}
	return l.complete(g.Inputs, g.Outputs)
}

func checkInput(g *lowering.Graph, v int) error {
	x := &g.Values[v]
	if x.Kind != tensor.KindTensor {
		return refuse("the input is not a tensor")
	}
	if x.DType != tensor.Float32 && x.DType != tensor.Float16 && int8Quantization(g, v) == nil {
		return refuse("an input of %v", x.DType)
	}
	return checkTensor(x)
}

// Detach returns the constants of a lowering of shapes only's graph that are not final. The lowering continues with
// another graph. ok is false if others are not final, either.
func (l *Lowering) Detach() (deferred []DeferredConstant, ok bool) {
	if l.partial {
		return nil, false
	}
	l.Graph, l.copies = spareGraph(), nil // deferred constants refer to the copies
	return l.deferred, true
}

func spareGraph() *graph.Graph {
	if g, ok := spareGraphs.Get().(*graph.Graph); ok {
		return g
	}
	return &graph.Graph{Version: graph.Identifiers[0]}
}

// call lowers call i of the graph.
func (l *Lowering) call(i int) error {
	if l.done[i] {
		return nil
	}
	l.done[i] = true
	c := l.newCall(i, nil)
	if c.call.Payload != nil {
		return c.merge()
	}
	if l.prepare(c); l.folds(c) {
		return nil
	}
	switch {
	case c.call.View:
		return c.emit(&viewLowering)
	case c.call.Op == nil:
		return refuse("no operator is called")
	}
	row := loweringOf(c.call)
	if row == nil {
		return refuse(NoNode)
	}
	if row.quantizes && l.quantized(c) {
		return nil
	}
	return c.emit(row)
}
