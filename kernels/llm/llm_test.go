package llm

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var set = kernels.NewSet(Ops())

const (
	i8, i64        = tensor.Int8, tensor.Int64
	f32, f64       = tensor.Float32, tensor.Float64
	f16, bf16      = tensor.Float16, tensor.BFloat16
	sdpa           = "llama::custom_sdpa.out"
	deltaRuleOut   = "llama::gated_delta_rule.out"
	transformOut   = "llama::fast_hadamard_transform.out"
	updateCacheOut = "llama::update_cache.out"
)

func of(d tensor.DType, sizes []int, values ...float64) *tensor.Tensor {
	t := tensor.New(d, sizes...)
	tensor.Storer[float64](d)(t.Data, values)
	return t
}

// random makes a tensor of normally distributed elements.
func random(seed uint64, d tensor.DType, sizes ...int) *tensor.Tensor {
	t := tensor.New(d, sizes...)
	r := rand.New(rand.NewPCG(seed, 0))
	v := make([]float64, t.Numel())
	for i := range v {
		v[i] = r.NormFloat64()
		if d == i8 {
			v[i] = float64(r.IntN(256) - 128)
		}
	}
	tensor.Storer[float64](d)(t.Data, v)
	return t
}

func values(t *tensor.Tensor) []float64 {
	v := make([]float64, t.Numel())
	tensor.Loader[float64](t.DType)(v, t.Data)
	return v
}

// params are zero points and scales of an int8 tensor, of one row each.
type params struct{ zero, scale *tensor.Tensor }

func paramsOf(seed uint64, t *tensor.Tensor) params {
	sizes := append(slices.Clone(t.Sizes[:3]), 1)
	p := params{random(seed, i8, sizes...), tensor.New(f32, sizes...)}
	for i := range tensor.Data[float32](p.scale) {
		tensor.Data[float32](p.scale)[i] = 0.01 + float32(i%5)/500
	}
	return p
}

// dequantized is the float64 tensor that an int8 one stands for.
func (p params) dequantized(t *tensor.Tensor) *tensor.Tensor {
	v, zero, scale := values(t), values(p.zero), values(p.scale)
	for i := range v {
		row := i / t.Sizes[3]
		v[i] = (v[i] - zero[row]) * scale[row]
	}
	return of(f64, t.Sizes, v...)
}

// attendNaive is attention over [B, S, H, D] in float64, key by key.
func attendNaive(q, k, v, mask *tensor.Tensor, start int, causal bool, scale float64) *tensor.Tensor {
	batches, rows, heads, dim := q.Sizes[0], q.Sizes[1], q.Sizes[2], q.Sizes[3]
	keys, kvHeads := k.Sizes[1], k.Sizes[2]
	out := tensor.New(f32, q.Sizes...)
	o, qv, kv, vv, mv := tensor.Data[float32](out), values(q), values(k), values(v), []float64(nil)
	if mask != nil {
		mv = values(mask)
	}
	for b := range batches {
		for h := range heads {
			for s := range rows {
				last := start + rows
				if causal {
					last = start + s + 1
				}
				if mask != nil {
					last = keys
				}
				w, sum, at := make([]float64, last), 0.0, ((b*rows+s)*heads+h)*dim
				for j := range w {
					kat := ((b*keys+j)*kvHeads + h/(heads/kvHeads)) * dim
					for d := range dim {
						w[j] += qv[at+d] * kv[kat+d]
					}
					w[j] *= scale
					if mask != nil {
						w[j] += mv[s*keys+j]
					}
				}
				for j, most := 0, slices.Max(w); j < last; j++ {
					w[j] = math.Exp(w[j] - most)
					sum += w[j]
				}
				for d := range dim {
					x := 0.0
					for j := range w {
						x += w[j] / sum * vv[((b*keys+j)*kvHeads+h/(heads/kvHeads))*dim+d]
					}
					o[at+d] = float32(x)
				}
			}
		}
	}
	return out
}

// swapped exchanges dimensions 1 and 2 of a rank 4 tensor.
func swapped(t *tensor.Tensor) *tensor.Tensor {
	u := tensor.New(t.DType, t.Sizes[0], t.Sizes[2], t.Sizes[1], t.Sizes[3])
	n := t.Sizes[3] * t.DType.Size()
	for b := range t.Sizes[0] {
		for i := range t.Sizes[1] {
			for j := range t.Sizes[2] {
				from, to := (b*t.Sizes[1]+i)*t.Sizes[2]+j, (b*t.Sizes[2]+j)*t.Sizes[1]+i
				copy(u.Data[to*n:(to+1)*n], t.Data[from*n:(from+1)*n])
			}
		}
	}
	return u
}

