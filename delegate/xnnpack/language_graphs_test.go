package xnnpack

import (
	"math"
	"strings"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// normalized adds x / √(mean square + ε) times weights, dynamically quantized by row.
func (w *languageWriter) normalized(m *graphtest.Maker, x, meanSquare int) int {
	sum, root := m.Value(graph.FP32, 1, w.tokens, 1), m.Value(graph.FP32, 1, w.tokens, 1)
	scaled, y := m.Value(graph.FP32, 1, w.tokens, w.dim), m.Value(graph.FP32, 1, w.tokens, w.dim)
	m.Node("Add", []int{meanSquare, filled(m, 1e-5, 1)}, []int{sum})
	m.Node("ReciprocalSquareRoot", []int{sum}, []int{root})
	m.Node("Multiply", []int{x, root}, []int{scaled})
	m.Node("Multiply", []int{scaled, filled(m, 1, w.dim)}, []int{y})
	return m.Quantized(y, 1)
}

// linear adds a product with a random filter.
func (w *languageWriter) linear(m *graphtest.Maker, x, out int) int {
	in := m.Graph.Values[x].Shape
	dims := append(append([]int(nil), in.Dims()[:in.Rank-1]...), out)
	y := m.Value(graph.FP32, dims...)
	m.Node("FullyConnected", []int{x, m.Constant(graph.QBInt4, 0, out, in.Last()), graph.None}, []int{y})
	return y
}

// projections returns the graph of products of the normalized x.
func (w *languageWriter) projections(m *graphtest.Maker, sizes ...int) *graph.Graph {
	x, mean := m.Input(graph.FP32, 1, w.tokens, w.dim), m.Input(graph.FP32, 1, w.tokens, 1)
	q := w.normalized(m, x, mean)
	var outs []int
	for _, n := range sizes {
		outs = append(outs, w.linear(m, q, n))
	}
	return m.Done(outs...)
}

// residual returns the graph that adds the product of the attention's output to x.
func (w *languageWriter) residual(m *graphtest.Maker) *graph.Graph {
	a, x := m.Input(graph.FP32, 1, w.tokens, w.heads*w.head), m.Input(graph.FP32, 1, w.tokens, w.dim)
	u, y := w.linear(m, m.Quantized(a, 1), w.dim), m.Value(graph.FP32, 1, w.tokens, w.dim)
	m.Node("Add", []int{u, x}, []int{y})
	return m.Done(y)
}

// feedForward returns the graph of x + down(silu(gate) · up).
func (w *languageWriter) feedForward(m *graphtest.Maker) *graph.Graph {
	x, mean := m.Input(graph.FP32, 1, w.tokens, w.dim), m.Input(graph.FP32, 1, w.tokens, 1)
	q := w.normalized(m, x, mean)
	gate, up := w.linear(m, q, w.hidden), w.linear(m, q, w.hidden)
	s, g, p := m.Value(graph.FP32, 1, w.tokens, w.hidden), m.Value(graph.FP32, 1, w.tokens, w.hidden), m.Value(graph.FP32, 1, w.tokens, w.hidden)
	m.Node("Sigmoid", []int{gate}, []int{s})
	m.Node("Multiply", []int{gate, s}, []int{g})
	m.Node("Multiply", []int{g, up}, []int{p})
	down, y := w.linear(m, m.Quantized(p, 1), w.dim), m.Value(graph.FP32, 1, w.tokens, w.dim)
	m.Node("Add", []int{down, x}, []int{y})
	return m.Done(y)
}

// delegate adds a call of a payload with the graph that build returns.
func (w *languageWriter) delegate(build func(m *graphtest.Maker) *graph.Graph, inputs, outputs []int) {
	m := graphtest.NewMaker(uint64(len(w.m.Delegates)))
	m.Lo, m.Hi = -0.5, 0.5
	w.m.Delegates = append(w.m.Delegates, pte.Delegate{ID: ID, Data: graphtest.Encode(build(m))})
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

func (w *languageWriter) none() int { return w.value(pte.Value{}) }
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
		for i := range len(t.Data) / 4 {
			tensor.View[float32](t.Data)[i] = float32(math.Ldexp(1, -4))
		}
		return v
	}
	for i := range t.Data {
		t.Data[i] = byte(w.r.Uint32())
	}
	return v
}

// filled adds a constant of n equal elements.
func filled(m *graphtest.Maker, x float32, n int) int {
	lo, hi := m.Lo, m.Hi
	m.Lo, m.Hi = x, x
	v := m.Constant(graph.FP32, 0, n)
	m.Lo, m.Hi = lo, hi
	return v
}
