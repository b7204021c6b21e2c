package xnnpack

import (
	"strings"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// norm adds v[0] / √(v[1] + ε) times weights; v[1] is the mean square.
func norm(m *graphtest.Maker, v []int) int {
	sum := binary(m, "Add", v[1], filled(m, 1e-5, 1))
	root := m.Value(graph.FP32, m.Graph.Values[sum].Shape.Dims()...)
	m.Node("ReciprocalSquareRoot", []int{sum}, []int{root})
	return binary(m, "Multiply", binary(m, "Multiply", v[0], root), filled(m, 1, m.Graph.Values[v[0]].Shape.Last()))
}

// binary adds a node of two operands, of which b has the shape of a or broadcasts to it.
func binary(m *graphtest.Maker, name string, a, b int) int {
	y := m.Value(graph.FP32, m.Graph.Values[a].Shape.Dims()...)
	m.Node(name, []int{a, b}, []int{y})
	return y
}

// linear adds a product with a random filter.
func linear(m *graphtest.Maker, x, out int) int {
	in := m.Graph.Values[x].Shape
	dims := append(append([]int(nil), in.Dims()[:in.Rank-1]...), out)
	y := m.Value(graph.FP32, dims...)
	m.Node("FullyConnected", []int{x, m.Constant(graph.QBInt4, 0, out, in.Last()), graph.None}, []int{y})
	return y
}

// product returns the graph of a product of quantized rows.
func (w *languageWriter) product(sizes ...int) languageGraph {
	return func(m *graphtest.Maker, v []int) (outs []int) {
		q := m.Quantized(v[0], 1)
		for _, n := range sizes {
			outs = append(outs, linear(m, q, n))
		}
		return outs
	}
}

// projections are the products of a normalized vector.
func (w *languageWriter) projections(m *graphtest.Maker, v []int) []int {
	return w.product(w.heads*w.head, w.kvHeads*w.head, w.kvHeads*w.head)(m, []int{norm(m, v)})
}

// gates are the products of a normalized vector in a feed-forward network.
func (w *languageWriter) gates(m *graphtest.Maker, v []int) []int {
	return w.product(w.hidden, w.hidden)(m, []int{norm(m, v)})
}

// projected is the product of the attention's output.
func (w *languageWriter) projected(m *graphtest.Maker, v []int) int {
	return linear(m, m.Quantized(v[0], 1), w.dim)
}

// residual adds the product of the attention's output to x.
func (w *languageWriter) residual(m *graphtest.Maker, v []int) int {
	return binary(m, "Add", w.projected(m, v), v[1])
}

// down is the product of the gated vectors.
func (w *languageWriter) down(m *graphtest.Maker, v []int) int {
	return linear(m, m.Quantized(binary(m, "Multiply", v[0], v[1]), 1), w.dim)
}

// feedForward adds down(silu(gate) · up) to x.
func (w *languageWriter) feedForward(m *graphtest.Maker, v []int) int {
	gates := w.gates(m, v)
	active := binary(m, "Multiply", gates[0], m.Sigmoid(gates[0]))
	return binary(m, "Add", w.down(m, []int{active, gates[1]}), v[0])
}

// languageGraph adds the nodes of a graph of inputs, and returns its outputs.
type languageGraph func(m *graphtest.Maker, v []int) []int

// graph adds a call of a payload with one result, of the sizes of the first input but for the last, n.
func (w *languageWriter) graph(n int, build func(m *graphtest.Maker, v []int) int, inputs ...int) int {
	out := w.like(inputs[0], n)
	w.delegate(func(m *graphtest.Maker, v []int) []int { return []int{build(m, v)} }, inputs, []int{out})
	return out
}

// delegate adds a call of a payload with the graph that build makes.
func (w *languageWriter) delegate(build languageGraph, inputs, outputs []int) {
	m := graphtest.NewMaker(uint64(len(w.m.Delegates)))
	m.Lo, m.Hi = -0.5, 0.5
	var v []int
	for _, x := range inputs {
		v = append(v, m.Input(graph.FP32, w.m.Values[x].Tensor.Sizes...))
	}
	w.m.Delegates = append(w.m.Delegates, pte.Delegate{ID: ID, Data: graphtest.Encode(m.Done(build(m, v)...))})
	w.chain.Instructions = append(w.chain.Instructions, pte.Instruction{Kind: pte.DelegateCall,
		Index: len(w.m.Delegates) - 1, Args: append(append([]int(nil), inputs...), outputs...)})
}

// call adds a call of an operator. For out variants, it repeats the last argument as the result.
func (w *languageWriter) call(name string, args ...int) {
	at, ok := w.names[name]
	if !ok {
		at = len(w.m.Operators)
		w.names[name] = at
		base, overload, _ := strings.Cut(name, ".")
		w.m.Operators = append(w.m.Operators, pte.Operator{Name: base, Overload: overload})
	}
	if strings.HasSuffix(name, "out") {
		args = append(args, args[len(args)-1])
	}
	w.chain.Instructions = append(w.chain.Instructions, pte.Instruction{Kind: pte.KernelCall, Index: at, Args: args})
}

func (w *languageWriter) value(v pte.Value) int {
	w.m.Values = append(w.m.Values, v)
	return len(w.m.Values) - 1
}

func (w *languageWriter) none() int       { return w.value(pte.Value{}) }
func (w *languageWriter) bool(b bool) int { return w.value(pte.Value{Kind: tensor.KindBool, Bool: b}) }
func (w *languageWriter) int(n int) int {
	return w.value(pte.Value{Kind: tensor.KindInt, Int: int64(n)})
}

func (w *languageWriter) ints(list ...int) int {
	var items []int
	for _, n := range list {
		items = append(items, w.int(n))
	}
	return w.value(pte.Value{Kind: tensor.KindIntList, Items: items})
}

// tensor adds a tensor in the arena of the layer. Its sizes are upper bounds if dynamic is set.
func (w *languageWriter) tensor(d tensor.DType, dynamic bool, sizes ...int) int {
	v := w.shaped(d, sizes...)
	t := w.m.Values[v].Tensor
	if t.Storage, t.Arena, t.Offset = pte.Planned, w.at, w.used; dynamic {
		t.Dynamism = tensor.DynamicBound
	}
	w.used += (t.NBytes() + 63) &^ 63
	w.m.Arenas[w.at].Size = max(w.m.Arenas[w.at].Size, w.used)
	return v
}

// shaped adds a tensor without memory.
func (w *languageWriter) shaped(d tensor.DType, sizes ...int) int {
	t := &pte.Tensor{DType: d, Sizes: sizes, DimOrder: tensor.ContiguousOrder(len(sizes))}
	return w.value(pte.Value{Kind: tensor.KindTensor, Tensor: t})
}

// constant adds a constant of random bytes, or of float scales.
func (w *languageWriter) constant(d tensor.DType, sizes ...int) int {
	v := w.shaped(d, sizes...)
	t := w.m.Values[v].Tensor
	t.Storage, t.Data = pte.Constant, make([]byte, t.NBytes())
	if d == tensor.Float32 {
		w.fill(v, func(int) float64 { return 1. / 16 })
		return v
	}
	for i := range t.Data {
		t.Data[i] = byte(w.r.Uint32())
	}
	return v
}

// fill sets the elements of a constant of floats.
func (w *languageWriter) fill(v int, at func(i int) float64) {
	for i, data := 0, tensor.View[float32](w.m.Values[v].Tensor.Data); i < len(data); i++ {
		data[i] = float32(at(i))
	}
}

// filled adds a constant of n equal elements.
func filled(m *graphtest.Maker, x float32, n int) int {
	lo, hi := m.Lo, m.Hi
	m.Lo, m.Hi = x, x
	v := m.Constant(graph.FP32, 0, n)
	m.Lo, m.Hi = lo, hi
	return v
}