func half(t *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	u := tensor.New(d, t.Sizes...)
	tensor.Cast(u, t)
	return u
}

func TestTable(t *testing.T) {
	kerneltest.Table(t, set, moeCase("sigmoid, a bias", 5, 4, 2, 32, 48, 4, "sigmoid", true))
}

func TestAttention(t *testing.T) {
	cases := []kerneltest.Case{}
	for _, c := range []struct {
		name                      string
		batches, rows, heads, dim int
		keys, kvHeads, start      int
		causal, mask              bool
		scale                     any
	}{
		{"one token", 1, 1, 2, 8, 16, 2, 5, true, false, nil},
		{"first token", 1, 1, 2, 8, 16, 2, 0, true, false, nil},
		{"a few tokens", 2, 5, 4, 16, 12, 2, 3, true, false, nil},
		{"not causal", 1, 4, 2, 8, 12, 1, 2, false, false, 0.3},
		{"a mask", 1, 4, 2, 8, 12, 1, 0, false, true, nil},
		{"several blocks", 1, 70, 4, 24, 300, 2, 200, true, false, nil},
		{"several blocks, not causal", 1, 33, 2, 8, 400, 2, 300, false, false, nil},
		{"several blocks, a mask", 1, 40, 2, 8, 260, 2, 0, false, true, 0.5},
		{"one token, many keys", 1, 1, 8, 64, 500, 2, 499, true, false, nil},
		{"one token, a mask of a window", 1, 1, 4, 16, 520, 1, 0, false, true, nil},
		{"several blocks, a mask of a window", 2, 70, 4, 16, 520, 2, 0, false, true, nil},
	} {
		q, k, v := random(1, f32, c.batches, c.rows, c.heads, c.dim), random(2, f32, c.batches, c.keys, c.kvHeads, c.dim), random(3, f32, c.batches, c.keys, c.kvHeads, c.dim)
		var mask any
		var m *tensor.Tensor
		if c.mask {
			m = random(4, f32, c.rows, c.keys)
			data := tensor.Data[float32](m)
			for i := range data {
				if key := i % c.keys; i == 1 || strings.HasSuffix(c.name, "window") && (key < 150+i/c.keys || key > 380+i/c.keys) {
					data[i] = float32(math.Inf(-1))
				}
			}
			mask = m
		}
		scale := 1 / math.Sqrt(float64(c.dim))
		if c.scale != nil {
			scale = c.scale.(float64)
		}
		for _, d := range []tensor.DType{f32, f16, bf16} {
			x, y, z := half(q, d), half(k, d), half(v, d)
			want := half(attendNaive(x, y, z, m, c.start, c.causal, scale), d)
			cases = append(cases, kerneltest.Case{Name: c.name + ", " + d.String(), Op: sdpa,
				Args: []any{x, y, z, c.start, mask, 0.0, c.causal, c.scale}, Want: []any{want}})
		}
		x, z := half(k, f16), half(v, f16)
		cases = append(cases, kerneltest.Case{Name: c.name + ", caches of float16", Op: sdpa,
			Args: []any{q, x, z, c.start, mask, 0.0, c.causal, c.scale}, Want: []any{attendNaive(q, x, z, m, c.start, c.causal, scale)}})
	}
	kerneltest.Run(t, set, cases...)
}

