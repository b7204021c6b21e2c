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
	return &transformerWriter{Transformer: c, rows: c.Context, r: rand.New(rand.NewPCG(c.Seed, 1)), operators: make(map[string]int), m: pte.Method{Arenas: []pte.Arena{{}}}}
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
	out, off := w.tensor(tensor.Float32, true, 1, w.rows, w.Dim), w.value(pte.Value{Kind: tensor.KindBool})
	w.call("aten::embedding.out", w.weights(variance, n, w.Dim), numbers, w.int(-1), off, off, out)
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
func (w *transformerWriter) weights(variance float32, rows, columns int) int {
	data, scale := make([]float32, rows*columns), float32(math.Sqrt(6*float64(variance)))
	for i := range data {
		data[i] = (w.r.Float32() - w.r.Float32()) * scale
	}
	return w.value(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: []int{rows, columns},
		DimOrder: tensor.ContiguousOrder(2), Storage: pte.Constant, Data: tensor.BytesOf(data)}})
}

// tensor adds a tensor in an arena that reuses no memory.
func (w *transformerWriter) tensor(d tensor.DType, dynamic bool, sizes ...int) int {
	t := &pte.Tensor{DType: d, Sizes: sizes, DimOrder: tensor.ContiguousOrder(len(sizes)), Storage: pte.Planned, Offset: w.m.Arenas[0].Size}
	if dynamic && !w.static {
		t.Dynamism = tensor.DynamicBound
	}
	w.m.Arenas[0].Size += (t.NBytes() + 63) / 64 * 64
	return w.value(pte.Value{Kind: tensor.KindTensor, Tensor: t})
}

func (w *transformerWriter) int(n int) int {
	return w.value(pte.Value{Kind: tensor.KindInt, Int: int64(n)})
}

func (w *transformerWriter) value(v pte.Value) int {
	w.m.Values = append(w.m.Values, v)
	return len(w.m.Values) - 1
}

// call adds a call of an operator. For out variants, it repeats the last argument as the result.
func (w *transformerWriter) call(name string, args ...int) {
	at, ok := w.operators[name]
	if !ok {
		at = len(w.m.Operators)
		w.operators[name] = at
		base, overload, _ := strings.Cut(name, ".")
		w.m.Operators = append(w.m.Operators, pte.Operator{Name: base, Overload: overload})
	}
	if strings.HasSuffix(name, "out") {
		args = append(args, args[len(args)-1])
	}
	w.chain.Instructions = append(w.chain.Instructions, pte.Instruction{Kind: pte.KernelCall, Index: at, Args: args})
}
