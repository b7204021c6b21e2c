package quantize

import (
	"cmp"
	"math"
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Static quantization: values have a scale and a zero point each, from the ranges that were observed.

// movers are nodes whose results are elements of their input: they share its scale.
var movers = []uint8{graph.TagStaticTranspose, graph.TagStaticReshape, graph.TagStaticSlice, graph.TagStaticConstantPad, graph.TagCopy,
	graph.TagMaxPooling2d, graph.TagClamp}

// followers are nodes that are quantized if their input is. Means are much smaller than the elements, and have a scale of their own.
var followers = append([]uint8{graph.TagGlobalAvgPooling2d}, movers...)

// rearranging are those that have all elements of their input, so that it can be quantized before them.
var rearranging = []uint8{graph.TagStaticTranspose, graph.TagStaticReshape, graph.TagCopy}

func isConcatenate(n *graph.Node) bool {
	_, ok := n.Params.(*graph.ConcatenateParams)
	return ok
}

// observe adds an observer for each value that a quantized node may read or write.
func (p *Plan) observe() {
	for i := range p.Graph.Nodes {
		n := &p.Graph.Nodes[i]
		if p.layers[i] == graph.None && !slices.Contains(followers, n.Type.Tag) && !isConcatenate(n) {
			continue
		}
		for _, list := range [2][]int{n.In, n.Out} {
			for k, v := range list {
				if v != graph.None && p.Graph.Values[v].Datatype == graph.FP32 && (k == 0 || !n.Type.Weighted()) {
					p.observers[v] = &Observer{}
				}
			}
		}
	}
	for v, o := range p.observers {
		if x := &p.Graph.Values[v]; x.IsConst() {
			o.Add(numbers(x))
		}
	}
}

// ranges are how observers find the range of a value.
var ranges = map[lowering.Observer]func(*Observer) (lo, hi float32){lowering.ObserveMSE: (*Observer).LeastError,
	lowering.ObserveMinMax: (*Observer).Extremes, lowering.ObservePercentile: (*Observer).Percentile}

// quantOf returns the scale and the zero point of a value whose range is known.
func (p *Plan) quantOf(v int) graph.Quant {
	q, ok := p.quants[v]
	if ok {
		return q
	}
	q.Scale, q.ZeroPoint = affine(ranges[cmp.Or(p.best[v], p.by)](p.observers[v]))
	p.quants[v] = q
	return q
}

// Observed lists the values whose elements are recorded.
func (p *Plan) Observed() (list []int) {
	for v := range p.observers {
		if !p.Graph.Values[v].IsConst() {
			list = append(list, v)
		}
	}
	slices.Sort(list)
	return list
}

// Observe records elements of a value.
func (p *Plan) Observe(v int, list []float32) { p.observers[v].Add(list) }

// static is the part of the plan's nodes that is computed from quantized values.
type static struct {
	is    []bool        // by node
	of    []int         // by value: the value whose scale it has
	int8s map[int][]int // by value: its quantized forms
	float []bool        // by value: it exists as float
}

// chosen finds the nodes that are quantized, and the values that share scales.
func (b *builder) chosen(forms []lowering.SchemeName) *static {
	g := b.plan.Graph
	s := &static{is: make([]bool, len(g.Nodes)), of: make([]int, len(g.Values)), int8s: make(map[int][]int),
		float: make([]bool, len(g.Values))}
	int8 := make([]bool, len(g.Values)) // values that are computed from quantized ones
	for i := range g.Nodes {
		n := &g.Nodes[i]
		operand := slices.ContainsFunc(n.In, func(v int) bool { return v != graph.None && int8[v] })
		s.is[i] = forms[i] == lowering.Static8 && b.plan.known(n) && (n.Type.Weighted() && b.isLayer(i) || operand && b.mayFollow(i, n, int8))
		for _, v := range n.Out {
			int8[v] = s.is[i]
		}
	}
	s.quantizeEarlier(g, forms, b.plan)
	s.share(g, b.plan)
	return s
}

// isLayer reports whether a node is a layer.
func (b *builder) isLayer(i int) bool { return b.plan.layers[i] != graph.None }

// known reports whether the ranges of all values of a node were observed, and are finite.
func (p *Plan) known(n *graph.Node) bool {
	for _, list := range [2][]int{n.In, n.Out} {
		for k, v := range list {
			if v == graph.None || k > 0 && n.Type.Weighted() {
				continue
			}
			if o := p.observers[v]; o.Empty() || o.hi-o.lo > math.MaxFloat32 {
				return false
			}
		}
	}
	return true
}

// mayFollow reports whether a node with a quantized operand is quantized itself.
func (b *builder) mayFollow(i int, n *graph.Node, int8 []bool) bool {
	switch {
	case b.isLayer(i):
		return true
	case isConcatenate(n):
		return !slices.ContainsFunc(n.In, func(v int) bool { return !int8[v] })
	case n.Type.Tag == graph.TagMaxPooling2d && n.Min > -graph.Inf:
		return false
	case n.Type.Tag == graph.TagStaticConstantPad:
		return graph.Params[graph.PadParams](n).Value == 0
	}
	return slices.Contains(followers, n.Type.Tag)
}

// quantizeEarlier marks nodes that rearrange elements before they are quantized: fewer bytes are moved behind.
func (s *static) quantizeEarlier(g *graph.Graph, forms []lowering.SchemeName, p *Plan) {
	readers := make([][]int, len(g.Values))
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].In {
			if v != graph.None {
				readers[v] = append(readers[v], i)
			}
		}
	}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		y := n.Out[0]
		if s.is[i] || forms[i] == "" || !slices.Contains(rearranging, n.Type.Tag) || !p.known(n) || g.Values[y].Output {
			continue
		}
		s.is[i] = !slices.ContainsFunc(readers[y], func(k int) bool { return !s.is[k] })
	}
}

