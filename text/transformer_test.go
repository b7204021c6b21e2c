package text

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// transformer describes a program with random weights that returns the logits of all tokens, and has
// a key-value cache: forward(tokens [1, S] int64, positions [S] int64) → [1, S, vocabulary] float32.
type transformer struct {
	layers, dim, heads, vocabulary, context int
	seed                                    uint64
}

// program writes and opens it.
func (c transformer) program(t testing.TB, options ...etrun.Option) *etrun.Program {
	t.Helper()
	w := &transformerWriter{transformer: c, r: rand.New(rand.NewPCG(c.seed, 1)), operators: make(map[string]int)}
	w.forward()
	p, err := etrun.Parse(ptetest.Write(&pte.Program{Methods: []pte.Method{w.m}}, ptetest.Layout{}), append(options, etrun.WithDelegates(all.Backends()...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

type transformerWriter struct {
	transformer
	r         *rand.Rand
	m         pte.Method
	chain     pte.Chain
	operators map[string]int
}

func (w *transformerWriter) forward() {
	w.m.Name, w.m.Arenas = "forward", []pte.Arena{{}}
	tokens, positions := w.tensor(tensor.Int64, true, 1, w.context), w.tensor(tensor.Int64, true, w.context)
	first, start := w.tensor(tensor.Int64, false), w.value(pte.Value{Kind: tensor.KindInt})
	w.call("aten::select_copy.int_out", positions, w.int(0), w.int(0), first)
	w.call("aten::_local_scalar_dense", first, start)
	x := w.sum(w.embedding(1, tokens, w.vocabulary), w.embedding(0.01, w.view(positions, 1, -1), w.context)) // texts repeat themselves
	for range w.layers {
		x = w.sum(x, w.attention(x, start))
		hidden := w.tensor(tensor.Float32, true, w.context, 2*w.dim)
		w.call("aten::relu.out", w.product(x, w.dim, 2*w.dim), hidden)
		x = w.sum(x, w.view(w.product(hidden, 2*w.dim, w.dim), 1, -1, w.dim))
	}
	w.m.Inputs, w.m.Outputs = []int{tokens, positions}, []int{w.view(w.product(x, w.dim, w.vocabulary), 1, -1, w.vocabulary)}
	w.m.Chains = []pte.Chain{w.chain}
}

// attention adds attention over the cache for x, [1, S, dim].
func (w *transformerWriter) attention(x, start int) int {
	head := w.dim / w.heads
	split := func() int { return w.view(w.product(x, w.dim, w.dim), 1, -1, w.heads, head) }
	query, out := split(), w.tensor(tensor.Float32, true, 1, w.context, w.heads, head)
	var caches [2]int
	for i := range caches {
		caches[i] = w.tensor(tensor.Float32, false, 1, w.context, w.heads, head)
		w.call("llama::update_cache.out", split(), caches[i], start, w.tensor(tensor.Float32, false, 1))
	}
	w.call("llama::custom_sdpa.out", query, caches[0], caches[1], start, w.value(pte.Value{}), w.value(pte.Value{Kind: tensor.KindDouble}),
		w.value(pte.Value{Kind: tensor.KindBool, Bool: true}), w.value(pte.Value{}), out)
	return w.view(w.product(out, w.dim, w.dim), 1, -1, w.dim)
}

// embedding looks numbers, [1, S], up in a random table: [1, S, dim].
func (w *transformerWriter) embedding(variance float32, numbers, n int) int {
	out, off := w.tensor(tensor.Float32, true, 1, w.context, w.dim), w.value(pte.Value{Kind: tensor.KindBool})
	w.call("aten::embedding.out", w.weights(variance, n, w.dim), numbers, w.int(-1), off, off, out)
	return out
}

// product multiplies the rows of x, of n elements, by random weights: [S, to].
func (w *transformerWriter) product(x, n, to int) int {
	out := w.tensor(tensor.Float32, true, w.context, to)
	w.call("aten::mm.out", w.view(x, -1, n), w.weights(1/float32(n), n, to), out)
	return out
}

func (w *transformerWriter) sum(a, b int) int {
	out := w.tensor(tensor.Float32, true, 1, w.context, w.dim)
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
	most[slices.Index(most, -1)] = w.context
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
	if dynamic {
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

// TestFootprint compares the sizes of a program with its description.
func TestFootprint(t *testing.T) {
	c := transformer{layers: 3, dim: 32, heads: 2, vocabulary: 96, context: 48}
	s := newSession(t, c.program(t, etrun.WithLowering(etrun.LowerOff))) // lowering adds packed weights
	got, err := s.Footprint()
	const float = 4
	weights := int64(c.layers*(4+2+2)*c.dim*c.dim+c.dim*c.vocabulary+2*c.dim) * float
	state := int64(c.layers*2*c.context*c.dim) * float
	if got.Weights != weights || got.State != state || got.Memory < state || err != nil {
		t.Errorf("got %+v, %v, want weights of %d and state of %d bytes", got, err, weights, state)
	}
	if _, _, _, err := collect(s.GenerateTokens(t.Context(), []int{1}, Options{MaxTokens: 3, Sampling: Sampling{Temperature: 1, TopP: 0.5}})); err != nil {
		t.Fatal(err)
	}
	if used, err := s.Footprint(); used.Memory <= got.Memory || err != nil {
		t.Errorf("after a text: %+v, %v, want more memory than %d", used, err, got.Memory)
	}
	dynamic, err := newSession(t, openProgram(t, "testdata/dynamic.pte")).Footprint() // 120,320 bytes, mostly weights
	if dynamic.Weights < 30_000 || dynamic.Weights > 120_000 || dynamic.State == 0 || err != nil {
		t.Errorf("dynamic.pte: got %+v, %v", dynamic, err)
	}
}
