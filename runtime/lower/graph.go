package lower

import (
	"math"
	"slices"
	"strconv"

	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// graph is a regions.Graph under construction, of some steps of a block.
type graph struct {
	*regions.Graph
	*building
	f       *flow
	steps   []int
	inside  func(i int) bool // steps of the block
	of      []int            // by call: the step of the block that it is, or that reads the view that it makes
	inputs  []int            // the method's values, as Graph.Inputs
	outputs []int            // definitions, as Graph.Outputs
}

// The least numbers to allocate together: small graphs have fewer.
const someValues, someCalls = 64, 16

// start prepares for a graph of some steps of the block. Those of earlier graphs stay.
func (f *flow) start(steps []int) {
	f.values, f.calls = f.values[len(f.values):], f.calls[len(f.calls):]
	f.lists.keep()
	if want := f.most(steps); cap(f.values) < want {
		f.values = make([]regions.GraphValue, 0, max(want, someValues))
	}
	if want := len(steps) + len(steps)/4; cap(f.calls) < want { // with some views
		f.calls = make([]regions.GraphCall, 0, max(want, someCalls))
	}
	f.known.reset()
}

// most returns how many values a graph of some steps has at most, apart from views.
func (f *flow) most(steps []int) (n int) {
	f.known.reset()
	count := func(v int) {
		if v >= 0 {
			at := version{int(f.equal[v]), outside}
			if _, ok := f.known.get(at); !ok {
				f.known.set(at, 0)
				n++
			}
		}
	}
	for _, i := range steps {
		for _, v := range f.step(i).Args {
			count(v)
			for _, item := range f.m.Values[max(v, 0)].Items() {
				count(item)
			}
		}
	}
	return n
}

// newGraph builds the graph of some steps, in order. inside reports the same steps.
func (f *flow) newGraph(steps []int, inside func(i int) bool) *graph {
	f.start(steps)
	g := &graph{Graph: &regions.Graph{Method: f.m.Name}, building: &f.building, f: f, steps: steps, inside: inside,
		of: make([]int, 0, len(steps))}
	for _, i := range steps {
		g.call(i)
	}
	g.Values, g.Calls = slices.Clip(f.values), slices.Clip(f.calls)
	g.locate()
	for _, i := range steps {
		for k, def := range f.makes(i) {
			if def != ir.None && g.escapes(def) {
				g.outputs = append(g.outputs, def)
				v, _ := g.known.get(version{f.step(i).Writes[k], def})
				g.Outputs = append(g.Outputs, v)
			}
		}
	}
	return g
}

// has reports whether a step of the graph makes the definition.
func (g *graph) has(def int) bool { return def != outside && g.contains(g.f.Defs[def].Step) }

// contains reports whether a step of the method is in the graph.
func (g *graph) contains(step int) bool {
	return step >= g.f.from && step < g.f.to && g.inside(step-g.f.from)
}

// escapes reports whether a definition is read outside the graph.
func (g *graph) escapes(def int) bool {
	d := &g.f.Defs[def]
	return d.Live || slices.ContainsFunc(d.Uses, func(u ir.Use) bool { return !g.contains(u.Step) })
}

// call appends the call of step i.
func (g *graph) call(i int) {
	s := g.f.step(i)
	if g.f.isReshape(s) {
		to := version{s.Writes[0], g.f.sees(i, 0)}
		if _, ok := g.known.get(to); !ok && !g.f.m.Values[to.value].Tensor.Const {
			g.view(i, g.tensor(i, s.Reads[0], g.f.sees(i, 0)), to)
		}
		return
	}
	c := regions.GraphCall{Op: s.Op, Sig: s.Sig, Payload: g.f.payload(s).Opened, Args: g.lists.list(len(s.Args))}
	g.makes, g.sees = g.makes[:0], g.sees[:0]
	for k, v := range s.Writes {
		def := g.f.makes(i)[k]
		switch {
		case def != ir.None:
			g.makes = append(g.makes, g.add(version{v, def}))
		case s.IsView():
			g.makes = append(g.makes, g.add(version{v, g.f.sees(i, 0)}))
		default:
			g.makes = append(g.makes, outside)
		}
	}
	for k, v := range s.Reads {
		g.sees = append(g.sees, g.tensor(i, v, g.f.sees(i, k)))
	}
	for k, v := range s.Args {
		tensors, of := g.sees, s.Reads
		if s.Kind == ir.DelegateCall && k >= s.Inputs || s.Kind == ir.KernelCall && (k == len(s.Sig.Args) || s.Sig.Args[k].Out) {
			tensors, of = g.makes, s.Writes
		}
		c.Args = append(c.Args, g.argument(v, tensors, of))
	}
	g.calls, g.of = append(g.calls, c), append(g.of, i)
}

// isReshape reports whether s is a view whose sizes never vary.
func (f *flow) isReshape(s *ir.Step) bool {
	return s.IsView() && sameBytes(f.m.Values[s.Reads[0]].Tensor, f.m.Values[s.Writes[0]].Tensor)
}

// locate sets the calls' places in the file, for messages.
func (g *graph) locate() {
	text, ends := g.positions[:0], g.lists.list(len(g.of))
	for _, i := range g.of {
		at := g.f.step(i).Origin
		text = strconv.AppendInt(append(text, "chain "...), int64(at.Chain), 10)
		text = strconv.AppendInt(append(text, ", instruction "...), int64(at.Index), 10)
		ends = append(ends, len(text))
	}
	all, from := string(text), 0
	for n, to := range ends {
		g.Calls[n].Place, from = all[from:to], to
	}
	g.positions = text
}

// view appends a reshape without a copy that step i makes or needs.
func (g *graph) view(i, from int, to version) int {
	v := g.add(to)
	g.calls = append(g.calls, regions.GraphCall{View: true, Args: append(g.lists.list(2), from, v)})
	g.of = append(g.of, i)
	return v
}

// tensor returns the index of value v at a definition, for step i.
func (g *graph) tensor(i, v, def int) int {
	value := &g.f.m.Values[v]
	at := version{v, def}
	if value.Tensor.Const {
		at.def = outside
	}
	if known, ok := g.known.get(at); ok {
		return known
	}
	switch {
	case value.Tensor.Const:
		n := g.add(at)
		g.values[n].Data = constant(g.f.m.Storages[value.Storage].Data, value.Tensor.NBytes())
		return n
	case g.has(def):
		d := g.f.Defs[def].Value
		return g.view(i, g.tensor(i, d, def), at)
	}
	n := g.add(at)
	g.Inputs, g.inputs = append(g.Inputs, n), append(g.inputs, v)
	return n
}

func (g *graph) add(at version) int {
	t := g.f.m.Values[at.value].Tensor
	g.values = append(g.values, regions.GraphValue{Kind: tensor.KindTensor,
		DType: t.DType, Sizes: t.Sizes, DimOrder: t.DimOrder, Dynamism: t.Dynamism})
	if g.f.varies != nil {
		g.values[len(g.values)-1].Varies = g.f.varies[at.value]
	}
	g.known.set(at, len(g.values)-1)
	return len(g.values) - 1
}

// argument is value v. Its tensors are among those of the method's values.
func (g *graph) argument(v int, tensors, of []int) int {
	v = int(g.f.equal[v])
	value := &g.f.m.Values[v]
	if value.Kind == tensor.KindTensor {
		for k, has := range slices.Backward(of) {
			if has == v && tensors[k] != outside {
				return tensors[k]
			}
		}
		return g.none()
	}
	holds := value.Kind == tensor.KindTensorList || value.Kind == tensor.KindOptionalTensorList
	if n, ok := g.known.get(version{v, outside}); ok && !holds {
		return n
	}
	s := value.Scalar()
	from := regions.GraphValue{Kind: s.Kind, Bool: s.Bool, Int: s.Int, Double: s.Double, Str: s.Str, Bools: s.Bools, Doubles: s.Doubles}
	if items := value.Items(); len(items) > 0 {
		from.Items = g.lists.list(len(items))
		for _, item := range items {
			if item >= 0 {
				item = g.argument(item, tensors, of)
			}
			from.Items = append(from.Items, item)
		}
	}
	g.values = append(g.values, from)
	g.known.set(version{v, outside}, len(g.values)-1)
	return len(g.values) - 1
}

// varies reports whether sizes depend on the inputs of a run.
func (g *graph) varies() bool {
	return slices.ContainsFunc(g.Values, func(v regions.GraphValue) bool {
		return v.Kind == tensor.KindTensor && v.Dynamism != tensor.Static
	})
}

// least returns how many elements the inputs have together if those of varying sizes have this
// share of their declared elements.
func (g *graph) least(share float64) (n int) {
	for _, v := range g.Inputs {
		elements, _ := tensor.Product(g.Values[v].Sizes)
		if g.Values[v].Dynamism != tensor.Static {
			elements = int(math.Ceil(share * float64(elements)))
		}
		n += elements
	}
	return n
}

// none returns the slot of a result that names no tensor of its call.
func (g *graph) none() int {
	g.values = append(g.values, regions.GraphValue{})
	return len(g.values) - 1
}

// constant returns the first n bytes of b, never nil.
func constant(b []byte, n int64) []byte {
	if n == 0 {
		return []byte{}
	}
	return b[:n:n]
}
