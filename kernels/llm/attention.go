package llm

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// customSDPA is llama::custom_sdpa.out: scaled dot product attention of query [B, S, H, D] over key and value [B,
// Smax, Hkv, D], where H is a multiple of Hkv.
//
//	out = softmax(query · keyᵀ · scale + attn_mask) · value
//
// With a mask [S, Smax] of float32 queries attend to all keys, else to those before position start_pos+S. In causal
// attention, which has no mask, token i attends to the keys up to position start_pos+i. The default scale is 1/√D.
func customSDPA(c *kernels.Ctx, a kernels.Args) error {
	return attend(c, a, roles{query: 0, key: 1, value: 2, pos: 3, mask: 4, causal: 6, scale: 7, out: 8, seq: 1})
}

// sdpaWithCache is llama::sdpa_with_kv_cache.out: key and value [B, S, Hkv, D] are copied to their caches at
// start_pos, then the query attends to the caches.
func sdpaWithCache(c *kernels.Ctx, a kernels.Args) error {
	p := kernels.Keep[attention](c)
	p.roles = roles{query: 0, key: 3, value: 4, pos: 5, mask: 7, causal: 9, scale: 10, out: 11, seq: 1}
	for i := 1; i <= 2; i++ {
		if err := checkUpdate(a, i, i+2, 5); err != nil {
			return err
		}
	}
	if n := a.Tensor(1).Sizes[1]; a.Int(6) != int64(n) || a.Tensor(2).Sizes[1] != n {
		return kernels.Badf(6, fmt.Sprintf("the length of key and value, %d and %d", n, a.Tensor(2).Sizes[1]), "%d", a.Int(6))
	}
	if err := p.prepare(a); err != nil {
		return err
	}
	for i := 1; i <= 2; i++ {
		if err := put(a, i, i+2, int(a.Int(5))); err != nil {
			return err
		}
	}
	return p.run(c, a)
}

// quantizedSDPA is llama::custom_quantized_sdpa.out: customSDPA of float tensors, or of int8 tensors with int8 zero
// points and float32 scales for every row of D elements. With is_seq_at_dim_2 tensors are [B, H, S, D].
func quantizedSDPA(c *kernels.Ctx, a kernels.Args) error {
	r := roles{query: 0, key: 1, value: 2, pos: 3, mask: 4, causal: 6, scale: 7, out: 15, quant: 8, seq: 1}
	if a.Bool(14) {
		r.seq = 2
	}
	return attend(c, a, r)
}

func attend(c *kernels.Ctx, a kernels.Args, r roles) error {
	p := kernels.Keep[attention](c)
	p.roles = r
	if err := p.prepare(a); err != nil {
		return err
	}
	return p.run(c, a)
}

// roles contains the argument indices of an attention.
type roles struct {
	query, key, value, pos, mask, causal, scale, out int
	quant                                            int // the first of six parameter tensors, or 0
	seq                                              int // the dimension of positions; heads are the other of 1 and 2
}

// attention is the state of a call.
type attention struct {
	roles
	c                               *kernels.Ctx
	batches, heads, rows, keys, dim int
	reps                            int // query heads for each key head
	start                           int
	causal                          bool
	scale                           float32
	mask                            []float32 // rows × keys, or nil
	q, k, v                         source
	out                             sink
	blocks                          int // query blocks of a key head
	block                           int // rows of a query block
	group                           int // key heads that are computed together
	scratch                         []float32
	perWorker, perHead              int
}

// prepare checks the arguments and sets what does not depend on their elements.
func (p *attention) prepare(a kernels.Args) error {
	if err := p.checkTensors(a); err != nil {
		return err
	}
	q, k := a.Tensor(p.roles.query), a.Tensor(p.key)
	head := 3 - p.seq
	p.batches, p.heads, p.rows, p.dim = q.Sizes[0], q.Sizes[head], q.Sizes[p.seq], q.Sizes[3]
	kvHeads := k.Sizes[head]
	if kvHeads == 0 || p.heads%kvHeads != 0 {
		return kernels.Badf(p.key, fmt.Sprintf("a number of heads that divides %d", p.heads), "%d", kvHeads)
	}
	p.reps = p.heads / kvHeads
	if err := p.window(a, k.Sizes[p.seq]); err != nil {
		return err
	}
	p.scale = float32(1 / math.Sqrt(float64(p.dim)))
	if !a.IsNone(p.roles.scale) {
		p.scale = float32(a.Float(p.roles.scale))
	}
	return p.checkParams(a)
}

