package xnnpack

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// languageModel describes a decoder like SmolLM: 4-bit weights in groups of 32, dynamically quantized
// rows, key and value caches.
type languageModel struct {
	layers, dim, hidden, heads, kvHeads, head, vocabulary, tokens int
	bytes                                                         bool // the embeddings have 8 bits instead of 4
}

// The large model has about 90 MB and as many instructions per layer as an exported one.
var (
	smallLanguageModel = languageModel{layers: 2, dim: 64, hidden: 96, heads: 4, kvHeads: 2, head: 16, vocabulary: 96, tokens: 32}
	largeLanguageModel = languageModel{layers: 30, dim: 576, hidden: 1536, heads: 9, kvHeads: 3, head: 64, vocabulary: 49152, tokens: 512}
)

// realLanguageModels have the sizes of models that people run, by name: layers, vectors, heads, vocabularies, positions. Their norms of
// queries and keys, windows and activation functions are not there. The table of embeddings has 8 bits, and the last product 4, as
// exporters write models in which the two are one.
var realLanguageModels = map[string]languageModel{
	"Qwen2.5-0.5B": {24, 896, 4864, 14, 2, 64, 151936, 4096, true},
	"Qwen3-0.6B":   {28, 1024, 3072, 16, 8, 128, 151936, 8192, true},
	"Qwen3-1.7B":   {28, 2048, 6144, 16, 8, 128, 151936, 8192, true},
	"Llama-3.2-1B": {16, 2048, 8192, 32, 8, 64, 128256, 8192, true},
	"Gemma-3-1B":   {26, 1152, 6912, 4, 1, 256, 262144, 8192, true},
}

// cacheBytes returns the size of all caches.
func (c languageModel) cacheBytes() int {
	return c.layers * 2 * c.tokens * c.kvHeads * c.head * 4
}

// write writes the model with random weights to a temporary file and returns its path.
func (c languageModel) write(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "language.pte")
	c.writeTo(t, path)
	return path
}

