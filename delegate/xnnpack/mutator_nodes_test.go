package xnnpack

import (
	"reflect"
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// families are groups of node types that can replace each other.
var families = [][]string{
	{"Sigmoid", "Clamp", "Floor", "SquareRoot", "Ceiling", "Hardswish", "LeakyReLU", "Negate", "Square", "ELU", "Abs",
		"ReciprocalSquareRoot", "Log", "Gelu", "Tanh", "Exp", "Sin", "Cos", "Softmax", "Copy", "Convert", "GlobalAvgPooling2d"},
	{"Add", "Div", "Minimum", "Multiply", "Subtract", "Maximum", "PReLU"},
	{"Conv2d", "ConvTranspose2d", "DepthwiseConv2d"},
	{"AvgPooling2d", "MaxPooling2d"},
}

// changeType changes a node's type to another of the same group.
func (m *mutator) changeType() {
	n := m.someNode()
	for _, list := range families {
		if slices.Contains(list, n.Type.Name) {
			if n.Type = graphtest.TypeNamed(one(m.R, list...)); n.Type.Params == nil || reflect.TypeOf(n.Type.Params()) != reflect.TypeOf(n.Params) {
				resetParams(n.Type, n)
			}
			return
		}
	}
}

// between inserts a node that reads value v. All or some of v's readers read the new node's output
// instead. It returns the new node, or nil if v is a constant, dynamically quantized or an index.
func (m *mutator) between(name string, v int) *graph.Node {
	at := -1
	for i := range m.Graph.Nodes {
		if slices.Contains(m.Graph.Nodes[i].Out, v) {
			at = i
		}
	}
	x := m.Graph.Values[v]
	if x.IsConst() || x.Datatype == graph.QDInt8 || x.Datatype == graph.Int32 {
		return nil
	}
	y := x
	y.ID, y.Arg, y.Input, y.Output = graphtest.EncodedID(len(m.Graph.Values)), graph.None, false, false
	fresh := len(m.Graph.Values)
	m.Graph.Values = append(m.Graph.Values, y)
	all := m.R.IntN(4) > 0
	for i := at + 1; i < len(m.Graph.Nodes); i++ {
		for j, in := range m.Graph.Nodes[i].In {
			if in == v && (all || m.R.IntN(2) == 0) {
				m.Graph.Nodes[i].In[j] = fresh
			}
		}
	}
	if x.Output && all {
		m.Graph.Values[fresh].Output = true
		m.Graph.Values[v].Output = m.R.IntN(4) == 0
	}
	n := graph.Node{Type: graphtest.TypeNamed(name), In: []int{v}, Out: []int{fresh}, Min: -graph.Inf, Max: graph.Inf}
	n.Type.SetParams(&n)
	m.Graph.Nodes = slices.Insert(m.Graph.Nodes, at+1, n)
	return &m.Graph.Nodes[at+1]
}

// insertClamp inserts a clamp after a value, with the same or another quantization.
func (m *mutator) insertClamp() {
	n := m.between("Clamp", m.R.IntN(len(m.Graph.Values)))
	if n == nil {
		return
	}
	out := &m.Graph.Values[n.Out[0]]
	if m.R.IntN(2) == 0 {
		out.Quant.Scale = m.scale(out.Quant.Scale)
		if d := out.Datatype.Info(); m.R.IntN(2) == 0 && d.MaxZero > d.MinZero {
			out.Quant.ZeroPoint = d.MinZero + m.R.Int32N(d.MaxZero-d.MinZero+1)
		}
	}
	lo, hi := m.number32(out), m.number32(out)
	n.Min, n.Max = min(lo, hi), max(lo, hi)
}

// insertPad inserts a constant pad before a node, preferably one with a window.
func (m *mutator) insertPad() {
	n := m.windowNode()
	if n == nil {
		n = m.someNode()
	}
	v := n.In[0]
	pad := m.between("StaticConstantPad", v)
	if pad == nil {
		return
	}
	rank := m.Graph.Values[v].Shape.Rank
	p := graph.Params[graph.PadParams](pad)
	p.Before, p.After = make([]int, rank), make([]int, rank)
	for i := range rank {
		if (i == 1 || i == 2) == (m.R.IntN(8) > 0) {
			p.Before[i], p.After[i] = m.R.IntN(4), m.R.IntN(4)
		}
	}
	if m.R.IntN(4) == 0 {
		p.Value = m.number32(&m.Graph.Values[v])
	}
}

func (m *mutator) insertCopy() {
	if n := m.between(one(m.R, "Copy", "Copy", "StaticReshape"), m.R.IntN(len(m.Graph.Values))); n != nil && n.Type.Name == "StaticReshape" {
		graph.Params[graph.ReshapeParams](n).Sizes = slices.Clone(m.Graph.Values[n.In[0]].Shape.Dims())
	}
}

// changeReader makes a node read another value of the same datatype and sizes.
func (m *mutator) changeReader() {
	i := m.R.IntN(len(m.Graph.Nodes))
	n := &m.Graph.Nodes[i]
	j := m.R.IntN(len(n.In))
	if n.In[j] == graph.None {
		return
	}
	x := m.Graph.Values[n.In[j]]
	for range 10 {
		v := m.R.IntN(len(m.Graph.Values))
		y := &m.Graph.Values[v]
		if y.Datatype == x.Datatype && y.Shape == x.Shape && y.IsConst() == x.IsConst() && m.known(v, i) {
			n.In[j] = v
			return
		}
	}
}

// known reports whether value v is defined before node i.
func (m *mutator) known(v, i int) bool {
	if x := &m.Graph.Values[v]; x.Input || x.IsConst() {
		return true
	}
	for k := range m.Graph.Nodes[:i] {
		if slices.Contains(m.Graph.Nodes[k].Out, v) {
			return true
		}
	}
	return false
}

// changeOutput makes an intermediate value an output, or an output an intermediate value.
func (m *mutator) changeOutput() {
	n := m.someNode()
	if v := &m.Graph.Values[n.Out[m.R.IntN(len(n.Out))]]; v.Datatype != graph.QDInt8 {
		v.Output = !v.Output
	}
}

// growNode adds a random node that reads one of the values, as in graphtest.RandomGraph.
func (m *mutator) growNode() {
	c := &graphtest.Chain{Maker: m.Maker}
	for v := range m.Graph.Values {
		x := &m.Graph.Values[v]
		if !x.IsConst() && x.Datatype != graph.QDInt8 && x.Datatype != graph.Int32 && x.Shape.Rank > 0 && x.Shape.Check() == nil &&
			m.known(v, len(m.Graph.Nodes)) && x.Shape.Numel() < 1<<12 {
			c.Ready = append(c.Ready, v)
		}
	}
	if len(c.Ready) == 0 {
		return
	}
	from := len(c.Ready)
	c.Grow()
	for _, v := range c.Ready[from:] {
		m.Graph.Values[v].Output = true
	}
}

// removeNode removes a node; the readers of its output read its input.
func (m *mutator) removeNode() {
	i := m.R.IntN(len(m.Graph.Nodes))
	bypass(m.Graph, i)
}

// bypass removes node i; the readers of its outputs read its first input.
func bypass(g *graph.Graph, i int) {
	n := g.Nodes[i]
	g.Nodes = slices.Delete(g.Nodes, i, i+1)
	for k := range g.Nodes {
		for j, v := range g.Nodes[k].In {
			if slices.Contains(n.Out, v) {
				g.Nodes[k].In[j] = n.In[0]
			}
		}
	}
	for _, v := range n.Out {
		if g.Values[v].Output && !g.Values[n.In[0]].Input && !g.Values[n.In[0]].IsConst() && g.Values[n.In[0]].Datatype != graph.QDInt8 {
			g.Values[n.In[0]].Output = true
		}
		g.Values[v].Output = false
	}
}

// retype changes the datatype of all values of a graph, including weights.
func (m *mutator) retype() {
	to := one(m.R, graph.FP32, graph.FP16, graph.QInt8, graph.QUInt8, graph.BF16)
	weights := make(map[int]bool)
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		if hasWeights(n) {
			m.retypeWeights(n, to)
			weights[n.In[1]] = true
			if n.In[2] != graph.None {
				weights[n.In[2]] = true
			}
		}
	}
	for v := range m.Graph.Values {
		x := &m.Graph.Values[v]
		if weights[v] || !slices.Contains(graph.ElementwiseTypes, x.Datatype) || x.Datatype == to || len(x.Data) > 1<<20 {
			continue
		}
		x.Datatype = to
		if q := m.plausible(to); x.Quant.Scale == 0 {
			x.Quant = q
		} else if info := to.Info(); info.Quant == graph.PerTensor {
			x.Quant.ZeroPoint = min(max(x.Quant.ZeroPoint, info.MinZero), info.MaxZero)
		}
		if x.IsConst() {
			x.Data = m.Bytes(to, x.Shape)
		}
	}
}

