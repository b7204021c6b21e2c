package quantize

import (
	"cmp"
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// Built is a quantized graph.
type Built struct {
	Graph  *graph.Graph
	Shapes []graph.Shape
	Layers []int          // that are quantized
	Left   map[int]string // why others stay as they are, by layer
	Pairs  []Pair         // of a graph that measures
}

// New returns a plan for a graph, whose clamps it fuses with other nodes.
func New(g *graph.Graph, s lowering.Scheme) *Plan {
	fuseClamps(g)
	p := &Plan{Graph: g, Scheme: s, layers: make([]int, len(g.Nodes)), observers: make(map[int]*Observer), readers: g.Readers(),
		divisors: make(map[int]bool), measured: make(map[lowering.Observer]*measured)}
	p.Set(cmp.Or(s.Observer, lowering.ObserveMSE), false)
	for i := range g.Nodes {
		p.layers[i] = graph.None
		if l, is := p.layer(i); is {
			p.layers[i] = len(p.Layers)
			p.Layers = append(p.Layers, l)
		}
	}
	if p.isStatic() {
		p.observe()
	}
	return p
}

// Build returns the graph with quantized layers, nil if there are none. Layers that the library does not run in their quantized form
// stay as they are.
func (p *Plan) Build(forms lowering.Forms) (*Built, error) {
	return p.supported(p.nodeForms(forms), p.build)
}

// nodeForms returns the forms by node: that of a node which is no layer may follow static quantization.
func (p *Plan) nodeForms(forms lowering.Forms) []lowering.SchemeName {
	list := make([]lowering.SchemeName, len(p.layers))
	for i, l := range p.layers {
		if l == graph.None {
			if !p.divisors[p.Graph.Nodes[i].Out[0]] {
				list[i] = lowering.Static8
			}
		} else if s := forms(l); slices.Contains(p.Layers[l].Forms, s) {
			list[i] = s
		}
	}
	return list
}

// supported builds a graph again without the nodes whose quantized form the library does not run, until it runs all.
func (p *Plan) supported(forms []lowering.SchemeName, build func(forms []lowering.SchemeName) *builder) (*Built, error) {
	left := make(map[int]string)
	for range maxRounds {
		b := build(forms)
		if len(b.layers) == 0 {
			return nil, nil
		}
		g, err := b.Finish()
		if err != nil {
			return nil, err
		}
		shapes, err := g.Declared()
		if err != nil {
			return nil, graph.InPayload(err)
		}
		if !p.refused(b, shapes, forms, left) {
			return &Built{Graph: g, Shapes: shapes, Layers: b.layers, Left: p.reasons(b, forms, left), Pairs: b.pairs}, nil
		}
	}
	return nil, graph.Unsupported("", "the library refuses quantized nodes, and others each time they are left out")
}

// maxRounds limits how often a graph is built again. Each time, all nodes are left out that the library refuses.
const maxRounds = 100

// refused marks the nodes of the plan whose quantized form the library does not run, and reports whether there are any.
func (p *Plan) refused(b *builder, shapes []graph.Shape, forms []lowering.SchemeName, left map[int]string) (some bool) {
	for i := range b.Graph.Nodes {
		from := b.from[i]
		if from == graph.None || forms[from] == "" || forms[from] == lowering.Weights8 {
			continue // of w8, the form without a bias is run, though not by every engine of this project
		}
		if why := p.Refuses(b.Graph, &b.Graph.Nodes[i], shapes); why != "" {
			forms[from], some = "", true
			left[p.layers[from]] = "XNNPACK does not run its quantized form: " + why
		}
	}
	return some
}

// reasons adds why layers are not quantized that could be.
func (p *Plan) reasons(b *builder, forms []lowering.SchemeName, left map[int]string) map[int]string {
	for l := range p.Layers {
		n := &p.Graph.Nodes[p.Layers[l].Node]
		if left[l] != "" || forms[p.Layers[l].Node] != lowering.Static8 || slices.Contains(b.layers, l) {
			continue
		}
		if left[l] = "no quantized layer computes its operands"; !p.known(n) {
			left[l] = "its values were not observed, or have no finite range"
		}
	}
	return left
}

// builder builds a quantized graph. It has the values of the plan's, and further ones behind them.
type builder struct {
	graph.Builder
	plan   *Plan
	from   []int // by node: the node of the plan that it is the quantized form of, none for others
	layers []int
	rows   map[int]int // by value: the value that is quantized row by row
	static *static
	pairs  []Pair
}

func (p *Plan) newBuilder() *builder {
	g := *p.Graph
	g.Values, g.Args, g.Nodes = slices.Clone(g.Values), slices.Clone(g.Args), nil
	return &builder{plan: p, Builder: graph.Builder{Graph: &g}, rows: make(map[int]int)}
}

// add adds a node that is made of one of the plan. It has many callers, and is large.
//
//go:noinline
func (b *builder) add(from int, n graph.Node) *graph.Node {
	n.Index = len(b.Graph.Nodes)
	n.At = n.Index
	b.Graph.Nodes = append(b.Graph.Nodes, n)
	b.from = append(b.from, from)
	return &b.Graph.Nodes[n.Index]
}

// convert adds a conversion, for node from.
func (b *builder) convert(from, in, out int) {
	b.add(from, graph.Node{Type: graph.NodeTypes[graph.TagConvert], In: []int{in}, Out: []int{out}, Min: -graph.Inf, Max: graph.Inf})
}

// emit adds the quantized form of a layer without observed ranges.
func (b *builder) emit(i int, form lowering.SchemeName, in, out int) {
	n := &b.plan.Graph.Nodes[i]
	b.layers = append(b.layers, b.plan.layers[i])
	if form == lowering.Weights8 {
		b.emitWeights(i, n, in, out)
		return
	}
	m := *n
	if isProduct(n) { // the filter is no longer transposed
		m.Type, m.Params, m.Flags = graph.NodeTypes[graph.TagFullyConnected], nil, 0
	}
	m.In, m.Out = []int{b.perRow(i, &m, in), b.filter(i, form), n.In[2]}, []int{out}
	b.add(i, m)
}

// perRow returns an input that is quantized at run time. Products share it. A convolution has one of its own: the library makes
// a product of some, and changes how many dimensions share a scale in the value.
func (b *builder) perRow(i int, n *graph.Node, in int) int {
	if !n.Type.Convolution {
		if v, ok := b.rows[in]; ok {
			return v
		}
	}
	nonbatch := 1
	if n.Type.Convolution {
		nonbatch = 3
	}
	v := b.Value(graph.QDInt8, b.Graph.Values[in].Shape, graph.Quant{Nonbatch: nonbatch})
	b.convert(i, in, v)
	if !n.Type.Convolution {
		b.rows[in] = v
	}
	return v
}

// filter returns the quantized filter of a layer without observed ranges.
func (b *builder) filter(i int, form lowering.SchemeName) int {
	n := &b.plan.Graph.Nodes[i]
	key := weightKey{value: n.In[1], node: i, form: form}
	x, ok := b.plan.weights[key]
	if !ok {
		rows := rowsOf(n, &b.plan.Graph.Values[n.In[1]])
		quantized := graph.Value{}
		if isProduct(n) {
			rows.shape = graph.ShapeOf(len(rows.rows), len(rows.rows[0]))
		}
		if form == lowering.Dynamic4 {
			quantized = rows.perGroup(b.plan.Scheme.Group)
		} else {
			quantized = rows.perChannel(nil)
		}
		x = &quantized
		b.plan.weights[key] = x
	}
	return b.constant(x)
}

// constant adds a constant value.
func (b *builder) constant(x *graph.Value) int {
	return b.Builder.Constant(x.Datatype, x.Shape, x.Quant, x.Data)
}

// emitWeights adds a product of floats with 8-bit weights. The library would multiply a bias by the scales of the weights, so
// that it is added by a node of its own.
func (b *builder) emitWeights(i int, n *graph.Node, in, out int) {
	m := *n
	m.In, m.Out, m.Flags = []int{in, b.filter(i, lowering.Weights8), graph.None}, []int{out}, 0
	if n.In[2] == graph.None {
		b.add(i, m)
		return
	}
	sum := b.Value(graph.FP32, b.Graph.Values[out].Shape, graph.Quant{})
	m.Out, m.Min, m.Max = []int{sum}, -graph.Inf, graph.Inf
	b.add(i, m)
	b.add(i, graph.Node{Type: graph.NodeTypes[graph.TagAdd], In: []int{sum, n.In[2]}, Out: []int{out}, Min: n.Min, Max: n.Max,
		DebugHandle: n.DebugHandle})
}
