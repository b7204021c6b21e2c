package llm

import (
	"math"

	"github.com/etrun-go/etrun/kernels/simd"
)

// The attention of a head goes by blocks of queries and, for each, blocks of keys:
// the scores of a block stay in the cache, and a running maximum and sum of each row
// make the softmax of all keys (flash attention).
const (
	queryBlock = 32  // queries of a block
	keyBlock   = 128 // keys of a block
	// wide is the number of queries from which scores are computed as a matrix
	// product, else as dot products: one query of a generating model, or a few.
	wide = 8
)

// tile chooses the query blocks and the scratch memory for one of them.
func (p *attention) tile() {
	p.block = max(1, min(p.rows, queryBlock))
	p.blocks = (p.rows + p.block - 1) / p.block
	keys := min(p.keys, keyBlock)
	p.perWorker = p.block*(2*p.dim+keys+2) + keys*p.dim
	if p.block >= wide {
		p.perWorker += p.block * (p.dim + keys)
	}
}

// tileMemory is the scratch memory of a block of queries.
type tileMemory struct {
	q, acc        []float32 // rows × dim: the queries times the scale; the sums of values
	scores        []float32 // rows × keys
	most, sum     []float32 // of each row
	kv            []float32 // keys × dim: keys or values of another type than float32
	qt, scoresOfK []float32 // dim × rows and keys × rows, the transposes, from wide rows on
}

func (p *attention) memory(worker int) (m tileMemory) {
	s := p.scratch[worker*p.perWorker:][:p.perWorker]
	cut := func(n int) []float32 {
		part := s[:n]
		s = s[n:]
		return part
	}
	keys := min(p.keys, keyBlock)
	m.q, m.acc, m.scores = cut(p.block*p.dim), cut(p.block*p.dim), cut(p.block*keys)
	m.most, m.sum, m.kv = cut(p.block), cut(p.block), cut(keys*p.dim)
	if p.block >= wide {
		m.qt, m.scoresOfK = cut(p.block*p.dim), cut(p.block*keys)
	}
	return m
}

// Range computes query blocks [lo, hi), counted over batches, heads and blocks.
func (p *attention) Range(worker, lo, hi int) {
	m := p.memory(worker)
	for i := lo; i < hi; i++ {
		head := i / p.blocks
		p.attend(&m, head/p.heads, head%p.heads, i%p.blocks*p.block)
	}
}

// attend computes one block of queries from position first on.
func (p *attention) attend(m *tileMemory, b, h, first int) {
	rows := min(p.block, p.rows-first)
	p.loadQueries(m, b, h, first, rows)
	clear(m.acc)
	for r := range rows {
		m.most[r], m.sum[r] = float32(math.Inf(-1)), 0
	}
	last := p.keys
	if p.causal {
		last = min(last, p.start+first+rows)
	}
	for key := 0; key < last; key += keyBlock {
		n := min(keyBlock, last-key)
		k, stride := p.k.rows(b, h/p.reps, key, n, m.kv)
		p.score(m, k, stride, rows, n)
		for r := range rows {
			p.soften(m, first+r, r, key, n)
		}
		v, stride := p.v.rows(b, h/p.reps, key, n, m.kv)
		simd.MulAdd(rows, p.dim, n, m.scores, n, 1, v, stride, m.acc, p.dim)
	}
	for r := range rows {
		row := m.acc[r*p.dim : (r+1)*p.dim]
		simd.ScaleShift(row, row, 1/m.sum[r], 0)
		at := p.out.row(b, h, first+r) * p.dim * p.out.size
		p.out.store(p.out.bytes[at:at+p.dim*p.out.size], row)
	}
}

// loadQueries takes the queries times the scale, and their transpose where scores are
// computed as a product.
func (p *attention) loadQueries(m *tileMemory, b, h, first, rows int) {
	q, stride := p.q.rows(b, h, first, rows, m.q)
	for r := range rows {
		simd.ScaleShift(m.q[r*p.dim:(r+1)*p.dim], q[r*stride:], p.scale, 0)
	}
	if rows < wide {
		return
	}
	for r := range rows {
		for d, x := range m.q[r*p.dim : (r+1)*p.dim] {
			m.qt[d*rows+r] = x
		}
	}
}

// score computes the scores of n keys: rows × n.
func (p *attention) score(m *tileMemory, k []float32, stride, rows, n int) {
	if rows < wide {
		for r := range rows {
			q := m.q[r*p.dim : (r+1)*p.dim]
			for j := range n {
				m.scores[r*n+j] = simd.Dot(q, k[j*stride:])
			}
		}
		return
	}
	t := m.scoresOfK[:n*rows]
	clear(t)
	simd.MulAdd(n, rows, p.dim, k, stride, 1, m.qt, rows, t, rows)
	for j := range n {
		for r, x := range t[j*rows : (j+1)*rows] {
			m.scores[r*n+j] = x
		}
	}
}

// soften turns row r of the scores, of query i and n keys from key on, into weights
// relative to the greatest score so far, and brings what was summed up before into
// line with it.
func (p *attention) soften(m *tileMemory, i, r, key, n int) {
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
	most := max(m.most[r], simd.Max(row))
	if math.IsInf(float64(most), -1) {
		clear(row)
		return
	}
	sum := simd.ExpSum(row, row, most)
	before := float32(math.Exp(float64(m.most[r] - most)))
	m.sum[r] = m.sum[r]*before + sum
	m.most[r] = most
	if before != 1 {
		acc := m.acc[r*p.dim : (r+1)*p.dim]
		simd.ScaleShift(acc, acc, before, 0)
	}
}