func hasWeights(n *graph.Node) bool {
	return len(n.In) == 3 && (n.Type.Convolution || n.Type.Tag == graph.TagFullyConnected)
}

// plausible returns a typical quantization of a datatype.
func (m *mutator) plausible(d graph.Datatype) (q graph.Quant) {
	v := m.Value(d, 1)
	q = m.Graph.Values[v].Quant
	m.Graph.Values = m.Graph.Values[:v]
	return q
}

// retypeWeights replaces a node's weights by ones of datatypes that match the given input datatype.
func (m *mutator) retypeWeights(n *graph.Node, to graph.Datatype) {
	rows := graph.ConvolutionTypes
	if n.Type.Tag == graph.TagFullyConnected {
		rows = graph.FullyConnectedTypes
	}
	in := to
	if m.Graph.Values[n.In[0]].Datatype == graph.QDInt8 {
		in = graph.QDInt8
	}
	var fit []graph.Weighted
	for _, w := range rows {
		if w.In == in && (in != graph.QDInt8 || w.Out == to) {
			fit = append(fit, w)
		}
	}
	if len(fit) == 0 {
		return
	}
	w := one(m.R, fit...)
	m.refit(n, 1, w.Filter, m.Graph.Values[n.In[1]].Shape.Dims()...)
	if n.In[2] != graph.None {
		m.refit(n, 2, w.Bias, m.Graph.Values[n.In[2]].Shape.Dims()...)
	}
}
