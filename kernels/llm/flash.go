package llm

import (
	"math"

	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
)

// The attention of a head is computed by blocks of queries and, for each, blocks of keys: the scores of a block stay
// in the cache, and a running maximum and sum of each row result in the softmax of all keys (flash attention).
const (
	queryBlock = 32  // queries of a block
	keyBlock   = 128 // keys of a block
)

// tile chooses the query blocks and the scratch memory for one of them. The rows of a
// block are the queries of all heads that share a key head, token by token: each key
// and value is read once for all of them.
func (p *attention) tile() {
	all := p.rows * p.reps
	p.block = max(1, min(all, queryBlock))
	p.blocks = (all + p.block - 1) / p.block
	keys, rows := min(p.keys, keyBlock), p.block
	p.perWorker = rows*(2*p.dim+keys+2) + keys*p.dim + gemm.TransposedWork(p.dim)
}

// tileMemory is the scratch memory of a block of queries.
type tileMemory struct {
	q, acc   []float32 // rows × dim: the queries times the scale; the sums of values
	scores   []float32 // rows × keys
	max, sum []float32 // of each row
	kv       []float32 // keys × dim: keys or values of another type than float32
	work     []float32 // for products with keys
}

func (p *attention) memory(worker int) (m tileMemory) {
	s := p.scratch[worker*p.perWorker:][:p.perWorker]
	cut := func(n int) []float32 {
		part := s[:n]
		s = s[n:]
		return part
	}
	keys, rows := min(p.keys, keyBlock), p.block
	m.q, m.acc, m.scores = cut(rows*p.dim), cut(rows*p.dim), cut(rows*keys)
	m.max, m.sum, m.kv, m.work = cut(rows), cut(rows), cut(keys*p.dim), cut(gemm.TransposedWork(p.dim))
	return m
}

// Range computes query blocks [lo, hi), counted over batches, key heads and blocks.
func (p *attention) Range(worker, lo, hi int) {
	m := p.memory(worker)
	kvHeads := p.heads / p.reps
	for i := lo; i < hi; i++ {
		head := i / p.blocks
		p.attend(&m, head/kvHeads, head%kvHeads, i%p.blocks*p.block)
	}
}

// query returns the head and the position of row i of a key head.
func (p *attention) query(kvHead, i int) (head, pos int) {
	return kvHead*p.reps + i%p.reps, i / p.reps
}

// attend computes one block of queries, from row first of a key head on.
func (p *attention) attend(m *tileMemory, b, kvHead, first int) {
	rows := min(p.block, p.rows*p.reps-first)
	p.loadQueries(m, b, kvHead, first, rows)
	clear(m.acc)
	for r := range rows {
		m.max[r], m.sum[r] = float32(math.Inf(-1)), 0
	}
	last := p.keys
	if p.causal {
		last = min(last, p.start+(first+rows-1)/p.reps+1)
	}
	for key := 0; key < last; key += keyBlock {
		p.c.Poll()
		n := min(keyBlock, last-key)
		k, stride := p.k.rows(b, kvHead, key, n, m.kv)
		gemm.MulTransposed(rows, n, p.dim, m.q, p.dim, k, stride, m.scores, n, m.work)
		for r := range rows {
			p.updateSoftmax(m, (first+r)/p.reps, r, key, n)
		}
		v, stride := p.v.rows(b, kvHead, key, n, m.kv)
		simd.MulAdd(rows, p.dim, n, m.scores, n, 1, v, stride, m.acc, p.dim)
	}
	for r := range rows {
		row := m.acc[r*p.dim : (r+1)*p.dim]
		simd.ScaleShift(row, row, 1/m.sum[r], 0)
		head, pos := p.query(kvHead, first+r)
		at := p.out.row(b, head, pos) * p.dim * p.out.size
		p.out.store(p.out.bytes[at:at+p.dim*p.out.size], row)
	}
}

// loadQueries loads the queries, times the scale.
func (p *attention) loadQueries(m *tileMemory, b, kvHead, first, rows int) {
	for r := range rows {
		row := m.q[r*p.dim : (r+1)*p.dim]
		head, pos := p.query(kvHead, first+r)
		q, _ := p.q.rows(b, head, pos, 1, row)
		simd.ScaleShift(row, q, p.scale, 0)
	}
}

// updateSoftmax converts row r of the scores, for position i and the n keys from key on, to weights relative to the
// largest score so far, and scales the earlier sums accordingly.
func (p *attention) updateSoftmax(m *tileMemory, i, r, key, n int) {
	row := m.scores[r*n : (r+1)*n]
	if p.mask != nil {
		for j, x := range p.mask[i*p.keys+key:][:n] {
			row[j] += x
		}
	}
	seen := n
	if p.causal {
		seen = max(0, min(n, p.start+i+1-key))
		clear(row[seen:])
	}
	row = row[:seen]
	largest := max(m.max[r], simd.Max(row))
	if math.IsInf(float64(largest), -1) {
		clear(row)
		return
	}
	sum := simd.ExpSum(row, row, largest)
	before := float32(math.Exp(float64(m.max[r] - largest)))
	m.sum[r] = m.sum[r]*before + sum
	m.max[r] = largest
	if before != 1 {
		acc := m.acc[r*p.dim : (r+1)*p.dim]
		simd.ScaleShift(acc, acc, before, 0)
	}
}
