package xnnpack

import (
	"math/rand/v2"
	"os"
	"path/filepath"
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
	layers, dim, hidden, heads, kvHeads, vocabulary, tokens int
	bytes                                                   bool // the embeddings have 8 bits instead of 4
}

// The large model has about 90 MB and as many instructions per layer as an exported one. The real one has the shape of
// Qwen2.5-0.5B, 430 MB, and 4,096 positions.
var (
	smallLanguageModel = languageModel{layers: 2, dim: 64, hidden: 96, heads: 4, kvHeads: 2, vocabulary: 96, tokens: 32}
	largeLanguageModel = languageModel{layers: 30, dim: 576, hidden: 1536, heads: 9, kvHeads: 3, vocabulary: 49152, tokens: 512}
	realLanguageModel  = languageModel{layers: 24, dim: 896, hidden: 4864, heads: 14, kvHeads: 2, vocabulary: 151936, tokens: 4096, bytes: true}
)

func (c languageModel) headDim() int { return c.dim / c.heads }

// cacheBytes returns the size of all caches.
func (c languageModel) cacheBytes() int {
	return c.layers * 2 * c.tokens * c.kvHeads * c.headDim() * 4
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

// envLanguageFile names the variable with the path of the file that TestWriteLanguageModel writes.
const envLanguageFile = "ETRUN_LANGUAGE_FILE"

// TestWriteLanguageModel writes a model of a real size, to measure servers with.
func TestWriteLanguageModel(t *testing.T) {
	path := os.Getenv(envLanguageFile)
	if path == "" {
		t.Skip("writes the file that " + envLanguageFile + " names")
	}
	realLanguageModel.writeTo(t, path)
}

// languageWriter builds the method.
type languageWriter struct {
	languageModel
	r     *rand.Rand
	m     pte.Method
	chain pte.Chain
	names map[string]int // indices of operators by name
}

// forward builds method forward(tokens [1, S] int64, position [1] int64), which returns the logits of
// the last token.
func (w *languageWriter) forward() {
	w.m.Name = "forward"
	tokens, at := w.tensor(tensor.Int64, true, 1, w.tokens), w.tensor(tensor.Int64, false, 1)
	position := w.value(pte.Value{Kind: tensor.KindInt})
	w.call("aten::_local_scalar_dense", at, position)
	x := w.tensor(tensor.Float32, true, 1, w.tokens, w.dim)
	name, table, most := "quantized_decomposed::embedding_4bit.dtype_out", w.constant(tensor.Uint8, w.vocabulary, w.dim/2), 7
	if w.bytes {
		name, table, most = "quantized_decomposed::embedding_byte.dtype_out", w.constant(tensor.Int8, w.vocabulary, w.dim), 127
	}
	w.call(name, table, w.constant(tensor.Float32, w.vocabulary), w.none(), w.int(-most-1), w.int(most), tokens, w.none(), x)
	for range w.layers {
		x = w.layer(x, position)
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
func (w *languageWriter) layer(x, position int) int {
	kv, head := w.kvHeads*w.headDim(), w.headDim()
	q, k, v := w.rows(w.dim), w.rows(kv), w.rows(kv)
	w.delegate(func(m *graphtest.Maker) *graph.Graph { return w.projections(m, w.dim, kv, kv) }, []int{x, w.meanSquare(x)}, []int{q, k, v})
	query, out := w.view(q, w.heads, head), w.tensor(tensor.Float32, true, 1, w.tokens, w.heads, head)
	keys := w.cache(w.view(k, w.kvHeads, head), position)
	values := w.cache(w.view(v, w.kvHeads, head), position)
	w.call("llama::custom_sdpa.out", query, keys, values, position, w.none(), w.value(pte.Value{Kind: tensor.KindDouble}),
		w.value(pte.Value{Kind: tensor.KindBool, Bool: true}), w.none(), out)
	attended, h := w.view(out, w.dim), w.rows(w.dim)
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

// cache adds a cache and its update with x, with the redundant views of exported programs.
func (w *languageWriter) cache(x, position int) int {
	head := w.headDim()
	cache := w.tensor(tensor.Float32, false, 1, w.tokens, w.kvHeads, head)
	w.call("llama::update_cache.out", w.view(w.view(x, w.kvHeads*head), w.kvHeads, head), cache, position, w.tensor(tensor.Float32, false, 1))
	return cache
}

// view adds a view of x with sizes [1, S, sizes…].
func (w *languageWriter) view(x int, sizes ...int) int {
	out := w.tensor(tensor.Float32, true, append([]int{1, w.tokens}, sizes...)...)
	w.call("executorch_prim::et_view.default", x, w.ints(append([]int{1, -1}, sizes...)...), out)
	return out
}