func TestQuantizedAttention(t *testing.T) {
	q, k, v := random(1, i8, 1, 5, 4, 16), random(2, i8, 1, 140, 2, 16), random(3, i8, 1, 140, 2, 16)
	pq, pk, pv := paramsOf(4, q), paramsOf(5, k), paramsOf(6, v)
	want := attendNaive(pq.dequantized(q), pk.dequantized(k), pv.dequantized(v), nil, 130, true, 0.25)
	args := func(q, k, v *tensor.Tensor, p [3]params, second bool) []any {
		return []any{q, k, v, 130, nil, 0.0, true, nil, p[0].zero, p[0].scale, p[1].zero, p[1].scale, p[2].zero, p[2].scale, second}
	}
	swap := func(p params) params { return params{swapped(p.zero), swapped(p.scale)} }
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "positions first", Op: "llama::custom_quantized_sdpa.out",
			Args: args(q, k, v, [3]params{pq, pk, pv}, false), Want: []any{want}},
		kerneltest.Case{Name: "heads first", Op: "llama::custom_quantized_sdpa.out",
			Args: args(swapped(q), swapped(k), swapped(v), [3]params{swap(pq), swap(pk), swap(pv)}, true), Want: []any{swapped(want)}},
		kerneltest.Case{Name: "no scales", Op: "llama::custom_quantized_sdpa.out",
			Args: []any{q, k, v, 0, nil, 0.0, true, nil, nil, nil, nil, nil, nil, nil, false}, Outs: []any{tensor.New(f32, 1, 5, 4, 16)}, Refused: "parameters for int8"},
	)
}

func TestAttentionRefuses(t *testing.T) {
	q, k := tensor.New(f32, 1, 2, 4, 8), tensor.New(f32, 1, 6, 2, 8)
	out := []any{tensor.New(f32, 1, 2, 4, 8)}
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "position beyond the keys", Op: sdpa, Args: []any{q, k, k, 5, nil, 0.0, true, nil}, Outs: out, Refused: "argument 3"},
		{Name: "negative position", Op: sdpa, Args: []any{q, k, k, -1, nil, 0.0, true, nil}, Outs: out, Refused: "argument 3"},
		{Name: "mask and causal", Op: sdpa, Args: []any{q, k, k, 0, tensor.New(f32, 2, 6), 0.0, true, nil}, Outs: out, Refused: "none for causal"},
		{Name: "mask of other sizes", Op: sdpa, Args: []any{q, k, k, 0, tensor.New(f32, 2, 5), 0.0, false, nil}, Outs: out, Refused: "queries by keys"},
		{Name: "heads", Op: sdpa, Args: []any{q, tensor.New(f32, 1, 6, 3, 8), tensor.New(f32, 1, 6, 3, 8), 0, nil, 0.0, true, nil}, Outs: out, Refused: "divides 4"},
		{Name: "key and value", Op: sdpa, Args: []any{q, k, tensor.New(f32, 1, 7, 2, 8), 0, nil, 0.0, true, nil}, Outs: out, Refused: "argument 2"},
		{Name: "types", Op: sdpa, Args: []any{q, k, tensor.New(bf16, 1, 6, 2, 8), 0, nil, 0.0, true, nil}, Outs: out, Refused: "argument 2"},
		{Name: "int8", Op: sdpa, Args: []any{tensor.New(i8, 1, 2, 4, 8), k, k, 0, nil, 0.0, true, nil}, Outs: out, Refused: "argument 0"},
	}...)
}

func TestAttentionToNothing(t *testing.T) {
	nothing := float32(math.Inf(-1))
	nan := float32(math.NaN())
	kerneltest.Run(t, set, kerneltest.Case{Name: "a row without keys", Op: sdpa,
		Args: []any{of(f32, []int{1, 2, 1, 1}, 1, 1), of(f32, []int{1, 2, 1, 1}, 1, 2), of(f32, []int{1, 2, 1, 1}, 3, 4), 0,
			tensor.Of([]float32{nothing, nothing, 0, nothing}, 2, 2), 0.0, false, nil},
		Want: []any{tensor.Of([]float32{nan, 3}, 1, 2, 1, 1)}})
}