// share finds the values that share a scale. The results of nodes that move elements have that of their operand. A value that only
// a concatenation or a clamp reads has that of the result.
func (s *static) share(g *graph.Graph, p *Plan) {
	readers := p.readers
	for v := range s.of {
		s.of[v] = v
	}
	made := make([]bool, len(g.Values)) // by a node that computes new elements
	for i := range g.Nodes {
		n := &g.Nodes[i]
		made[n.Out[0]] = s.is[i] && !slices.Contains(movers, n.Type.Tag)
	}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		if !s.is[i] || !isConcatenate(n) && n.Type.Tag != graph.TagClamp {
			continue
		}
		for _, v := range n.In {
			if made[v] && readers[v] == 1 && !g.Values[v].Output {
				s.of[v] = n.Out[0]
			}
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if !s.is[i] || !slices.Contains(movers, n.Type.Tag) && !p.isCoarseMean(s, n) {
			continue
		}
		if from := s.root(n.In[0]); from != n.Out[0] {
			s.of[n.Out[0]] = from
		}
	}
}

// isCoarseMean reports whether a node computes means whose scale is too far from that of their elements for the library.
func (p *Plan) isCoarseMean(s *static, n *graph.Node) bool {
	if n.Type.Tag != graph.TagGlobalAvgPooling2d {
		return false
	}
	ratio := p.quantOf(s.root(n.In[0])).Scale / p.quantOf(n.Out[0]).Scale
	return !(ratio >= 0x1p-7 && ratio <= 0x1p7)
}

// root returns the value whose scale a value has.
func (s *static) root(v int) int {
	for range s.of {
		if s.of[v] == v {
			break
		}
		v = s.of[v]
	}
	return v
}

// build builds the graph.
func (p *Plan) build(forms []lowering.SchemeName) *builder {
	b, g := p.newBuilder(), p.Graph
	b.static = b.chosen(forms)
	for v := range g.Values {
		b.static.float[v] = g.Values[v].IsConst() || g.Values[v].Input
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if b.static.is[i] {
			out := b.addInt8(i, n)
			b.static.int8s[n.Out[0]] = append(b.static.int8s[n.Out[0]], out)
			continue
		}
		for _, v := range n.In {
			b.toFloat(v)
		}
		if forms[i] == "" || forms[i] == lowering.Static8 {
			b.add(graph.None, *n)
		} else {
			b.emit(i, forms[i], n.In[0], n.Out[0])
		}
		for _, v := range n.Out {
			b.static.float[v] = true
		}
	}
	for _, v := range g.Args[g.Inputs:] {
		b.toFloat(v)
	}
	return b
}

