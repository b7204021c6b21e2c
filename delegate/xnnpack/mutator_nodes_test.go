package xnnpack

import (
	"reflect"
	"slices"
)

// families are groups of node types that can replace each other.
var families = [][]string{
	{"Sigmoid", "Clamp", "Floor", "SquareRoot", "Ceiling", "Hardswish", "LeakyReLU", "Negate", "Square", "ELU", "Abs",
		"ReciprocalSquareRoot", "Log", "Gelu", "Tanh", "Exp", "Sin", "Cos", "Softmax", "Copy", "Convert", "GlobalAvgPooling2d"},
	{"Add", "Div", "Minimum", "Multiply", "Subtract", "Maximum", "PReLU"},
	{"Conv2d", "ConvTranspose2d", "DepthwiseConv2d"},
	{"AvgPooling2d", "MaxPooling2d"},
}

func typeNamed(name string) *nodeType {
	for _, t := range nodeTypes {
		if t != nil && t.name == name {
			return t
		}
	}
	panic("no node type " + name)
}

// changeType changes a node's type to another of the same group.
func (m *mutator) changeType() {
	n := m.someNode()
	for _, list := range families {
		if slices.Contains(list, n.Type.name) {
			if n.Type = typeNamed(one(m.r, list...)); n.Type.params == nil || reflect.TypeOf(n.Type.params()) != reflect.TypeOf(n.Params) {
				resetParams(n.Type, n)
			}
			return
		}
	}
}

// between inserts a node that reads value v. All or some of v's readers read the new node's output
// instead. It returns the new node, or nil if v is a constant, dynamically quantized or an index.
func (m *mutator) between(name string, v int) *node {
	at := -1
	for i := range m.g.Nodes {
		if slices.Contains(m.g.Nodes[i].Out, v) {
			at = i
		}
	}
	x := m.g.Values[v]
	if x.isConst() || x.Datatype == qdint8 || x.Datatype == plainInt32 {
		return nil
	}
	y := x
	y.ID, y.Arg, y.Input, y.Output = encodedID(len(m.g.Values)), none, false, false
	fresh := len(m.g.Values)
	m.g.Values = append(m.g.Values, y)
	all := m.r.IntN(4) > 0
	for i := at + 1; i < len(m.g.Nodes); i++ {
		for j, in := range m.g.Nodes[i].In {
			if in == v && (all || m.r.IntN(2) == 0) {
				m.g.Nodes[i].In[j] = fresh
			}
		}
	}
	if x.Output && all {
		m.g.Values[fresh].Output = true
		m.g.Values[v].Output = m.r.IntN(4) == 0
	}
	n := node{Type: typeNamed(name), In: []int{v}, Out: []int{fresh}, Min: -inf, Max: inf}
	n.Type.setParams(&n)
	m.g.Nodes = slices.Insert(m.g.Nodes, at+1, n)
	return &m.g.Nodes[at+1]
}