func TestCache(t *testing.T) {
	cache := of(f32, []int{2, 3, 1, 2}, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1)
	value := of(f32, []int{2, 1, 1, 2}, 5, 6, 7, 8)
	two := of(f32, []int{2, 2, 1, 2}, 1, 2, 3, 4, 5, 6, 7, 8)
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "update", Op: updateCacheOut, Args: []any{value, cache, 1},
			Want: []any{of(f32, []int{2, 3, 1, 2}, 0, 0, 5, 6, 0, 0, 1, 1, 7, 8, 1, 1), tensor.New(f32, 1)}},
		{Name: "last place", Op: updateCacheOut, Args: []any{two, cache, 1},
			Want: []any{of(f32, []int{2, 3, 1, 2}, 0, 0, 1, 2, 3, 4, 1, 1, 5, 6, 7, 8), tensor.New(f32, 1)}},
		{Name: "by indices", Op: "llama::update_cache_with_indices.out", Args: []any{two, cache, 0, of(i64, []int{2, 2}, 2, 0, 1, 1)},
			Want: []any{of(f32, []int{2, 3, 1, 2}, 3, 4, 0, 0, 1, 2, 1, 1, 7, 8, 1, 1), tensor.New(f32, 1)}},
		{Name: "float16", Op: updateCacheOut, Args: []any{of(f32, []int{1, 1, 1, 2}, 5.0001, -65504), of(f16, []int{1, 3, 1, 2}, 1, 2, 3, 4, 5, 6), 1},
			Want: []any{of(f16, []int{1, 3, 1, 2}, 1, 2, 5, -65504, 5, 6), tensor.New(f32, 1)}},
		{Name: "float16 by indices", Op: "llama::update_cache_with_indices.out", Args: []any{two, half(cache, f16), 0, of(i64, []int{2, 2}, 2, 0, 1, 1)},
			Want: []any{of(f16, []int{2, 3, 1, 2}, 3, 4, 0, 0, 1, 2, 1, 1, 7, 8, 1, 1), tensor.New(f32, 1)}},
		{Name: "not a float16", Op: updateCacheOut, Args: []any{of(f32, []int{1, 1, 1, 2}, 5, -65505), tensor.New(f16, 1, 3, 1, 2), 1},
			Outs: []any{tensor.New(f32, 1)}, Refused: "numbers up to 65504, for the cache is float16"},
		{Name: "float32 of float16", Op: updateCacheOut, Args: []any{half(value, f16), cache, 1}, Outs: []any{tensor.New(f32, 1)}, Refused: "argument 0"},
		{Name: "no room", Op: updateCacheOut, Args: []any{two, cache, 2}, Outs: []any{tensor.New(f32, 1)}, Refused: "a position in [0, 1]"},
		{Name: "huge position", Op: updateCacheOut, Args: []any{two, cache, int64(math.MaxInt64)}, Outs: []any{tensor.New(f32, 1)}, Refused: "argument 2"},
		{Name: "negative position", Op: updateCacheOut, Args: []any{two, cache, -1}, Outs: []any{tensor.New(f32, 1)}, Refused: "argument 2"},
		{Name: "other heads", Op: updateCacheOut, Args: []any{tensor.New(f32, 2, 1, 2, 2), cache, 0}, Outs: []any{tensor.New(f32, 1)}, Refused: "argument 0"},
		{Name: "index beyond", Op: "llama::update_cache_with_indices.out", Args: []any{two, cache, 0, of(i64, []int{2, 2}, 2, 0, 1, 3)},
			Outs: []any{tensor.New(f32, 1)}, Refused: "indices in [0, 3)"},
	}...)
}

func TestAttentionWithCache(t *testing.T) {
	q, k, v := random(1, f32, 1, 3, 4, 8), random(2, f32, 1, 3, 2, 8), random(3, f32, 1, 3, 2, 8)
	for _, d := range []tensor.DType{f32, f16} {
		before, after := half(random(4, f32, 1, 9, 2, 8), d), [2]*tensor.Tensor{}
		for i, x := range []*tensor.Tensor{k, v} {
			after[i] = tensor.New(d, 1, 9, 2, 8)
			copy(after[i].Data, before.Data)
			copy(after[i].Data[4*2*8*d.Size():], half(x, d).Data)
		}
		kerneltest.Run(t, set, kerneltest.Case{Name: "causal, caches of " + d.String(), Op: "llama::sdpa_with_kv_cache.out",
			Args: []any{q, k, v, before, before, 4, 3, nil, 0.0, true, nil},
			Want: []any{after[0], after[1], attendNaive(q, after[0], after[1], nil, 4, true, 1/math.Sqrt(8))}})
	}
}