// toFloat makes a value of floats available.
func (b *builder) toFloat(v int) {
	if v == graph.None || b.static.float[v] {
		return
	}
	b.static.float[v] = true
	b.convert(graph.None, b.static.int8s[v][0], v)
}

// sharedQuant returns the scale and the zero point of a value of a quantized node.
func (b *builder) sharedQuant(v int) graph.Quant { return b.plan.quantOf(b.static.root(v)) }

// converts reports whether the library converts between 8-bit integers with a ratio of scales.
func converts(ratio float32) bool { return ratio >= 0x1p-8 && ratio <= 0x1p7 }

// int8 returns the form of a value with a scale and a zero point. Scales that are too far apart have the floats between them.
func (b *builder) int8(i, v int, q graph.Quant) int {
	for _, x := range b.static.int8s[v] {
		if y := &b.Graph.Values[x].Quant; y.Scale == q.Scale && y.ZeroPoint == q.ZeroPoint {
			return x
		}
	}
	x := &b.plan.Graph.Values[v]
	if x.IsConst() {
		c := b.Builder.Constant(graph.QInt8, x.Shape, q, quantized(numbers(x), q))
		b.static.int8s[v] = append(b.static.int8s[v], c)
		return c
	}
	y, from := b.Value(graph.QInt8, x.Shape, q), v
	if !b.static.float[v] {
		if from = b.static.int8s[v][0]; !converts(b.Graph.Values[from].Quant.Scale / q.Scale) {
			b.toFloat(v)
			from = v
		}
	}
	b.convert(i, from, y)
	b.static.int8s[v] = append(b.static.int8s[v], y)
	return y
}

// quantized returns the elements of a constant as 8-bit integers.
func quantized(list []float32, q graph.Quant) []byte {
	data := tensor.AlignedBytes(len(list))
	for i, x := range list {
		data[i] = byte(int8(graph.Quantize(x/q.Scale, q.ZeroPoint, math.MinInt8, math.MaxInt8)))
	}
	return data
}

// addInt8 adds the quantized form of a node, and returns its result.
func (b *builder) addInt8(i int, n *graph.Node) int {
	if l := b.plan.layers[i]; l != graph.None {
		b.layers = append(b.layers, l)
	}
	y := n.Out[0]
	q := b.sharedQuant(y)
	m := *n
	m.In, m.Out = nil, nil
	for k, v := range n.In {
		switch {
		case n.Type.Weighted() && k > 0:
		case isConcatenate(n):
			m.In = append(m.In, b.int8(i, v, q))
		default:
			m.In = append(m.In, b.int8(i, v, b.sharedQuant(v)))
		}
	}
	if n.Type.Weighted() {
		m = b.weightedInt8(i, m, q)
	}
	out := b.Value(graph.QInt8, b.plan.Graph.Values[y].Shape, q)
	m.Out = []int{out}
	b.add(i, m)
	return out
}

// weightedInt8 sets the filter and the bias of a layer with a quantized input.
func (b *builder) weightedInt8(i int, m graph.Node, out graph.Quant) graph.Node {
	n, in := &b.plan.Graph.Nodes[i], b.Graph.Values[m.In[0]].Quant.Scale
	list := b.plan.bias(i)
	filter := weightKey{value: n.In[1], node: i, in: in, out: out.Scale, form: lowering.Static8}
	x, ok := b.plan.weights[filter]
	if !ok {
		made := rowsOf(n, &b.plan.Graph.Values[n.In[1]]).perChannel(floors(list, n.OutputChannels(b.plan.Graph), in, out.Scale))
		x = &made
		b.plan.weights[filter] = x
	}
	bias := graph.None
	if list != nil {
		made := bias32(list, in, x.Quant.Scales)
		bias = b.constant(&made)
	}
	m.In = []int{m.In[0], b.constant(x), bias}
	if !n.Type.Convolution {
		m.Flags = 0 // the filter is no longer transposed
	}
	return m
}

// leastRatio is the smallest factor from the scale of sums to that of the output.
const leastRatio = 0x1p-31

// floors returns the smallest scales of weights: biases must not have too many steps, nor steps of the sums be too small.
func floors(bias []float32, channels int, in, out float32) []float32 {
	list := make([]float32, channels)
	if bias != nil {
		list = biasFloors(bias, in)
	}
	for i := range list {
		list[i] = max(list[i], leastRatio*out/in)
	}
	return list
}
