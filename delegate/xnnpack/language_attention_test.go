package xnnpack

import (
	"math"
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// languageCache has the values of a layer's cache. That of a layer that sees all positions has a row for each; a window's
// is a ring of twice its positions, the numbers of which are in a tensor.
type languageCache struct {
	keys, values, positions int
	window                  int
	angles                  [2]int // cosines and sines of the rows of a call
}

func (w *languageWriter) cache(angles [2]int, window int) languageCache {
	c, n := languageCache{window: window, angles: angles}, w.tokens
	if window > 0 {
		n = 2 * window
		c.positions = w.tensor(tensor.Int64, false, n)
	}
	c.keys, c.values = w.tensor(tensor.Float32, false, 1, n, w.kvHeads, w.head), w.tensor(tensor.Float32, false, 1, n, w.kvHeads, w.head)
	return c
}

// angles returns the cosines and sines for the positions of a call, [1, S, 1, head/2].
func (w *languageWriter) angles(base float64) (list [2]int) {
	half := w.head / 2
	for i, f := range []func(float64) float64{math.Cos, math.Sin} {
		table, rows := w.constant(tensor.Float32, w.tokens, half), w.tensor(tensor.Float32, true, w.most, half)
		w.fill(table, func(i int) float64 { return f(float64(i/half) * math.Pow(base, -float64(i%half)/float64(half))) })
		w.call("aten::slice_copy.Tensor_out", table, w.int(0), w.position, w.end, w.int(1), rows)
		list[i] = w.view(rows, 1, half)
	}
	return list
}

// rotated rotates queries and keys: a delegate computes with the halves that operators outside take.
func (w *languageWriter) rotated(q, k int, angles [2]int) (int, int) {
	half, in := w.head/2, []int(nil)
	for _, x := range []int{q, k} {
		for i := range 2 {
			part := w.like(x, half)
			w.call("aten::slice_copy.Tensor_out", x, w.int(3), w.int(i*half), w.int((i+1)*half), w.int(1), part)
			in = append(in, part)
		}
	}
	out := []int{w.like(q, w.head), w.like(k, w.head)}
	w.delegate(func(m *graphtest.Maker, v []int) (outs []int) {
		turn := func(name string, a, cos, b, sin int) int {
			return binary(m, name, binary(m, "Multiply", a, cos), binary(m, "Multiply", b, sin))
		}
		for i, x := range out {
			a, b, y := v[2*i], v[2*i+1], m.Value(graph.FP32, w.m.Values[x].Tensor.Sizes...)
			m.Node("Concatenate2", []int{turn("Subtract", a, v[4], b, v[5]), turn("Add", b, v[4], a, v[5])}, []int{y},
				func(n *graph.Node) { graph.Params[graph.ConcatenateParams](n).Axis = 3 })
			outs = append(outs, y)
		}
		return outs
	}, append(in, angles[:]...), out)
	return out[0], out[1]
}

// attention stores keys and values, and attends to the cache.
func (w *languageWriter) attention(q, k, v int, c languageCache) int {
	out, mask, causal := w.like(q, w.head), w.none(), true
	update := func(cache, rows int) {
		w.call("llama::update_cache.out", rows, cache, w.position, w.tensor(tensor.Float32, false, 1))
	}
	if c.window > 0 {
		numbers, slots := w.ring(c)
		mask, causal = w.mask(c, numbers), false
		update = func(cache, rows int) {
			w.call("llama::update_cache_with_indices.out", rows, cache, w.position, slots, w.tensor(tensor.Float32, false, 1))
		}
	}
	update(c.keys, w.again(k))
	update(c.values, w.again(v))
	w.call("llama::custom_sdpa.out", q, c.keys, c.values, w.position, mask, w.value(pte.Value{Kind: tensor.KindDouble}), w.bool(causal), w.none(), out)
	return out
}

// again adds the redundant views of exported programs.
func (w *languageWriter) again(x int) int {
	return w.view(w.view(x, w.kvHeads*w.head), w.kvHeads, w.head)
}

// ring stores the positions of a call, and returns them, [S], and the slots of the ring that they take, [1, S]. Slots without
// position, or of a longer text before, have -1.
func (w *languageWriter) ring(c languageCache) (numbers, slots int) {
	n := 2 * c.window
	count, slot := w.tensor(tensor.Int64, true, w.most), w.tensor(tensor.Int64, true, w.most)
	numbers, slots = w.tensor(tensor.Int64, true, w.most), w.tensor(tensor.Int64, true, 1, w.most)
	w.call("aten::arange.start_out", w.int(0), w.count, w.int(1), count)
	w.call("aten::add.Scalar_out", count, w.position, w.int(1), numbers)
	w.call("aten::remainder.Scalar_out", numbers, w.int(n), slot)
	w.call("aten::unsqueeze_copy.out", slot, w.int(0), slots)
	before, known, updated := w.tensor(tensor.Bool, false, n), w.tensor(tensor.Int64, false, n), w.tensor(tensor.Int64, false, n)
	all, none := w.tensor(tensor.Int64, false, n), w.tensor(tensor.Int64, false, n)
	w.call("aten::arange.start_out", w.int(0), w.int(n), w.int(1), all)
	w.call("aten::full.out", w.ints(n), w.int(-1), none)
	w.call("aten::lt.Scalar_out", all, w.position, before)
	w.call("aten::where.self_out", before, c.positions, none, known)
	w.call("aten::index_put.out", known, w.value(pte.Value{Kind: tensor.KindOptionalTensorList, Items: []int{slot}}), numbers, w.bool(false), updated)
	w.call("aten::copy_", c.positions, updated, w.bool(false), c.positions)
	return numbers, slots
}

// mask returns 0 where a token sees a slot's position, -∞ elsewhere: [S, slots].
func (w *languageWriter) mask(c languageCache, numbers int) int {
	n, column, sizes := 2*c.window, w.tensor(tensor.Int64, true, w.most, 1), []int{w.most, 2 * c.window}
	w.call("aten::unsqueeze_copy.out", numbers, w.int(1), column)
	distance, used := w.tensor(tensor.Int64, true, sizes...), w.tensor(tensor.Bool, false, n)
	w.call("aten::sub.out", column, c.positions, w.int(1), distance)
	w.call("aten::ge.Scalar_out", c.positions, w.int(0), used)
	var flags [4]int
	for i := range flags {
		flags[i] = w.tensor(tensor.Bool, true, sizes...)
	}
	w.call("aten::ge.Scalar_out", distance, w.int(0), flags[0])
	w.call("aten::logical_and.out", used, flags[0], flags[1])
	w.call("aten::lt.Scalar_out", distance, w.int(c.window), flags[2])
	w.call("aten::logical_and.out", flags[1], flags[2], flags[3])
	var ends [2]int
	for i, x := range []float64{0, math.Inf(-1)} {
		ends[i] = w.tensor(tensor.Float32, false)
		w.call("aten::full.out", w.ints(), w.value(pte.Value{Kind: tensor.KindDouble, Double: x}), ends[i])
	}
	out := w.tensor(tensor.Float32, true, sizes...)
	w.call("aten::where.self_out", flags[3], ends[0], ends[1], out)
	return out
}

// last returns the number of elements of x's rows.
func (w *languageWriter) last(x int) int {
	sizes := w.m.Values[x].Tensor.Sizes
	return sizes[len(sizes)-1]
}

// like adds a tensor of the sizes of x, except for its rows, of n elements.
func (w *languageWriter) like(x, n int) int {
	sizes := slices.Clone(w.m.Values[x].Tensor.Sizes)
	sizes[len(sizes)-1] = n
	return w.tensor(tensor.Float32, true, sizes...)
}