func TestGatedDeltaRule(t *testing.T) {
	// One head, two tokens, one channel: S = d·S; S += k·β·(v - k·S); out = q·S.
	one := []kerneltest.Case{{Name: "by hand", Op: deltaRuleOut, Args: []any{
		of(f32, []int{1, 1, 2, 1}, 1, 2), of(f32, []int{1, 1, 2, 1}, 1, 0.5), of(f32, []int{1, 1, 2, 1}, 3, 1),
		of(f32, []int{1, 1, 2}, 0.5, 1), of(f32, []int{1, 1, 2}, 0.5, 1), of(f32, []int{1, 1, 1, 1}, 2)},
		Want: []any{of(f32, []int{1, 1, 2, 1}, 2, 4), of(f32, []int{1, 1, 1, 1}, 2)}}}
	kerneltest.Run(t, set, one...)

	const heads, kvHeads, tokens, k, v = 4, 2, 7, 8, 6
	q, key, value := random(1, f32, 2, heads, tokens, k), random(2, f32, 2, kvHeads, tokens, k), random(3, f32, 2, kvHeads, tokens, v)
	decay, beta, state := random(4, f32, 2, kvHeads, tokens, k), random(5, f32, 2, kvHeads, tokens), random(6, f32, 2, kvHeads, k, v)
	for _, x := range []*tensor.Tensor{decay, beta, key} {
		for i := range tensor.Data[float32](x) {
			tensor.Data[float32](x)[i] *= 0.3
		}
	}
	out, final := deltaNaive(q, key, value, decay, beta, state)
	kerneltest.Run(t, set,
		kerneltest.Case{Name: "channels", Op: deltaRuleOut, Args: []any{q, key, value, decay, beta, state}, Want: []any{out, final}, Scale: 4},
		kerneltest.Case{Name: "decay of other sizes", Op: deltaRuleOut, Args: []any{q, key, value, random(4, f32, 2, kvHeads, tokens, k-1), beta, state},
			Outs: []any{out, final}, Refused: "argument 3"},
	)
}

// deltaNaive runs the recurrence in float64.
func deltaNaive(q, key, value, decay, beta, state *tensor.Tensor) (out, final *tensor.Tensor) {
	batches, heads, tokens, nk := q.Sizes[0], q.Sizes[1], q.Sizes[2], q.Sizes[3]
	kvHeads, nv := key.Sizes[1], value.Sizes[3]
	s, qv, kv, vv, dv, bv := values(state), values(q), values(key), values(value), values(decay), values(beta)
	o := make([]float64, batches*heads*tokens*nv)
	for head := range batches * kvHeads {
		for t := range tokens {
			at := head*tokens + t
			for j := range nv {
				predicted := 0.0
				for i := range nk {
					s[(head*nk+i)*nv+j] *= dv[at*nk+i]
					predicted += kv[at*nk+i] * s[(head*nk+i)*nv+j]
				}
				for i := range nk {
					s[(head*nk+i)*nv+j] += kv[at*nk+i] * bv[at] * (vv[at*nv+j] - predicted)
				}
				for r := range heads / kvHeads {
					h := head*(heads/kvHeads) + r
					for i := range nk {
						o[(h*tokens+t)*nv+j] += qv[(h*tokens+t)*nk+i] * s[(head*nk+i)*nv+j]
					}
				}
			}
		}
	}
	return of(f32, []int{batches, heads, tokens, nv}, o...), of(f32, state.Sizes, s...)
}

func TestHadamard(t *testing.T) {
	for i, x := range williamson {
		for j, y := range williamson {
			dot := 0
			for k := range x {
				if x[k] == y[k] {
					dot++
				} else {
					dot--
				}
			}
			if want := map[bool]int{true: 28}[i == j]; dot != want {
				t.Errorf("rows %d and %d of the 28×28 matrix: product %d, want %d", i, j, dot, want)
			}
		}
	}
	first := make([]float64, 28)
	for i := range first {
		first[i] = map[byte]float64{'+': 1, '-': -1}[williamson[i][2]]
	}
	unit := make([]float64, 28)
	unit[2] = 1
	x := random(1, f64, 2, 64)
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "two", Op: transformOut, Args: []any{of(f32, []int{2, 2}, 1, 2, 3, 5)}, Want: []any{of(f32, []int{2, 2}, 3/math.Sqrt2, -1/math.Sqrt2, 8/math.Sqrt2, -2/math.Sqrt2)}},
		{Name: "64", Op: transformOut, Args: []any{x}, Want: []any{sylvester(x)}, Scale: 10},
		{Name: "one", Op: transformOut, Args: []any{of(f16, []int{1}, 3)}, Want: []any{of(f16, []int{1}, 3)}},
		{Name: "28", Op: transformOut, Args: []any{of(f32, []int{28}, unit...)}, Want: []any{of(f32, []int{28}, first...)}},
		{Name: "rank 0", Op: transformOut, Args: []any{of(f32, nil, 3)}, Want: []any{of(f32, nil, 3)}},
		{Name: "three", Op: transformOut, Args: []any{tensor.New(f32, 3)}, Outs: []any{tensor.New(f32, 3)}, Refused: "power of two"},
	}...)
}