// checkTensors checks query, key, value and out against each other.
func (p *attention) checkTensors(a kernels.Args) error {
	q, k := a.Tensor(p.roles.query), a.Tensor(p.key)
	for _, i := range [...]int{p.roles.query, p.key, p.value} {
		t := a.Tensor(i)
		if !floating(t.DType) && (t.DType != tensor.Int8 || p.quant == 0) || !keeps(t.DType, q.DType) {
			return kernels.Bad(i, t.DType.String(), "one of "+floatTypes+" for query, key and value")
		}
		if t.Rank() != 4 || !t.IsContiguous() {
			return kernels.Badf(i, "a contiguous tensor of rank 4", "%v with dim order %v", t, t.DimOrder)
		}
		if t.Sizes[0] != q.Sizes[0] || t.Sizes[3] != q.Sizes[3] {
			return kernels.Badf(i, fmt.Sprintf("batches and dimensions as in the query, %v", q.Sizes), "%v", t.Sizes)
		}
	}
	if v := a.Tensor(p.value); v.Sizes[1] != k.Sizes[1] || v.Sizes[2] != k.Sizes[2] {
		return kernels.Badf(p.value, fmt.Sprintf("sizes as of the key, %v", k.Sizes), "%v", v.Sizes)
	}
	if o := a.Tensor(p.roles.out); !floating(o.DType) || q.DType != tensor.Int8 && o.DType != q.DType {
		return kernels.Bad(p.roles.out, o.DType.String(), "the query's type, or a float type for int8")
	}
	return nil
}

func floating(d tensor.DType) bool {
	return d == tensor.Float32 || d == tensor.Float16 || d == tensor.BFloat16
}

// window derives which of the most keys count, from mask or position.
func (p *attention) window(a kernels.Args, maxKeys int) error {
	p.causal, p.mask, p.keys, p.start = a.Bool(p.roles.causal), nil, maxKeys, 0
	if mask := a.OptTensor(p.roles.mask); mask != nil {
		if p.causal {
			return kernels.Bad(p.roles.mask, "a mask", "none for causal attention")
		}
		if mask.DType != tensor.Float32 || mask.Rank() != 2 || !mask.IsContiguous() {
			return kernels.Badf(p.roles.mask, "a float32 matrix", "%v", mask)
		}
		if mask.Numel() == 0 {
			return nil
		}
		if mask.Sizes[0] != p.rows || mask.Sizes[1] != maxKeys {
			return kernels.Badf(p.roles.mask, fmt.Sprintf("[%d %d], queries by keys", p.rows, maxKeys), "%v", mask.Sizes)
		}
		p.mask = tensor.Data[float32](mask)
		return nil
	}
	start := a.Int(p.pos)
	if start < 0 || start > int64(maxKeys-p.rows) {
		return kernels.Badf(p.pos, fmt.Sprintf("a position in [0, %d]: %d queries, %d keys", maxKeys-p.rows, p.rows, maxKeys), "%d", start)
	}
	p.start, p.keys = int(start), int(start)+p.rows
	return nil
}

