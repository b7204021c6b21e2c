package xnnpack

import (
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// languageModel describes a decoder like SmolLM: 4-bit weights in groups of 32, dynamically quantized
// rows, rotated queries and keys, and caches of keys and values.
type languageModel struct {
	layers, dim, hidden, heads, kvHeads, head, vocabulary, tokens int
	bytes                                                         bool // the embeddings have 8 bits instead of 4
	headNorms                                                     bool // queries and keys are normalized
	gemma                                                         bool // scaled embeddings, norms of what is added to a vector, GELU
	window                                                        int  // positions that five of six layers see: their caches are rings
}

// The large model has about 90 MB and as many instructions per layer as an exported one. All layers of the windowed model but one have
// windows.
var (
	smallLanguageModel = languageModel{layers: 2, dim: 64, hidden: 96, heads: 4, kvHeads: 2, head: 16, vocabulary: 96, tokens: 32}
	windowedModel      = languageModel{layers: 7, dim: 64, hidden: 96, heads: 4, kvHeads: 1, head: 16, vocabulary: 96, tokens: 32, bytes: true,
		headNorms: true, gemma: true, window: 4}
	largeLanguageModel = languageModel{layers: 30, dim: 576, hidden: 1536, heads: 9, kvHeads: 3, head: 64, vocabulary: 49152, tokens: 512}
)

// realModels have the shapes of models that people run, by name. The tables of embeddings of language models have 8 bits, and the last
// product 4, as exporters write models in which the two are one.
var realModels = map[string]interface{ File() []byte }{
	"Qwen2.5-0.5B":  languageModel{24, 896, 4864, 14, 2, 64, 151936, 4096, true, false, false, 0},
	"Qwen3-0.6B":    languageModel{28, 1024, 3072, 16, 8, 128, 151936, 8192, true, true, false, 0},
	"Qwen3-1.7B":    languageModel{28, 2048, 6144, 16, 8, 128, 151936, 8192, true, true, false, 0},
	"Llama-3.2-1B":  languageModel{16, 2048, 8192, 32, 8, 64, 128256, 8192, true, false, false, 0},
	"Gemma-3-1B":    languageModel{26, 1152, 6912, 4, 1, 256, 262144, 8192, true, true, true, 512},
	"YOLOv8n":       ptetest.Detector{Side: 640, Width: 16, Depth: [2]int{1, 2}, Classes: 80},
	"Whisper-small": ptetest.Whisper{Transformer: ptetest.Transformer{Layers: 12, Dim: 768, Heads: 12, Vocabulary: 51865, Context: 448}, Frames: 1500, Start: 50258},
}

// cacheBytes returns the size of all caches.
func (c languageModel) cacheBytes() int {
	return c.layers * 2 * c.tokens * c.kvHeads * c.head * 4
}

// write writes the model with random weights to a temporary file and returns its path.
func (c languageModel) write(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "language.pte")
	if err := os.WriteFile(path, c.File(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// File returns the bytes of the program.
func (c languageModel) File() []byte {
	w := &languageWriter{languageModel: c, most: c.tokens, r: rand.New(rand.NewPCG(14, 2)), names: make(map[string]int)}
	if c.window > 0 {
		w.most = c.window - 1
	}
	w.forward()
	length := pte.Method{Name: "get_max_seq_len", Values: []pte.Value{{Kind: tensor.KindInt, Int: int64(c.tokens)}}, Outputs: []int{0}, Chains: []pte.Chain{{}}}
	return ptetest.Write(&pte.Program{Methods: []pte.Method{w.m, length}}, ptetest.Layout{})
}

// TestWriteModel writes a model of a real size, to measure with.
func TestWriteModel(t *testing.T) {
	name, path := os.Getenv("ETRUN_MODEL_SHAPE"), os.Getenv("ETRUN_MODEL_FILE")
	if path == "" {
		t.Skip("writes the model that ETRUN_MODEL_SHAPE names to the file that ETRUN_MODEL_FILE names")
	}
	c, ok := realModels[name]
	if !ok {
		t.Fatalf("no model %q, want one of %q", name, slices.Sorted(maps.Keys(realModels)))
	}
	if err := os.WriteFile(path, c.File(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// languageWriter builds the method.
type languageWriter struct {
	languageModel
	most  int // tokens of a call
	r     *rand.Rand
	m     pte.Method
	chain pte.Chain
	names map[string]int // indices of operators by name
	at    int            // the arena of the next tensors: 0 those of all layers, 1 and 2 in turns those of a layer
	used  int64          // of it
	// Values of the method: the first position of a call, the number of tokens, and the first position behind them.
	position, count, end int
}

// forward builds method forward(tokens [1, S] int64, position [1] int64), which returns the logits of
// the last token.
func (w *languageWriter) forward() {
	w.m.Name, w.m.Arenas = "forward", make([]pte.Arena, 3)
	tokens, at := w.tensor(tensor.Int64, true, 1, w.most), w.tensor(tensor.Int64, false, 1)
	w.position, w.count, w.end = w.int(0), w.int(0), w.int(0)
	w.call("aten::_local_scalar_dense", at, w.position)
	w.call("aten::sym_size.int", tokens, w.int(1), w.count)
	w.call("executorch_prim::add.Scalar", w.position, w.count, w.end)
	x := w.embedding(tokens)
	global, local := w.angles(1e6), [2]int{}
	if w.window > 0 {
		local = w.angles(1e4)
	}
	caches := make([]languageCache, w.layers)
	for i := range caches {
		caches[i] = w.cache(global, 0)
		if w.window > 0 && i%6 != 5 {
			caches[i] = w.cache(local, w.window)
		}
	}
	for i := range w.layers {
		w.at, w.used = 1+i%2, 0
		x = w.layer(x, caches[i])
	}
	last, logits := w.tensor(tensor.Float32, false, 1, w.dim), w.tensor(tensor.Float32, false, 1, w.vocabulary)
	w.call("aten::select_copy.int_out", x, w.int(1), w.int(-1), last)
	w.delegate(w.product(w.vocabulary), []int{last}, []int{logits})
	w.m.Inputs, w.m.Outputs = []int{tokens, at}, []int{logits}
	w.m.Chains = []pte.Chain{w.chain}
}

// embedding returns the vectors of tokens.
func (w *languageWriter) embedding(tokens int) int {
	x := w.rows(w.dim)
	name, table, most := "quantized_decomposed::embedding_4bit.dtype_out", w.constant(tensor.Uint8, w.vocabulary, w.dim/2), 7
	if w.bytes {
		name, table, most = "quantized_decomposed::embedding_byte.dtype_out", w.constant(tensor.Int8, w.vocabulary, w.dim), 127
	}
	w.call(name, table, w.constant(tensor.Float32, w.vocabulary), w.none(), w.int(-most-1), w.int(most), tokens, w.none(), x)
	if !w.gemma {
		return x
	}
	return w.graph(w.dim, func(m *graphtest.Maker, v []int) int {
		return binary(m, "Multiply", v[0], filled(m, float32(math.Sqrt(float64(w.dim))), 1))
	}, x)
}

// layer adds attention, its output projection and the feed-forward network.
func (w *languageWriter) layer(x int, cache languageCache) int {
	all, kv := w.heads*w.head, w.kvHeads*w.head
	q, k, v := w.rows(all), w.rows(kv), w.rows(kv)
	w.delegate(w.projections, []int{x, w.meanSquare(x)}, []int{q, k, v})
	q, k, v = w.view(q, w.heads, w.head), w.view(k, w.kvHeads, w.head), w.view(v, w.kvHeads, w.head)
	if w.headNorms {
		q, k = w.graph(w.head, norm, q, w.meanSquare(q)), w.graph(w.head, norm, k, w.meanSquare(k))
	}
	q, k = w.rotated(q, k, cache.angles)
	attended := w.view(w.attention(q, k, v, cache), all)
	if !w.gemma {
		h := w.graph(w.dim, w.residual, attended, x)
		return w.graph(w.dim, w.feedForward, h, w.meanSquare(h))
	}
	h := w.added(x, w.graph(w.dim, w.projected, attended))
	gate, up := w.rows(w.hidden), w.rows(w.hidden)
	w.delegate(w.gates, []int{h, w.meanSquare(h)}, []int{gate, up})
	active := w.rows(w.hidden)
	w.call("aten::gelu.out", gate, w.value(pte.Value{Kind: tensor.KindString, Long: &pte.Long{Str: "tanh"}}), active)
	return w.added(h, w.graph(w.dim, w.down, active, up))
}

// added adds the normalized y to x.
func (w *languageWriter) added(x, y int) int {
	return w.graph(w.dim, func(m *graphtest.Maker, v []int) int { return binary(m, "Add", v[0], norm(m, v[1:])) }, x, y, w.meanSquare(y))
}

// rows adds a tensor of one vector of n elements per token.
func (w *languageWriter) rows(n int) int {
	return w.tensor(tensor.Float32, true, 1, w.most, n)
}

// meanSquare adds the mean square of each vector of x. As in exported programs, a delegate squares.
func (w *languageWriter) meanSquare(x int) int {
	squares := w.graph(w.last(x), func(m *graphtest.Maker, v []int) int { return binary(m, "Multiply", v[0], v[0]) }, x)
	mean := w.like(x, 1)
	w.call("aten::mean.out", squares, w.ints(-1), w.bool(true), w.none(), mean)
	return mean
}

// view adds a view of x with sizes [1, S, sizes…].
func (w *languageWriter) view(x int, sizes ...int) int {
	out := w.tensor(tensor.Float32, true, append([]int{1, w.most}, sizes...)...)
	w.call("executorch_prim::et_view.default", x, w.ints(append([]int{1, -1}, sizes...)...), out)
	return out
}
