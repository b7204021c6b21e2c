package ptetest

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Transformer describes a program with random weights that returns the logits of all tokens, and has
// a key-value cache: forward(tokens [1, S] int64, positions [S] int64) → [1, S, vocabulary] float32.
type Transformer struct {
	Layers, Dim, Heads, Vocabulary, Context int
	Seed                                    uint64
}

// File returns the bytes of the program.
func (c Transformer) File() []byte {
	w := c.writer()
	w.forward()
	return Write(&pte.Program{Methods: []pte.Method{w.m}}, Layout{})
}

// Table returns the bytes of a program whose results are the rows of a table of embeddings: of Context tokens, [1, Context, Dim].
func (c Transformer) Table() []byte {
	w := c.writer()
	tokens := w.tensor(tensor.Int64, true, 1, w.rows)
	w.end("forward", []int{tokens}, w.embedding(1, tokens, w.Vocabulary))
	return Write(&pte.Program{Methods: []pte.Method{w.m}}, Layout{})
}

func (c Transformer) writer() *transformerWriter {
	return &transformerWriter{Transformer: c, rows: c.Context, r: rand.New(rand.NewPCG(c.Seed, 1)), operators: make(map[string]int), m: pte.Method{Arenas: make([]pte.Arena, 3)}}
}

// end completes the method.
func (w *transformerWriter) end(name string, inputs []int, output int) {
	w.m.Name, w.m.Inputs, w.m.Outputs, w.m.Chains = name, inputs, []int{output}, []pte.Chain{w.chain}
}

type transformerWriter struct {
	Transformer
	rows      int  // of a call at most, Context of a language model
	static    bool // all calls have as many
	r         *rand.Rand
	m         pte.Method
	chain     pte.Chain
	operators map[string]int
	at        int   // the arena of the next tensors: 0 reuses no memory, the others in turns that of a layer
	used      int64 // of it
}

func (w *transformerWriter) forward() {
	tokens, positions := w.tensor(tensor.Int64, true, 1, w.rows), w.tensor(tensor.Int64, true, w.rows)
	x, start := w.begin(tokens, positions)
	for range w.Layers {
		x = w.feed(w.sum(x, w.attention(x, start)))
	}
	w.end("forward", []int{tokens, positions}, w.logits(x))
}

// begin returns the vectors of tokens, and the number of the first position.
func (w *transformerWriter) begin(tokens, positions int) (x, start int) {
	first := w.tensor(tensor.Int64, false)
	start = w.value(pte.Value{Kind: tensor.KindInt})
	w.call("aten::select_copy.int_out", positions, w.int(0), w.int(0), first)
	w.call("aten::_local_scalar_dense", first, start)
	return w.sum(w.embedding(1, tokens, w.Vocabulary), w.embedding(0.01, w.view(positions, 1, -1), w.Context)), start // texts repeat themselves
}

// feed adds a hidden layer to x.
func (w *transformerWriter) feed(x int) int {
	hidden := w.tensor(tensor.Float32, true, w.rows, 2*w.Dim)
	w.call("aten::relu.out", w.product(x, w.Dim, 2*w.Dim), hidden)
	return w.sum(x, w.view(w.product(hidden, 2*w.Dim, w.Dim), 1, -1, w.Dim))
}

func (w *transformerWriter) logits(x int) int {
	return w.view(w.product(x, w.Dim, w.Vocabulary), 1, -1, w.Vocabulary)
}

// attention adds attention over the cache for x, [1, S, dim].
func (w *transformerWriter) attention(x, start int) int {
	query := w.split(x)
	var caches [2]int
	for i := range caches {
		caches[i] = w.tensor(tensor.Float32, false, 1, w.Context, w.Heads, w.Dim/w.Heads)
		w.call("llama::update_cache.out", w.split(x), caches[i], start, w.tensor(tensor.Float32, false, 1))
	}
	return w.attend(query, caches[0], caches[1], start)
}

// split projects the rows of x, [1, S, dim], and divides them into heads.
func (w *transformerWriter) split(x int) int {
	return w.view(w.product(x, w.Dim, w.Dim), 1, -1, w.Heads, w.Dim/w.Heads)
}

// attend returns the projected attention of queries over the keys up to their own positions, the first of which is start, or over all with a
// negative start.
func (w *transformerWriter) attend(query, keys, values, start int) int {
	out := w.tensor(tensor.Float32, true, 1, w.rows, w.Heads, w.Dim/w.Heads)
	causal := start >= 0
	if !causal {
		start = w.int(0)
	}
	w.call("llama::custom_sdpa.out", query, keys, values, start, w.value(pte.Value{}), w.value(pte.Value{Kind: tensor.KindDouble}),
		w.value(pte.Value{Kind: tensor.KindBool, Bool: causal}), w.value(pte.Value{}), out)
	return w.view(w.product(out, w.Dim, w.Dim), 1, -1, w.Dim)
}

// embedding looks numbers, [1, S], up in a random table: [1, S, dim].
func (w *transformerWriter) embedding(variance float32, numbers, n int) int {
	return w.lookup(w.weights(variance, n, w.Dim), numbers)
}

func (w *transformerWriter) lookup(table, numbers int) int {
	out, off := w.tensor(tensor.Float32, true, 1, w.rows, w.Dim), w.bool(false)
	w.call("aten::embedding.out", table, numbers, w.int(-1), off, off, out)
	return out
}

// product multiplies the rows of x, of n elements, by random weights: [S, to].
func (w *transformerWriter) product(x, n, to int) int {
	out := w.tensor(tensor.Float32, true, w.rows, to)
	w.call("aten::mm.out", w.view(x, -1, n), w.weights(1/float32(n), n, to), out)
	return out
}