// sylvester multiplies rows by the Hadamard matrix whose sign at i, j is the parity of
// the bits that i and j share.
func sylvester(x *tensor.Tensor) *tensor.Tensor {
	n := x.Sizes[1]
	in, out := values(x), make([]float64, x.Numel())
	for at := range out {
		for j := range n {
			sign := 1.0
			for b := at % n & j; b != 0; b &= b - 1 {
				sign = -sign
			}
			out[at] += sign * in[at/n*n+j]
		}
		out[at] /= math.Sqrt(float64(n))
	}
	return of(f64, x.Sizes, out...)
}

func TestTilesAndCopies(t *testing.T) {
	u8 := tensor.Uint8
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "tiles", Op: "preprocess::tile_crop.out", Args: []any{of(u8, []int{1, 2, 4}, 0, 1, 2, 3, 4, 5, 6, 7), 2},
			Want: []any{of(u8, []int{2, 1, 2, 2}, 0, 1, 4, 5, 2, 3, 6, 7)}},
		{Name: "two channels", Op: "preprocess::tile_crop.out", Args: []any{of(f32, []int{2, 2, 1}, 0, 1, 2, 3), 1},
			Want: []any{of(f32, []int{2, 2, 1, 1}, 0, 2, 1, 3)}},
		{Name: "size that does not divide", Op: "preprocess::tile_crop.out", Args: []any{tensor.New(u8, 1, 2, 4), 4},
			Outs: []any{tensor.New(u8, 2, 1, 2, 2)}, Refused: "a divisor"},
		{Name: "size 0", Op: "preprocess::tile_crop.out", Args: []any{tensor.New(u8, 1, 2, 4), 0},
			Outs: []any{tensor.New(u8, 2, 1, 2, 2)}, Refused: "a divisor"},
		{Name: "copy", Op: "llama::fallback.out", Args: []any{of(f16, []int{2}, 1, 2)}, Want: []any{of(f16, []int{2}, 1, 2)}},
		{Name: "copy of another type", Op: "llama::fallback.out", Args: []any{of(f16, []int{2}, 1, 2)}, Outs: []any{tensor.New(f32, 2)}, Refused: "argument 1"},
	}...)
}

func TestNoAllocs(t *testing.T) {
	q, k := random(1, f32, 1, 40, 4, 16), random(2, f32, 1, 300, 2, 16)
	h := half(q, f16)
	kerneltest.NoAllocs(t, set, []kerneltest.Case{
		{Name: "attention", Op: sdpa, Args: []any{q, k, k, 100, nil, 0.0, true, nil}, Want: []any{q}},
		{Name: "attention in halves", Op: sdpa, Args: []any{h, half(k, f16), half(k, f16), 100, nil, 0.0, true, nil}, Want: []any{h}},
		{Name: "cache", Op: updateCacheOut, Args: []any{random(1, f32, 1, 4, 2, 16), k, 7}, Want: []any{k, tensor.New(f32, 1)}},
		{Name: "delta rule", Op: deltaRuleOut, Args: []any{random(1, f32, 1, 4, 3, 8), random(2, f32, 1, 2, 3, 8), random(3, f32, 1, 2, 3, 8),
			random(4, f32, 1, 2, 3), random(5, f32, 1, 2, 3), random(6, f32, 1, 2, 8, 8)}, Want: []any{tensor.New(f32, 1, 4, 3, 8), tensor.New(f32, 1, 2, 8, 8)}},
		{Name: "transform", Op: transformOut, Args: []any{random(1, f32, 8, 4096)}, Want: []any{tensor.New(f32, 8, 4096)}},
		{Name: "tiles", Op: "preprocess::tile_crop.out", Args: []any{random(1, f32, 3, 8, 8), 4}, Want: []any{tensor.New(f32, 4, 3, 4, 4)}},
	}...)
}

func TestCalls(t *testing.T) { kerneltest.Calls(t, set) }

func TestRandomCalls(t *testing.T) { kerneltest.Random(t, set, 500) }

func FuzzOps(f *testing.F) { kerneltest.Fuzz(f, set) }
