package gemm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// blocks is a matrix in memory, provided in blocks of odd sizes.
type blocks struct {
	b    []int64
	k, n int
	ends []int
}

func (s *blocks) Span(i int) (j, n int) {
	if i > 0 {
		j = s.ends[i-1]
	}
	return j, s.ends[i] - j
}

func (s *blocks) Pack(dst []int64, ld, _, product, i, p, k int) {
	j, n := s.Span(i)
	for q := range k {
		copy(dst[q*ld:][:n], s.b[(product*s.k+p+q)*s.n+j:])
	}
}

// TestProduct compares products of integers, which are exact, with plain loops: B in memory and in
// blocks, every kind of initial value, and several threads.
func TestProduct(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	numbers := func(n int) []int64 {
		s := make([]int64, n)
		for i := range s {
			s[i] = int64(r.IntN(2000) - 1000)
		}
		return s
	}
	for range 100 {
		batch, m, n, k := 1+r.IntN(3), 1+r.IntN(70), 1+r.IntN(300), r.IntN(20)
		switch r.IntN(10) {
		case 0:
			n, k = 1024, 40+r.IntN(300)
		case 1:
			m, k = 1+r.IntN(3), 300+r.IntN(100)
		}
		matrices := 1 + r.IntN(2)*(batch-1)
		g := Product[int64]{Batch: batch, M: m, N: n, K: k, A: numbers(matrices * m * k), ARow: k, ACol: 1, AEach: m * k, AMatrices: matrices,
			B: numbers(batch * k * n), BRow: n, BEach: k * n}
		if r.IntN(2) == 0 {
			g.ARow, g.ACol = 1, m
		}
		start := make([]int64, batch*m*n)
		switch r.IntN(4) {
		case 0:
			g.From, g.FromRow = numbers(batch*m*n), n
			copy(start, g.From)
		case 1:
			g.From = numbers(n)
			start = slices.Repeat(g.From, batch*m)
		case 2:
			g.RowBias = numbers(m * matrices)
			for i := range start {
				start[i] = g.RowBias[i/n%len(g.RowBias)]
			}
		}
		b := g.B
		if r.IntN(2) == 0 {
			s := &blocks{b: b, k: k, n: n}
			for end := 0; end < n; {
				end = min(end+1+r.IntN(BlockCols), n)
				s.ends = append(s.ends, end)
			}
			g.B, g.Columns, g.Blocks = nil, s, len(s.ends)
		}
		threads := 1 + r.IntN(3)
		g.C, g.Scratch = numbers(batch*m*n), make([]int64, g.Plan(threads))
		for i := range g.Tiles {
			g.Range(i%threads, i, i+1)
		}
		for i, got := range g.C {
			p, row, j := i/n/m, i/n%m, i%n
			want := start[i]
			for q := range k {
				want += g.A[p%matrices*m*k+row*g.ARow+q*g.ACol] * b[(p*k+q)*n+j]
			}
			if got != want {
				name := fmt.Sprintf("%d of %dx%dx%d, %d threads, in blocks %v", batch, m, n, k, threads, g.Columns != nil)
				t.Fatalf("%s: element (%d, %d, %d): got %d, want %d", name, p, row, j, got, want)
			}
		}
	}
}
