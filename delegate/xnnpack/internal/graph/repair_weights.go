package graph

import (
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// If a module is called twice, the payload has one bias, with the scale or the datatype for the
// first call, and its filter may be quantized in some calls only. XNNPACK uses the scale of the
// sums for a bias, whatever the payload declares, so a further call computes wrong numbers. The
// elements were quantized with the declared scale. The repair relies on that scale if it is that of
// the sums of another node with the same bias.

// sameScale is the largest relative difference of two scales that count as equal: both are products
// of float32 numbers.
const sameScale = 1e-6

// weightRepairer replaces constants of nodes with weights by ones that fit each other.
type weightRepairer struct {
	*Reader
	proven  map[int]bool // biases whose declared scale is that of a node's sums
	floats  map[int]int  // constant to its copy in float32
	rescale map[rescaled]int
	nodes   []Node
}

// rescaled identifies a bias in the scale of the sums of an input and a filter.
type rescaled struct {
	bias, filter int
	in           float32
}

// repairWeights repairs the constants of all nodes with weights, and checks these nodes.
func (r *Reader) repairWeights() error {
	g := r.graph
	if !g.MayRepair || !slices.ContainsFunc(g.Nodes, func(n Node) bool { return n.Type.Weighted() }) {
		return nil
	}
	m := &weightRepairer{Reader: r, proven: make(map[int]bool), floats: make(map[int]int), rescale: make(map[rescaled]int)}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Type.Weighted() && m.inScale(n) {
			m.proven[n.In[2]] = true
		}
	}
	m.nodes = make([]Node, 0, len(g.Nodes))
	for _, n := range g.Nodes {
		if err := m.add(n); err != nil {
			return InPayload(err)
		}
	}
	g.Nodes = m.nodes
	return nil
}

