package quantize

import (
	"maps"
	"math"
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// Pair are the results of a layer as arguments of a graph: of floats, and computed from quantized operands.
type Pair struct {
	Layer, Float, Quantized int
	scaled                  []int // values whose scales it needs
}

// Measuring returns the plan's graph with each layer a second time, computed from the same inputs in its first form, nil if there is
// none. The results are further outputs.
func (p *Plan) Measuring() (*Built, error) {
	return p.supported(p.nodeForms(func(l int) lowering.SchemeName {
		if list := p.Layers[l].Forms; len(list) > 0 {
			return list[0]
		}
		return ""
	}), p.measuring)
}

func (p *Plan) measuring(forms []lowering.SchemeName) *builder {
	b := p.newBuilder()
	b.Graph.Args = slices.Clone(b.Graph.Args)
	b.static = b.chosen(forms)
	for v := range b.static.float {
		b.static.float[v] = true
	}
	for i := range p.Graph.Nodes {
		n := &p.Graph.Nodes[i]
		b.add(graph.None, *n)
		if p.layers[i] == graph.None || forms[i] == "" || forms[i] == lowering.Static8 && !b.static.is[i] || len(b.Graph.Args)+2 > graph.MaxArgs {
			continue
		}
		again, pair := b.again(i, n, forms[i]), Pair{Layer: p.layers[i]}
		pair.Float, pair.Quantized = Show(b.Graph, n.Out[0]), Show(b.Graph, again)
		if b.static.is[i] {
			pair.scaled = b.static.scaled(n)
		}
		b.pairs = append(b.pairs, pair)
	}
	return b
}

// scaled lists the values whose scales a node needs.
func (s *static) scaled(n *graph.Node) []int {
	list := []int{s.root(n.Out[0]), s.root(n.In[0])}
	if !n.Type.Weighted() {
		list = append(list, s.root(n.In[1]))
	}
	return list
}

// again adds the quantized form of a layer, and returns its result as floats.
func (b *builder) again(i int, n *graph.Node, form lowering.SchemeName) int {
	y := b.Value(graph.FP32, b.Graph.Values[n.Out[0]].Shape, graph.Quant{})
	if b.static.is[i] {
		b.convert(graph.None, b.addInt8(i, n), y)
		return y
	}
	b.emit(i, form, n.In[0], y)
	return y
}

// Show makes a value of a graph an output if it is no argument, and returns the argument.
func Show(g *graph.Graph, v int) int {
	x := &g.Values[v]
	if x.Arg == graph.None {
		x.Arg, x.Output = len(g.Args), true
		g.Args = append(g.Args, v)
	}
	return x.Arg
}

// measured is what runs recorded with the ranges of one observer.
type measured struct {
	layers []Errors
	values map[int][]int // by value: the layers that need its scale
}

// Errors are those of a layer's results.
type Errors struct {
	Signal, Noise float64   // sums of squares of finite results, and of their errors
	shift, count  []float64 // by channel: the sum of errors of results inside the layer's bounds, and how many there are
}

// Errors returns those of a layer with the current observer.
func (p *Plan) Errors(layer int) Errors { return p.current().layers[layer] }

// current returns what runs record with the current observer.
func (p *Plan) current() *measured {
	by := p.by
	if p.best != nil {
		by = lowering.ObserveBest
	}
	m := p.measured[by]
	if m == nil {
		m = &measured{layers: make([]Errors, len(p.Layers)), values: make(map[int][]int)}
		p.measured[by] = m
	}
	return m
}

// Record adds the results of a layer. The noise is infinite if only a quantized one is not finite.
func (p *Plan) Record(pair Pair, want, got []float32) {
	m := p.current()
	for _, v := range pair.scaled {
		if !slices.Contains(m.values[v], pair.Layer) {
			m.values[v] = append(m.values[v], pair.Layer)
		}
	}
	n := &p.Graph.Nodes[p.Layers[pair.Layer].Node]
	e := &m.layers[pair.Layer]
	if e.shift == nil && n.Type.Weighted() {
		e.shift = make([]float64, n.OutputChannels(p.Graph))
		e.count = make([]float64, len(e.shift))
	}
	e.add(want, got, n.Min, n.Max)
}

// add adds results, the bounds of which are lo and hi.
func (e *Errors) add(want, got []float32, lo, hi float32) {
	for i, x := range want {
		d := float64(got[i]) - float64(x)
		switch {
		case x-x != 0:
			continue
		case math.IsNaN(d):
			d = math.Inf(1)
		}
		e.Signal, e.Noise = e.Signal+float64(x)*float64(x), e.Noise+d*d
		if e.shift != nil && x > lo && x < hi {
			e.shift[i%len(e.shift)] += d
			e.count[i%len(e.shift)]++
		}
	}
}

// Set changes how ranges are found, and whether biases are corrected by the mean errors of their layers.
func (p *Plan) Set(o lowering.Observer, corrected bool) {
	p.by, p.best, p.corrected = o, nil, corrected
	p.quants, p.weights = make(map[int]graph.Quant), make(map[weightKey]*graph.Value)
	if o != lowering.ObserveBest {
		return
	}
	p.by, p.best = lowering.ObserveMSE, make(map[int]lowering.Observer)
	least := make(map[int]float64)
	for _, o := range lowering.Observers {
		m := p.measured[o]
		if m == nil {
			continue
		}
		for _, v := range slices.Sorted(maps.Keys(m.values)) {
			if e := m.errorOf(v); p.best[v] == "" || e < least[v] {
				p.best[v], least[v] = o, e
			}
		}
	}
}

// errorOf returns the relative errors of the layers that need the scale of a value.
func (m *measured) errorOf(v int) (sum float64) {
	for _, l := range m.values[v] {
		if e := &m.layers[l]; e.Signal > 0 {
			sum += e.Noise / e.Signal
		}
	}
	return sum
}

// bias returns the bias of node i, less the mean errors of its results if biases are corrected, nil if it has none.
func (p *Plan) bias(i int) []float32 {
	n := &p.Graph.Nodes[i]
	var list []float32
	if n.In[2] != graph.None {
		list = numbers(&p.Graph.Values[n.In[2]])
	}
	if !p.corrected {
		return list
	}
	e := p.Errors(p.layers[i])
	if e.shift == nil {
		return list
	}
	corrected := make([]float32, len(e.shift))
	copy(corrected, list)
	for c, sum := range e.shift {
		if mean := float32(sum / max(e.count[c], 1)); mean-mean == 0 {
			corrected[c] -= mean
		}
	}
	return corrected
}
