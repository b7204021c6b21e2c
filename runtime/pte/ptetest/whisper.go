package ptetest

import (
	"math"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Whisper describes a program with random weights of the form in which optimum exports Whisper: encoder(mel [1, 80, 2·Frames] float32) →
// [1, Frames, Dim], and text_decoder(tokens [1, 1] int64, frames [1, Frames, Dim], positions [1] int64) → [1, 1, Vocabulary] float32, with
// caches of keys and values. The keys and values of the frames are computed and stored in every call.
type Whisper struct {
	Transformer
	Frames, Start int // Start: the token that texts begin with; the one before ends them
}

// File returns the bytes of the program.
func (c Whisper) File() []byte {
	p := &pte.Program{Methods: []pte.Method{c.encoder(), c.decoder()}}
	for name, n := range map[string]int{"get_max_seq_len": c.Context, "get_vocab_size": c.Vocabulary, "get_eos_id": c.Start - 1, "decoder_start_token_id": c.Start} {
		p.Methods = append(p.Methods, pte.Method{Name: name, Values: []pte.Value{{Kind: tensor.KindInt, Int: int64(n)}}, Outputs: []int{0}, Chains: []pte.Chain{{}}})
	}
	return Write(p, Layout{})
}

func (c Whisper) static() *transformerWriter {
	w := c.writer()
	w.static = true
	return w
}

func (c Whisper) encoder() pte.Method {
	w := c.static()
	mel := w.tensor(tensor.Float32, false, 1, 80, 2*c.Frames)
	x := w.heard(w.heard(mel, 80, 2*c.Frames, 1), c.Dim, c.Frames, 2)
	w.rows = c.Frames
	x = w.sum(w.permuted(x, 0, 2, 1), w.weights(0.01, c.Frames, c.Dim))
	for i := range c.Layers {
		w.at, w.used = 1+i%2, 0
		y := w.normalized(x)
		x = w.sum(x, w.softmaxed(w.divided(y, true), w.divided(y, false), w.divided(y, true), w.none()))
		x = w.sum(x, w.hidden(w.normalized(x)))
	}
	w.end("encoder", []int{mel}, w.normalized(x))
	return w.m
}

// heard adds a convolution of three frames and GELU.
func (w *transformerWriter) heard(x, channels, frames, stride int) int {
	y, z := w.tensor(tensor.Float32, false, 1, w.Dim, frames), w.tensor(tensor.Float32, false, 1, w.Dim, frames)
	w.call("aten::convolution.out", x, w.weights(2/float32(3*channels), w.Dim, channels, 3), w.weights(0.1, w.Dim), w.ints(stride), w.ints(1), w.ints(1),
		w.bool(false), w.ints(0), w.int(1), y)
	w.call("aten::gelu.out", y, w.text("none"), z)
	return z
}

func (c Whisper) decoder() pte.Method {
	w := c.static()
	tokens, frames, position := w.tensor(tensor.Int64, false, 1, 1), w.tensor(tensor.Float32, false, 1, c.Frames, c.Dim), w.tensor(tensor.Int64, false, 1)
	var caches [][2]int
	for i := range 2 * c.Layers {
		n := []int{c.Context, c.Frames}[i%2]
		sizes := []int{1, c.Heads, n, c.Dim / c.Heads}
		caches = append(caches, [2]int{w.tensor(tensor.Float32, false, sizes...), w.tensor(tensor.Float32, false, sizes...)})
	}
	w.rows = 1
	table := w.weights(1/float32(c.Dim), c.Vocabulary, c.Dim)
	x := w.sum(w.lookup(table, tokens), w.embedding(0.01, w.alias(position, 1, 1), c.Context))
	mask, all := w.seen(position), w.tensor(tensor.Int64, false, c.Frames)
	w.call("aten::arange.start_out", w.int(0), w.int(c.Frames), w.int(1), all)
	for i := range c.Layers {
		w.at, w.used = 1+i%2, 0
		y := w.normalized(x)
		x = w.sum(x, w.softmaxed(w.divided(y, true), w.put(caches[2*i][0], position, w.divided(y, false)), w.put(caches[2*i][1], position, w.divided(y, true)), mask))
		w.rows = c.Frames
		keys, values := w.put(caches[2*i+1][0], all, w.divided(frames, false)), w.put(caches[2*i+1][1], all, w.divided(frames, true))
		w.rows = 1
		x = w.sum(x, w.softmaxed(w.divided(w.normalized(x), true), keys, values, w.none()))
		x = w.sum(x, w.hidden(w.normalized(x)))
	}
	last, logits := w.normalized(x), w.tensor(tensor.Float32, false, 1, c.Vocabulary)
	w.call("aten::mm.out", w.alias(last, 1, c.Dim), w.permuted(table, 1, 0), logits)
	w.end("text_decoder", []int{tokens, frames, position}, w.alias(logits, 1, 1, c.Vocabulary))
	return w.m
}

// seen returns 0 for positions up to that of the token, -∞ behind it: [1, 1, 1, context].
func (w *transformerWriter) seen(position int) int {
	all, before, out := w.tensor(tensor.Int64, false, w.Context), w.tensor(tensor.Bool, false, 1, w.Context), w.tensor(tensor.Float32, false, 1, 1, 1, w.Context)
	w.call("aten::arange.start_out", w.int(0), w.int(w.Context), w.int(1), all)
	w.call("aten::le.Tensor_out", all, w.alias(position, 1, 1), before)
	var ends [2]int
	for i, x := range []float64{0, math.Inf(-1)} {
		ends[i] = w.tensor(tensor.Float32, false)
		w.call("aten::scalar_tensor.out", w.double(x), ends[i])
	}
	w.call("aten::where.self_out", w.alias(before, 1, 1, 1, w.Context), ends[0], ends[1], out)
	return out
}

// put stores rows of a cache, and returns it.
func (w *transformerWriter) put(cache, at, rows int) int {
	out := w.tensor(tensor.Float32, false, w.m.Values[cache].Tensor.Sizes...)
	w.call("aten::index_put.out", cache, w.value(pte.Value{Kind: tensor.KindOptionalTensorList, Items: []int{-1, -1, at}}), rows, w.bool(false), out)
	w.call("aten::copy_", cache, out, w.bool(false), cache)
	return out
}

func (w *transformerWriter) normalized(x int) int {
	out, mean, root := w.tensor(tensor.Float32, false, 1, w.rows, w.Dim), w.tensor(tensor.Float32, false, 1, w.rows, 1), w.tensor(tensor.Float32, false, 1, w.rows, 1)
	w.operator("aten::native_layer_norm.out", x, w.ints(w.Dim), w.constant(func(int) float32 { return 1 }, w.Dim), w.weights(0.01, w.Dim), w.double(1e-5),
		out, mean, root, w.value(pte.Value{Kind: tensor.KindTensorList, Items: []int{out, mean, root}}))
	return out
}

// linear multiplies the rows of x, of n elements, by random weights: [1, rows, to].
func (w *transformerWriter) linear(x, n, to int, bias bool) int {
	out, table := w.tensor(tensor.Float32, false, w.rows, to), w.permuted(w.weights(1/float32(n), to, n), 1, 0)
	x = w.alias(x, w.rows, n)
	if bias {
		w.call("aten::addmm.out", w.weights(0.01, to), x, table, w.int(1), w.int(1), out)
	} else {
		w.call("aten::mm.out", x, table, out)
	}
	return w.alias(out, 1, w.rows, to)
}

// divided projects the rows of x and divides them into heads: [1, heads, rows, head].
func (w *transformerWriter) divided(x int, bias bool) int {
	return w.permuted(w.alias(w.linear(x, w.Dim, w.Dim, bias), 1, w.rows, w.Heads, w.Dim/w.Heads), 0, 2, 1, 3)
}

// hidden is a feed-forward network.
func (w *transformerWriter) hidden(x int) int {
	y := w.tensor(tensor.Float32, false, 1, w.rows, 4*w.Dim)
	w.call("aten::gelu.out", w.linear(x, w.Dim, 4*w.Dim, true), w.text("none"), y)
	return w.linear(y, 4*w.Dim, w.Dim, true)
}

// softmaxed is attention as exporters decompose it, over all rows of keys and values, [1, heads, n, head]: [1, rows, dim].
func (w *transformerWriter) softmaxed(q, k, v, mask int) int {
	head, n := w.Dim/w.Heads, w.m.Values[k].Tensor.Sizes[2]
	root, k := math.Pow(float64(head), -.25), w.permuted(k, 0, 1, 3, 2)
	scaled := func(x int, sizes ...int) int {
		y, z := w.tensor(tensor.Float32, false, sizes...), w.tensor(tensor.Float32, false, sizes...)
		w.call("aten::mul.Scalar_out", x, w.double(root), y)
		w.call("aten::expand_copy.out", y, w.ints(sizes...), w.bool(false), z)
		return w.alias(z, sizes[1:]...)
	}
	scores := w.tensor(tensor.Float32, false, w.Heads, w.rows, n)
	w.call("aten::bmm.out", scaled(q, 1, w.Heads, w.rows, head), scaled(k, 1, w.Heads, head, n), scores)
	scores = w.alias(scores, 1, w.Heads, w.rows, n)
	if w.m.Values[mask].Kind == tensor.KindTensor {
		sum := w.tensor(tensor.Float32, false, 1, w.Heads, w.rows, n)
		w.call("aten::add.out", scores, mask, w.int(1), sum)
		scores = sum
	}
	soft, out := w.tensor(tensor.Float32, false, 1, w.Heads, w.rows, n), w.tensor(tensor.Float32, false, w.Heads, w.rows, head)
	w.call("aten::_softmax.out", scores, w.int(-1), w.bool(false), soft)
	w.call("aten::bmm.out", w.alias(soft, w.Heads, w.rows, n), w.alias(v, w.Heads, n, head), out)
	return w.linear(w.permuted(w.alias(out, 1, w.Heads, w.rows, head), 0, 2, 1, 3), w.Dim, w.Dim, true)
}