// add adds a repaired node, and conversions if it needs any.
func (m *weightRepairer) add(n Node) error {
	if !n.Type.Weighted() {
		m.nodes = append(m.nodes, n)
		return nil
	}
	at := len(m.nodes)
	after, err := m.repair(&n)
	if err != nil {
		return err
	}
	m.nodes = append(append(m.nodes, n), after...)
	for i := at; i < len(m.nodes); i++ {
		if err := m.nodes[i].Type.Check(m.graph, &m.nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

// repair replaces unsupported operands of a node. It returns nodes that must follow it.
func (m *weightRepairer) repair(n *Node) (after []Node, err error) {
	in, filter, bias := m.operands(n)
	if !filter.IsConst() || bias != nil && !bias.IsConst() {
		return nil, nil
	}
	static := in.Datatype.isStatic() && filter.Datatype.isStatic() && m.graph.Values[n.Out[0]].Datatype.isStatic()
	switch {
	case static && bias == nil:
		return nil, nil
	case static && bias.Datatype == FP32:
		return nil, m.setBias(n, "quantized in the scale of its sums")
	case static:
		if bias.Datatype.isSum() && m.proven[n.In[2]] && !m.inScale(n) {
			err = m.setBias(n, "rescaled from that of another call to the scale of its sums")
		}
		return nil, err
	}
	wasIn, wasOut := n.In, n.Out
	after, err = m.toFloat(n)
	m.graph.mixed = m.graph.mixed || !slices.Equal(wasIn, n.In) || !slices.Equal(wasOut, n.Out)
	return after, err
}

// operands returns the input, filter and bias of a node; bias is nil if there is none.
func (m *weightRepairer) operands(n *Node) (in, filter, bias *Value) {
	values := m.graph.Values
	if n.In[2] != None {
		bias = &values[n.In[2]]
	}
	return &values[n.In[0]], &values[n.In[1]], bias
}

// isStatic reports whether d is an 8-bit type whose scales are in the payload.
func (d Datatype) isStatic() bool { return d == QInt8 || d == QUInt8 || d == QCInt8 }

// isSum reports whether d is a type of biases in the scale of sums.
func (d Datatype) isSum() bool { return d == QInt32 || d == QCInt32 }

// Scale returns the scale of channel c of a value with scales per tensor or per channel.
func (v *Value) Scale(c int) float64 {
	if v.Datatype.Info().Quant == PerChannel {
		return float64(v.Quant.Scales[c])
	}
	return float64(v.Quant.Scale)
}

// channels returns the number of channels that a value has scales for, n if it has one scale for
// all.
func (v *Value) channels(n int) int {
	if v.Datatype.Info().Quant == PerChannel {
		return len(v.Quant.Scales)
	}
	return n
}

// inScale reports whether a node with static operands has a bias that declares the scale of its
// sums.
func (m *weightRepairer) inScale(n *Node) bool {
	in, filter, bias := m.operands(n)
	if bias == nil || !bias.IsConst() || !bias.Datatype.isSum() || !in.Datatype.isStatic() || !filter.Datatype.isStatic() {
		return false
	}
	count := bias.Shape.Numel()
	if in.channels(1) != 1 || filter.channels(count) != count || bias.channels(count) != count {
		return false
	}
	for c := range count {
		if want := in.Scale(0) * filter.Scale(c); math.Abs(bias.Scale(c)-want) > sameScale*want {
			return false
		}
	}
	return true
}

// setBias replaces the bias of a node with static operands by one in the scale of its sums.
func (m *weightRepairer) setBias(n *Node, how string) error {
	in, filter, bias := m.operands(n)
	key := rescaled{n.In[2], n.In[1], in.Quant.Scale}
	made, ok := m.rescale[key]
	if !ok {
		count := bias.Shape.Numel()
		if in.channels(1) != 1 || filter.channels(count) != count || bias.channels(count) != count {
			return n.fault("bias %s with a filter of %d channels", m.graph.Describe(n.In[2]), filter.channels(count))
		}
		if err := m.Table.ask(4*count, n.Location()); err != nil {
			return err
		}
		v := Value{ID: bias.ID, Datatype: QInt32, Shape: ShapeOf(count), Arg: None, Data: tensor.AlignedBytes(4 * count)}
		if filter.Datatype == QCInt8 {
			v.Datatype, v.Quant.Scales = QCInt32, make([]float32, count)
		}
		if err := fillSums(&v, in, filter, bias); err != nil {
			return n.unsupported("bias %s: %w", m.graph.Describe(n.In[2]), err)
		}
		made = m.addValue(v)
		m.rescale[key] = made
	}
	m.note(n, "bias value %d %s", bias.ID, how)
	n.In = []int{n.In[0], n.In[1], made}
	return nil
}

// fillSums sets elements and scales of v, the bias in the scale of the sums of in and filter.
func fillSums(v, in, filter, bias *Value) error {
	to := tensor.View[int32](v.Data)
	v.Quant.Scale = float32(in.Scale(0) * filter.Scale(0))
	for c := range to {
		scale := in.Scale(0) * filter.Scale(c)
		if v.Quant.Scales != nil {
			v.Quant.Scales[c] = float32(scale)
		}
		x := math.RoundToEven(bias.number(c) / scale)
		if !(math.Abs(x) <= math.MaxInt32) {
			return fmt.Errorf("element %d, %v, is too large for the scale %v of the sums", c, bias.number(c), scale)
		}
		to[c] = int32(x)
	}
	return v.check()
}

// number returns the number that element c of a constant bias represents.
func (v *Value) number(c int) float64 {
	if v.Datatype == FP32 {
		return float64(tensor.View[float32](v.Data)[c])
	}
	return v.Scale(c) * float64(tensor.View[int32](v.Data)[c])
}

// toFloat converts a node with static and float operands to float32: their numbers are known, but
// do not have one scale.
func (m *weightRepairer) toFloat(n *Node) (after []Node, err error) {
	in, filter, bias := m.operands(n)
	out := &m.graph.Values[n.Out[0]]
	dynamic := in.Datatype == QDInt8
	if bias != nil && bias.Datatype.isSum() {
		if !m.proven[n.In[2]] {
			return nil, n.unsupported("input %v, filter %v, bias %v, output %v: no node has sums in the bias's scale, which may be wrong",
				in.Datatype, filter.Datatype, bias.Datatype, out.Datatype)
		}
		if err := m.setFloat(n, 2, "bias"); err != nil {
			return nil, err
		}
	}
	taken := n.Type.Tag == TagFullyConnected && in.Datatype == FP32 && out.Datatype == FP32
	if filter.Datatype.isStatic() && !dynamic && !taken {
		if err := m.setFloat(n, 1, "filter"); err != nil {
			return nil, err
		}
	}
	if m.graph.Values[n.In[1]].Datatype != FP32 {
		return nil, nil
	}
	if in.Datatype.isStatic() {
		m.note(n, "input dequantized")
		m.nodes = append(m.nodes, conversion(n, n.In[0], m.floatLike(n.In[0])))
		n.In = append([]int{m.nodes[len(m.nodes)-1].Out[0]}, n.In[1:]...)
	}
	if out.Datatype.isStatic() {
		m.note(n, "output quantized behind it")
		y := m.floatLike(n.Out[0])
		after = append(after, conversion(n, y, n.Out[0]))
		n.Out = []int{y}
	}
	return after, nil
}

// setFloat replaces a constant operand by its copy in float32.
func (m *weightRepairer) setFloat(n *Node, operand int, name string) error {
	v := n.In[operand]
	made, ok := m.floats[v]
	if !ok {
		x := m.graph.Values[v]
		if err := m.Table.ask(4*x.Shape.Numel(), n.Location()); err != nil {
			return err
		}
		x.Data, x.Datatype, x.Quant = x.Dequantized(), FP32, Quant{}
		made = m.addValue(x)
		m.floats[v] = made
	}
	m.note(n, "%s value %d dequantized", name, m.graph.Values[v].ID)
	n.In = append([]int(nil), n.In...)
	n.In[operand] = made
	return nil
}

// Dequantized returns the float32 numbers of a constant with static scales.
func (v *Value) Dequantized() []byte {
	data := tensor.AlignedBytes(4 * v.Shape.Numel())
	inner, channels := 1, 1
	if v.Datatype.Info().Quant == PerChannel {
		channels = len(v.Quant.Scales)
		for _, d := range v.Shape.Dims()[v.Quant.ChannelDim+1:] {
			inner *= d
		}
	}
	for i := range tensor.View[float32](data) {
		tensor.View[float32](data)[i] = float32(v.Scale(i/inner%channels)) * float32(v.element(i)-int64(v.Quant.ZeroPoint))
	}
	return data
}

// element returns element i of an integer constant.
func (v *Value) element(i int) int64 {
	switch v.Datatype {
	case QInt32, QCInt32:
		return int64(tensor.View[int32](v.Data)[i])
	case QUInt8:
		return int64(v.Data[i])
	}
	return int64(int8(v.Data[i]))
}

func (m *weightRepairer) addValue(v Value) int {
	m.graph.Values = append(m.graph.Values, v)
	return len(m.graph.Values) - 1
}

// floatLike adds a float32 value with the shape of v and returns its index.
func (m *weightRepairer) floatLike(v int) int {
	x := &m.graph.Values[v]
	return m.addValue(Value{ID: x.ID, Datatype: FP32, Shape: x.Shape, Arg: None})
}

// conversion returns a node that converts value from to value to, with the index of n.
func conversion(n *Node, from, to int) Node {
	return Node{Type: NodeTypes[TagConvert], In: []int{from}, Out: []int{to}, Min: -Inf, Max: Inf, Index: n.Index, DebugHandle: n.DebugHandle}
}

func (m *weightRepairer) note(n *Node, format string, args ...any) {
	m.graph.note(n.Location(), format, args...)
}
