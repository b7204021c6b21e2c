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

// Heads are computed together if their keys take at least nearBytes, for a first-level cache holds fewer of them anyway, and those of a
// block at most groupBytes: these stay in the second-level cache until the last head has read them.
const nearBytes, groupBytes = 32 << 10, 256 << 10

// tile chooses the query blocks, the key heads of a group, and the scratch memory for one of them. The rows of a
// block are the queries of all heads that share a key head, token by token: each key
// and value is read once for all of them. Heads of a few queries are computed together if their keys are side by side, see read.
func (p *attention) tile() {
	all := p.rows * p.reps
	p.block = max(1, min(all, queryBlock))
	p.blocks = (all + p.block - 1) / p.block
	p.group = 1
	if n := p.heads / p.reps; all <= gemm.FewRows && p.k.pos == n {
		if each := n * p.dim * p.k.size; p.keys*each >= nearBytes && keyBlock*each <= groupBytes {
			p.group = n
		}
	}
	keys, rows := min(p.keys, keyBlock), p.block
	p.perHead = rows * (2*p.dim + keys + 2)
	p.perWorker = p.group*p.perHead + keys*p.dim + gemm.TransposedWork(p.dim)
}

// headMemory is the scratch memory of a block of queries.
type headMemory struct {
	q, acc   []float32 // rows × dim: the queries times the scale; the sums of values
	scores   []float32 // rows × keys
	max, sum []float32 // of each row
}

// head returns the memory of a head of a worker's group.
func (p *attention) head(worker, i int) (m headMemory) {
	s := p.scratch[worker*p.perWorker+i*p.perHead:][:p.perHead]
	cut := func(n int) []float32 {
		part := s[:n]
		s = s[n:]
		return part
	}
	keys, rows := min(p.keys, keyBlock), p.block
	m.q, m.acc, m.scores = cut(rows*p.dim), cut(rows*p.dim), cut(rows*keys)
	m.max, m.sum = cut(rows), cut(rows)
	return m
}

// shared returns a worker's memory for keys or values of another type than float32, keys × dim, and for products with keys.
func (p *attention) shared(worker int) (kv, work []float32) {
	s, n := p.scratch[worker*p.perWorker+p.group*p.perHead:][:p.perWorker-p.group*p.perHead], min(p.keys, keyBlock)*p.dim
	return s[:n], s[n:]
}

// Range computes query blocks [lo, hi), counted over batches, key heads and blocks.
func (p *attention) Range(worker, lo, hi int) {
	kvHeads := p.heads / p.reps
	for n := 0; lo < hi; lo += n {
		head := lo / p.blocks
		n = min(p.group, hi-lo, kvHeads-head%kvHeads) // more than one only if a head has one block
		p.attend(worker, heads{head / kvHeads, head % kvHeads, n}, lo%p.blocks*p.block)
	}
}

// heads are n key heads of a batch.
type heads struct{ batch, first, n int }

// query returns the head and the position of row i of a key head.
func (p *attention) query(kvHead, i int) (head, pos int) {
	return kvHead*p.reps + i%p.reps, i / p.reps
}

// attend computes one block of queries of each of some heads, from row first of a key head on.
func (p *attention) attend(worker int, h heads, first int) {
	rows := min(p.block, p.rows*p.reps-first)
	for i := range h.n {
		m := p.head(worker, i)
		p.loadQueries(&m, h.batch, h.first+i, first, rows)
		clear(m.acc)
		for r := range rows {
			m.max[r], m.sum[r] = float32(math.Inf(-1)), 0
		}
	}
	last := p.keys
	if p.causal {
		last = min(last, p.start+(first+rows-1)/p.reps+1)
	}
	kv, work := p.shared(worker)
	for key := 0; key < last; key += keyBlock {
		p.c.Poll()
		n := min(keyBlock, last-key)
		if p.hidden(first, rows, key, n) {
			continue
		}
		p.k.read(h, key, n)
		for i := range h.n {
			m := p.head(worker, i)
			k, stride := p.k.rows(h.batch, h.first+i, key, n, kv)
			gemm.MulTransposed(rows, n, p.dim, m.q, p.dim, k, stride, m.scores, n, work)
			for r := range rows {
				p.updateSoftmax(&m, (first+r)/p.reps, r, key, n)
			}
		}
		p.v.read(h, key, n)
		for i := range h.n {
			m := p.head(worker, i)
			v, stride := p.v.rows(h.batch, h.first+i, key, n, kv)
			simd.MulAdd(rows, p.dim, n, m.scores, n, 1, v, stride, m.acc, p.dim)
		}
	}
	for i := range h.n {
		m := p.head(worker, i)
		p.store(&m, h.batch, h.first+i, first, rows)
	}
}

// hidden reports whether the mask hides n keys from all rows of a block, as that of a window hides half of a ring.
func (p *attention) hidden(first, rows, key, n int) bool {
	if p.mask == nil {
		return false
	}
	for i := first / p.reps; i <= (first+rows-1)/p.reps; i++ {
		for _, x := range p.mask[i*p.keys+key:][:n] {
			if !math.IsInf(float64(x), -1) {
				return false
			}
		}
	}
	return true
}

// store stores the rows of a head, divided by their sums.
func (p *attention) store(m *headMemory, b, kvHead, first, rows int) {
	for r := range rows {
		row := m.acc[r*p.dim : (r+1)*p.dim]
		simd.ScaleShift(row, row, 1/m.sum[r], 0)
		head, pos := p.query(kvHead, first+r)
		at := p.out.row(b, head, pos) * p.dim * p.out.size
		p.out.store(p.out.bytes[at:at+p.dim*p.out.size], row)
	}
}

// read reads the rows of all heads for n positions once, in the order of memory, so that they are in the cache. A head alone reads
// some lines and skips those of the others: the processor does not load such rows ahead, see BenchmarkLongCache.
func (s *source) read(h heads, pos, n int) {
	if h.n > 1 && h.n == s.pos {
		touch(s.bytes[s.row(h.batch, 0, pos)*s.dim*s.size:][:n*s.pos*s.dim*s.size])
	}
}

// touch reads a byte of each cache line.
//
//go:noinline
func touch(b []byte) (x byte) {
	for i := 0; i < len(b); i += 64 {
		x ^= b[i]
	}
	return x
}

// loadQueries loads the queries, times the scale.
func (p *attention) loadQueries(m *headMemory, b, kvHead, first, rows int) {
	for r := range rows {
		row := m.q[r*p.dim : (r+1)*p.dim]
		head, pos := p.query(kvHead, first+r)
		q, _ := p.q.rows(b, head, pos, 1, row)
		simd.ScaleShift(row, q, p.scale, 0)
	}
}

// updateSoftmax converts row r of the scores, for position i and the n keys from key on, to weights relative to the
// largest score so far, and scales the earlier sums accordingly.
func (p *attention) updateSoftmax(m *headMemory, i, r, key, n int) {
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
