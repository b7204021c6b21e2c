package llm

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Arguments of gated_delta_rule.
const (
	deltaQuery = iota // [B, H, T, K], H a multiple of Hkv
	deltaKey          // [B, Hkv, T, K]
	deltaValue        // [B, Hkv, T, V]
	deltaDecay        // [B, Hkv, T, K], or [B, Hkv, T] for one decay of all channels
	deltaBeta         // [B, Hkv, T]
	deltaState        // [B, Hkv, K, V]
	deltaOut          // [B, H, T, V]
	deltaFinal        // [B, Hkv, K, V]
)

// gatedDeltaRule is llama::gated_delta_rule.out, a linear attention that updates the state S of each key head with
// every token:
//
//	S   = diag(decay) · S
//	S   = S + key ⊗ beta · (value - keyᵀ·S)
//	out = queryᵀ · S
//
// Tokens are processed one by one. Upstream's chunked form for long inputs only rounds differently.
func gatedDeltaRule(c *kernels.Ctx, a kernels.Args) error {
	p := kernels.Keep[deltaRule](c)
	if err := p.check(a); err != nil {
		return err
	}
	q := a.Tensor(deltaQuery)
	p.sizes = append(append(p.sizes[:0], q.Sizes[:3]...), p.v)
	if err := kernels.ResizeOut(a, deltaOut, p.sizes); err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, deltaFinal, a.Tensor(deltaState).Sizes); err != nil {
		return err
	}
	p.c = c
	p.bind(a)
	copy(p.state, tensor.Data[float32](a.Tensor(deltaState)))
	p.scratch = kernels.Scratch[float32](c, (p.k+p.v)*c.Threads())
	c.Parallel(p.batches*p.kvHeads, cpu.Grain(3*p.tokens*p.k*p.v, macCost), p)
	return nil
}

// deltaRule is the loop over batches and key heads.
type deltaRule struct {
	c                                     *kernels.Ctx
	batches, heads, kvHeads, tokens, k, v int
	channels                              int // decays of a token: k or 1
	sizes                                 []int
	query, key, value, decay, beta        []float32
	state, out                            []float32
	scratch                               []float32 // per thread: k decayed keys, v differences
}

func (p *deltaRule) check(a kernels.Args) error {
	for i := deltaQuery; i <= deltaFinal; i++ {
		t := a.Tensor(i)
		if t.DType != tensor.Float32 || !t.IsContiguous() {
			return kernels.Badf(i, "a contiguous tensor of float32", "%v with dim order %v", t, t.DimOrder)
		}
		if i <= deltaValue && t.Rank() != 4 {
			return kernels.Badf(i, "rank 4", "%v", t)
		}
	}
	q, key, value := a.Tensor(deltaQuery), a.Tensor(deltaKey), a.Tensor(deltaValue)
	p.batches, p.heads, p.tokens, p.k = q.Sizes[0], q.Sizes[1], q.Sizes[2], q.Sizes[3]
	p.kvHeads, p.v = key.Sizes[1], value.Sizes[3]
	if p.kvHeads == 0 || p.heads%p.kvHeads != 0 {
		return kernels.Badf(deltaKey, fmt.Sprintf("a number of heads that divides %d", p.heads), "%d", p.kvHeads)
	}
	return p.checkSizes(a)
}

// checkSizes checks the sizes of every input but the query, whose sizes they must match.
func (p *deltaRule) checkSizes(a kernels.Args) error {
	decay := 4
	if p.channels = p.k; a.Tensor(deltaDecay).Rank() == 3 {
		p.channels, decay = 1, 3
	}
	tokens := [4]int{p.batches, p.kvHeads, p.tokens}
	for i, want := range [...]struct {
		rank, last int
		sizes      [4]int
	}{
		deltaKey: {4, p.k, tokens}, deltaValue: {4, p.v, tokens}, deltaDecay: {decay, p.k, tokens},
		deltaBeta: {3, 0, tokens}, deltaState: {4, p.v, [4]int{p.batches, p.kvHeads, p.k}},
	} {
		want.sizes[3] = want.last
		if t := a.Tensor(i); i > deltaQuery && !slices.Equal(t.Sizes, want.sizes[:want.rank]) {
			return kernels.Badf(i, fmt.Sprintf("%v", append([]int{}, want.sizes[:want.rank]...)), "%v", t.Sizes)
		}
	}
	return nil
}

func (p *deltaRule) bind(a kernels.Args) {
	for i, s := range [...]*[]float32{&p.query, &p.key, &p.value, &p.decay, &p.beta} {
		*s = tensor.Data[float32](a.Tensor(i))
	}
	p.out, p.state = tensor.Data[float32](a.Tensor(deltaOut)), tensor.Data[float32](a.Tensor(deltaFinal))
}

// Range runs key heads [lo, hi), counted over batches.
func (p *deltaRule) Range(worker, lo, hi int) {
	scratch := p.scratch[worker*(p.k+p.v):][:p.k+p.v]
	for head := lo; head < hi; head++ {
		state := p.state[head*p.k*p.v:][:p.k*p.v]
		for t := range p.tokens {
			p.c.Poll()
			p.token(head*p.tokens+t, state, scratch[:p.k], scratch[p.k:])
			p.read(head, t, state)
		}
	}
}

// token writes token at, counted over batches, key heads and tokens, into the state.
func (p *deltaRule) token(at int, state, decayed, delta []float32) {
	key, decay := p.key[at*p.k:(at+1)*p.k], p.decay[at*p.channels:(at+1)*p.channels]
	for i := range decayed {
		d := decay[i%p.channels]
		decayed[i] = d * key[i]
	}
	clear(delta)
	simd.MulAdd(1, p.v, p.k, decayed, p.k, 1, state, p.v, delta, p.v)
	for i, v := range p.value[at*p.v : (at+1)*p.v] {
		delta[i] = (v - delta[i]) * p.beta[at]
	}
	for i, k := range key {
		row := state[i*p.v : (i+1)*p.v]
		simd.ScaleShift(row, row, decay[i%p.channels], 0)
		simd.Axpy(row, delta, k)
	}
}

// read multiplies the queries of token t of a key head by the state.
func (p *deltaRule) read(head, t int, state []float32) {
	reps := p.heads / p.kvHeads
	for h := head * reps; h < (head+1)*reps; h++ {
		at := h*p.tokens + t
		out := p.out[at*p.v : (at+1)*p.v]
		clear(out)
		simd.MulAdd(1, p.v, p.k, p.query[at*p.k:(at+1)*p.k], p.k, 1, state, p.v, out, p.v)
	}
}