func (w *transformerWriter) sum(a, b int) int {
	out := w.tensor(tensor.Float32, true, 1, w.rows, w.Dim)
	w.call("aten::add.out", a, b, w.int(1), out)
	return out
}

// view gives x other sizes; -1 stands for the number of tokens.
func (w *transformerWriter) view(x int, sizes ...int) int {
	var list []int
	for _, n := range sizes {
		list = append(list, w.int(n))
	}
	most := slices.Clone(sizes)
	most[slices.Index(most, -1)] = w.rows
	out := w.tensor(w.m.Values[x].Tensor.DType, true, most...)
	w.call("executorch_prim::et_view.default", x, w.value(pte.Value{Kind: tensor.KindIntList, Items: list}), out)
	return out
}

// weights adds a constant with a variance.
func (w *transformerWriter) weights(variance float32, sizes ...int) int {
	scale := float32(math.Sqrt(6 * float64(variance)))
	return w.constant(func(int) float32 { return (w.r.Float32() - w.r.Float32()) * scale }, sizes...)
}

// constant adds a constant.
func (w *transformerWriter) constant(at func(i int) float32, sizes ...int) int {
	t := &pte.Tensor{DType: tensor.Float32, Sizes: sizes, DimOrder: tensor.ContiguousOrder(len(sizes)), Storage: pte.Constant}
	data := make([]float32, t.NBytes()/4)
	for i := range data {
		data[i] = at(i)
	}
	t.Data = tensor.BytesOf(data)
	return w.value(pte.Value{Kind: tensor.KindTensor, Tensor: t})
}

// tensor adds a tensor to the arena.
func (w *transformerWriter) tensor(d tensor.DType, dynamic bool, sizes ...int) int {
	t := &pte.Tensor{DType: d, Sizes: sizes, DimOrder: tensor.ContiguousOrder(len(sizes)), Storage: pte.Planned, Arena: w.at, Offset: w.used}
	if dynamic && !w.static {
		t.Dynamism = tensor.DynamicBound
	}
	w.used += (t.NBytes() + 63) / 64 * 64
	w.m.Arenas[w.at].Size = max(w.m.Arenas[w.at].Size, w.used)
	return w.value(pte.Value{Kind: tensor.KindTensor, Tensor: t})
}

func (w *transformerWriter) int(n int) int {
	return w.value(pte.Value{Kind: tensor.KindInt, Int: int64(n)})
}

func (w *transformerWriter) value(v pte.Value) int {
	w.m.Values = append(w.m.Values, v)
	return len(w.m.Values) - 1
}

func (w *transformerWriter) none() int { return w.value(pte.Value{}) }
func (w *transformerWriter) bool(b bool) int {
	return w.value(pte.Value{Kind: tensor.KindBool, Bool: b})
}
func (w *transformerWriter) double(x float64) int {
	return w.value(pte.Value{Kind: tensor.KindDouble, Double: x})
}
func (w *transformerWriter) text(s string) int {
	return w.value(pte.Value{Kind: tensor.KindString, Long: &pte.Long{Str: s}})
}

func (w *transformerWriter) ints(list ...int) int {
	var items []int
	for _, n := range list {
		items = append(items, w.int(n))
	}
	return w.value(pte.Value{Kind: tensor.KindIntList, Items: items})
}

// alias gives x other sizes, as exporters write views of static sizes.
func (w *transformerWriter) alias(x int, sizes ...int) int {
	t := *w.m.Values[x].Tensor
	t.Sizes, t.DimOrder = sizes, tensor.ContiguousOrder(len(sizes))
	return w.value(pte.Value{Kind: tensor.KindTensor, Tensor: &t})
}

func (w *transformerWriter) permuted(x int, order ...int) int {
	var sizes []int
	for _, d := range order {
		sizes = append(sizes, w.m.Values[x].Tensor.Sizes[d])
	}
	out := w.tensor(tensor.Float32, false, sizes...)
	w.call("aten::permute_copy.out", x, w.ints(order...), out)
	return out
}

// joined concatenates values; sizes are those of the result.
func (w *transformerWriter) joined(dim int, list []int, sizes ...int) int {
	out := w.tensor(tensor.Float32, false, sizes...)
	w.call("aten::cat.out", w.value(pte.Value{Kind: tensor.KindTensorList, Items: list}), w.int(dim), out)
	return out
}

// parts splits x along a dimension.
func (w *transformerWriter) parts(x, dim int, lengths ...int) (list []int) {
	for _, n := range lengths {
		sizes := slices.Clone(w.m.Values[x].Tensor.Sizes)
		sizes[dim] = n
		list = append(list, w.tensor(tensor.Float32, false, sizes...))
	}
	outs := w.value(pte.Value{Kind: tensor.KindTensorList, Items: list})
	w.operator("aten::split_with_sizes_copy.out", x, w.ints(lengths...), w.int(dim), outs, outs)
	return list
}

// call adds a call of an operator. For out variants, it repeats the last argument as the result.
func (w *transformerWriter) call(name string, args ...int) {
	if strings.HasSuffix(name, "out") {
		args = append(args, args[len(args)-1])
	}
	w.operator(name, args...)
}

// operator adds a call of an operator with all its arguments.
func (w *transformerWriter) operator(name string, args ...int) {
	at, ok := w.operators[name]
	if !ok {
		at = len(w.m.Operators)
		w.operators[name] = at
		base, overload, _ := strings.Cut(name, ".")
		w.m.Operators = append(w.m.Operators, pte.Operator{Name: base, Overload: overload})
	}
	w.chain.Instructions = append(w.chain.Instructions, pte.Instruction{Kind: pte.KernelCall, Index: at, Args: args})
}