func (c languageModel) writeTo(t testing.TB, path string) {
	t.Helper()
	w := &languageWriter{languageModel: c, r: rand.New(rand.NewPCG(14, 2)), names: make(map[string]int)}
	w.forward()
	program := &pte.Program{Methods: []pte.Method{w.m}}
	if err := os.WriteFile(path, ptetest.Write(program, ptetest.Layout{}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestWriteLanguageModel writes a model of a real size, to measure with.
func TestWriteLanguageModel(t *testing.T) {
	name, path := os.Getenv("ETRUN_LANGUAGE_SHAPE"), os.Getenv("ETRUN_LANGUAGE_FILE")
	if path == "" {
		t.Skip("writes the model that ETRUN_LANGUAGE_SHAPE names to the file that ETRUN_LANGUAGE_FILE names")
	}
	c, ok := realLanguageModels[name]
	if !ok {
		t.Fatalf("no model %q, want one of %q", name, slices.Sorted(maps.Keys(realLanguageModels)))
	}
	c.writeTo(t, path)
}

// languageWriter builds the method.
type languageWriter struct {
	languageModel
	r     *rand.Rand
	m     pte.Method
	chain pte.Chain
	names map[string]int // indices of operators by name
	at    int            // the arena of the next tensors: 0 those of all layers, 1 and 2 in turns those of a layer
	used  int64          // of it
}

// forward builds method forward(tokens [1, S] int64, position [1] int64), which returns the logits of
// the last token.
func (w *languageWriter) forward() {
	w.m.Name, w.m.Arenas = "forward", make([]pte.Arena, 3)
	tokens, at := w.tensor(tensor.Int64, true, 1, w.tokens), w.tensor(tensor.Int64, false, 1)
	position := w.value(pte.Value{Kind: tensor.KindInt})
	w.call("aten::_local_scalar_dense", at, position)
	x := w.tensor(tensor.Float32, true, 1, w.tokens, w.dim)
	name, table, most := "quantized_decomposed::embedding_4bit.dtype_out", w.constant(tensor.Uint8, w.vocabulary, w.dim/2), 7
	if w.bytes {
		name, table, most = "quantized_decomposed::embedding_byte.dtype_out", w.constant(tensor.Int8, w.vocabulary, w.dim), 127
	}
	w.call(name, table, w.constant(tensor.Float32, w.vocabulary), w.none(), w.int(-most-1), w.int(most), tokens, w.none(), x)
	caches := make([]int, 2*w.layers)
	for i := range caches {
		caches[i] = w.tensor(tensor.Float32, false, 1, w.tokens, w.kvHeads, w.head)
	}
	for i := range w.layers {
		w.at, w.used = 1+i%2, 0
		x = w.layer(x, position, caches[2*i], caches[2*i+1])
	}
	last := w.tensor(tensor.Float32, false, 1, w.dim)
	w.call("aten::select_copy.int_out", x, w.int(1), w.int(-1), last)
	logits := w.tensor(tensor.Float32, false, 1, w.vocabulary)
	w.delegate(func(m *graphtest.Maker) *graph.Graph {
		v := m.Input(graph.FP32, 1, w.dim)
		return m.Done(w.linear(m, m.Quantized(v, 1), w.vocabulary))
	}, []int{last}, []int{logits})
	w.m.Inputs, w.m.Outputs = []int{tokens, at}, []int{logits}
	w.m.Chains = []pte.Chain{w.chain}
}

// layer adds attention, its output projection and the feed-forward network.
func (w *languageWriter) layer(x, position, keys, values int) int {
	all, kv, head := w.heads*w.head, w.kvHeads*w.head, w.head
	q, k, v := w.rows(all), w.rows(kv), w.rows(kv)
	w.delegate(func(m *graphtest.Maker) *graph.Graph { return w.projections(m, all, kv, kv) }, []int{x, w.meanSquare(x)}, []int{q, k, v})
	query, out := w.view(q, w.heads, head), w.tensor(tensor.Float32, true, 1, w.tokens, w.heads, head)
	w.update(keys, w.view(k, w.kvHeads, head), position)
	w.update(values, w.view(v, w.kvHeads, head), position)
	w.call("llama::custom_sdpa.out", query, keys, values, position, w.none(), w.value(pte.Value{Kind: tensor.KindDouble}),
		w.value(pte.Value{Kind: tensor.KindBool, Bool: true}), w.none(), out)
	attended, h := w.view(out, all), w.rows(w.dim)
	w.delegate(w.residual, []int{attended, x}, []int{h})
	y := w.rows(w.dim)
	w.delegate(w.feedForward, []int{h, w.meanSquare(h)}, []int{y})
	return y
}

// rows adds a tensor of one vector of n elements per token.
func (w *languageWriter) rows(n int) int {
	return w.tensor(tensor.Float32, true, 1, w.tokens, n)
}

// meanSquare adds the mean square of each token's vector. As in exported programs, a delegate squares.
func (w *languageWriter) meanSquare(x int) int {
	squares, mean := w.rows(w.dim), w.rows(1)
	w.delegate(func(m *graphtest.Maker) *graph.Graph {
		v, y := m.Input(graph.FP32, 1, w.tokens, w.dim), m.Value(graph.FP32, 1, w.tokens, w.dim)
		m.Node("Multiply", []int{v, v}, []int{y})
		return m.Done(y)
	}, []int{x}, []int{squares})
	w.call("aten::mean.out", squares, w.ints(-1), w.value(pte.Value{Kind: tensor.KindBool, Bool: true}), w.none(), mean)
	return mean
}

// update adds the update of a cache with x, with the redundant views of exported programs.
func (w *languageWriter) update(cache, x, position int) {
	rows := w.view(w.view(x, w.kvHeads*w.head), w.kvHeads, w.head)
	w.call("llama::update_cache.out", rows, cache, position, w.tensor(tensor.Float32, false, 1))
}

// view adds a view of x with sizes [1, S, sizes…].
func (w *languageWriter) view(x int, sizes ...int) int {
	out := w.tensor(tensor.Float32, true, append([]int{1, w.tokens}, sizes...)...)
	w.call("executorch_prim::et_view.default", x, w.ints(append([]int{1, -1}, sizes...)...), out)
	return out
}