// insertClamp inserts a clamp after a value, with the same or another quantization.
func (m *mutator) insertClamp() {
	n := m.between("Clamp", m.r.IntN(len(m.g.Values)))
	if n == nil {
		return
	}
	out := &m.g.Values[n.Out[0]]
	if m.r.IntN(2) == 0 {
		out.Quant.Scale = m.scale(out.Quant.Scale)
		if d := out.Datatype.info(); m.r.IntN(2) == 0 && d.maxZero > d.minZero {
			out.Quant.ZeroPoint = d.minZero + m.r.Int32N(d.maxZero-d.minZero+1)
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
	rank := m.g.Values[v].Shape.rank
	p := params[padParams](pad)
	p.before, p.after = make([]int, rank), make([]int, rank)
	for i := range rank {
		if (i == 1 || i == 2) == (m.r.IntN(8) > 0) {
			p.before[i], p.after[i] = m.r.IntN(4), m.r.IntN(4)
		}
	}
	if m.r.IntN(4) == 0 {
		p.value = m.number32(&m.g.Values[v])
	}
}

func (m *mutator) insertCopy() {
	if n := m.between(one(m.r, "Copy", "Copy", "StaticReshape"), m.r.IntN(len(m.g.Values))); n != nil && n.Type.name == "StaticReshape" {
		params[reshapeParams](n).sizes = slices.Clone(m.g.Values[n.In[0]].Shape.dims())
	}
}

// changeReader makes a node read another value of the same datatype and sizes.
func (m *mutator) changeReader() {
	i := m.r.IntN(len(m.g.Nodes))
	n := &m.g.Nodes[i]
	j := m.r.IntN(len(n.In))
	if n.In[j] == none {
		return
	}
	x := m.g.Values[n.In[j]]
	for range 10 {
		v := m.r.IntN(len(m.g.Values))
		y := &m.g.Values[v]
		if y.Datatype == x.Datatype && y.Shape == x.Shape && y.isConst() == x.isConst() && m.known(v, i) {
			n.In[j] = v
			return
		}
	}
}

// known reports whether value v is defined before node i.
func (m *mutator) known(v, i int) bool {
	if x := &m.g.Values[v]; x.Input || x.isConst() {
		return true
	}
	for k := range m.g.Nodes[:i] {
		if slices.Contains(m.g.Nodes[k].Out, v) {
			return true
		}
	}
	return false
}

// changeOutput makes an intermediate value an output, or an output an intermediate value.
func (m *mutator) changeOutput() {
	n := m.someNode()
	if v := &m.g.Values[n.Out[m.r.IntN(len(n.Out))]]; v.Datatype != qdint8 {
		v.Output = !v.Output
	}
}

// growNode adds a random node that reads one of the values, as in randomGraph.
func (m *mutator) growNode() {
	c := &chain{maker: m.maker}
	for v := range m.g.Values {
		x := &m.g.Values[v]
		if !x.isConst() && x.Datatype != qdint8 && x.Datatype != plainInt32 && x.Shape.rank > 0 && x.Shape.check() == nil &&
			m.known(v, len(m.g.Nodes)) && x.Shape.numel() < 1<<12 {
			c.ready = append(c.ready, v)
		}
	}
	if len(c.ready) == 0 {
		return
	}
	from := len(c.ready)
	c.grow()
	for _, v := range c.ready[from:] {
		m.g.Values[v].Output = true
	}
}

// removeNode removes a node; the readers of its output read its input.
func (m *mutator) removeNode() {
	i := m.r.IntN(len(m.g.Nodes))
	bypass(m.g, i)
}

// bypass removes node i; the readers of its outputs read its first input.
func bypass(g *graph, i int) {
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
		if g.Values[v].Output && !g.Values[n.In[0]].Input && !g.Values[n.In[0]].isConst() && g.Values[n.In[0]].Datatype != qdint8 {
			g.Values[n.In[0]].Output = true
		}
		g.Values[v].Output = false
	}
}

// retype changes the datatype of all values of a graph, including weights.
func (m *mutator) retype() {
	to := one(m.r, fp32, fp16, qint8, quint8, bf16)
	weights := make(map[int]bool)
	for i := range m.g.Nodes {
		n := &m.g.Nodes[i]
		if takesWeights(n) {
			m.retypeWeights(n, to)
			weights[n.In[1]] = true
			if n.In[2] != none {
				weights[n.In[2]] = true
			}
		}
	}
	for v := range m.g.Values {
		x := &m.g.Values[v]
		if weights[v] || !slices.Contains(elementwiseTypes, x.Datatype) || x.Datatype == to || len(x.Data) > 1<<20 {
			continue
		}
		x.Datatype = to
		if q := m.plausible(to); x.Quant.Scale == 0 {
			x.Quant = q
		} else if info := to.info(); info.quant == perTensor {
			x.Quant.ZeroPoint = min(max(x.Quant.ZeroPoint, info.minZero), info.maxZero)
		}
		if x.isConst() {
			x.Data = m.bytes(to, x.Shape)
		}
	}
}

func takesWeights(n *node) bool {
	return len(n.In) == 3 && (n.Type.convolution || n.Type.tag == tagFullyConnected)
}

// plausible returns a typical quantization of a datatype.
func (m *mutator) plausible(d datatype) (q quant) {
	v := m.value(d, 1)
	q = m.g.Values[v].Quant
	m.g.Values = m.g.Values[:v]
	return q
}

// retypeWeights replaces a node's weights by ones of datatypes that match the given input datatype.
func (m *mutator) retypeWeights(n *node, to datatype) {
	rows := convolutionTypes
	if n.Type.tag == tagFullyConnected {
		rows = fullyConnectedTypes
	}
	in := to
	if m.g.Values[n.In[0]].Datatype == qdint8 {
		in = qdint8
	}
	var fit []weighted
	for _, w := range rows {
		if w.in == in && (in != qdint8 || w.out == to) {
			fit = append(fit, w)
		}
	}
	if len(fit) == 0 {
		return
	}
	w := one(m.r, fit...)
	m.refit(n, 1, w.filter, m.g.Values[n.In[1]].Shape.dims()...)
	if n.In[2] != none {
		m.refit(n, 2, w.bias, m.g.Values[n.In[2]].Shape.dims()...)
	}
}