// checkParams checks the parameters of int8 tensors.
func (p *attention) checkParams(a kernels.Args) error {
	if a.Tensor(p.roles.query).DType != tensor.Int8 {
		return nil
	}
	for i, of := range [...]int{p.roles.query, p.key, p.value} {
		t := a.Tensor(of)
		for j, d := range [...]tensor.DType{tensor.Int8, tensor.Float32} {
			arg := p.quant + 2*i + j
			q := a.OptTensor(arg)
			if q == nil {
				return kernels.Bad(arg, "none", "parameters for int8")
			}
			if q.DType != d || q.Rank() != 4 || !q.IsContiguous() || q.Sizes[0] != t.Sizes[0] ||
				q.Sizes[1] != t.Sizes[1] || q.Sizes[2] != t.Sizes[2] || q.Sizes[3] != 1 {
				return kernels.Badf(arg, fmt.Sprintf("%v%v", d, []int{t.Sizes[0], t.Sizes[1], t.Sizes[2], 1}), "%v", q)
			}
		}
	}
	return nil
}

// run resizes the out and attends.
func (p *attention) run(c *kernels.Ctx, a kernels.Args) error {
	q := a.Tensor(p.roles.query)
	if err := kernels.ResizeOut(a, p.roles.out, q.Sizes); err != nil {
		return err
	}
	out := a.Tensor(p.roles.out)
	if !out.IsContiguous() {
		return kernels.Badf(p.roles.out, "a contiguous tensor", "dim order %v", out.DimOrder)
	}
	if q.Numel() == 0 {
		return nil
	}
	p.q, p.k, p.v = p.source(a, p.roles.query, 0), p.source(a, p.key, 2), p.source(a, p.value, 4)
	p.out = sink{bytes: out.Data, size: out.DType.Size(), store: tensor.Storer[float32](out.DType), layout: p.layout(out)}
	p.c = c
	p.tile()
	p.scratch = kernels.Scratch[float32](c, p.perWorker*c.Threads())
	c.Parallel(p.batches*(p.heads/p.reps)*p.blocks, cpu.Grain(p.block*p.keys*p.dim, macCost), p)
	return nil
}

// macCost is the cost of a multiplication and addition in picoseconds.
const macCost = 150

// layout computes the index of a row of D elements.
type layout struct{ batch, head, pos int }

func (l layout) row(b, h, s int) int { return b*l.batch + h*l.head + s*l.pos }

func (p *attention) layout(t *tensor.Tensor) layout {
	l := layout{batch: t.Sizes[1] * t.Sizes[2], head: 1, pos: t.Sizes[2]}
	if p.seq == 2 {
		l.head, l.pos = t.Sizes[2], 1
	}
	return l
}

// source is an input of the attention.
type source struct {
	layout
	dim    int
	floats []float32 // of a float32 tensor
	bytes  []byte
	size   int
	load   tensor.LoadFunc[float32]
	zero   []int8 // of an int8 tensor
	scale  []float32
}

func (p *attention) source(a kernels.Args, i, quant int) source {
	t := a.Tensor(i)
	s := source{layout: p.layout(t), dim: p.dim, bytes: t.Data, size: t.DType.Size(), load: tensor.Loader[float32](t.DType)}
	switch t.DType {
	case tensor.Float32:
		s.floats = tensor.Data[float32](t)
	case tensor.Int8:
		s.zero = tensor.Data[int8](a.Tensor(p.quant + quant))
		s.scale = tensor.Data[float32](a.Tensor(p.quant + quant + 1))
	}
	return s
}

// rows returns n rows from position pos, and the distance from one to the next. Rows of types other than float32 are
// converted into buf.
func (s *source) rows(b, h, pos, n int, buf []float32) (rows []float32, stride int) {
	first := s.row(b, h, pos)
	if s.floats != nil {
		return s.floats[first*s.dim:], s.pos * s.dim
	}
	for i := range n {
		r := first + i*s.pos
		row := buf[i*s.dim : (i+1)*s.dim]
		s.load(row, s.bytes[r*s.dim*s.size:(r+1)*s.dim*s.size])
		if s.scale == nil {
			continue
		}
		zero, scale := float32(s.zero[r]), s.scale[r]
		for j := range row {
			row[j] = (row[j] - zero) * scale
		}
	}
	return buf, s.dim
}

// sink is the out of the attention.
type sink struct {
	layout
	bytes []byte
	size  int
	store tensor.StoreFunc[float32]
}

const floatTypes = "float32, float16, bfloat16"
