package matmul

import (
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
)

// product is a batch of products of dense matrices, with an addend:
//
//	C[i,j] = alpha · Σ_p A[i,p]·B[p,j] + beta·add[i,j]
type product[T simd.Number] struct {
	gemm.Product[T]
	add            []T // nil for none
	addRow, addCol int // strides, 0 where broadcast
	alpha, beta    T
	addFirst       bool // beta·add is written to C, which the sums start from
	scratch        int  // elements of working memory
}

// multiply sets up g for products of m·k by k·n, without an addend.
func (g *product[T]) multiply(batch, m, n, k int) {
	g.Batch, g.M, g.N, g.K = batch, m, n, k
	g.ARow, g.ACol, g.AEach, g.AMatrices = k, 1, m*k, batch
	g.BRow, g.BEach = n, k*n
	g.alpha, g.beta, g.add = 1, 1, nil
}

// run plans the product and computes it on c's threads.
func (g *product[T]) run(c *kernels.Ctx) error {
	g.From, g.FromRow, g.addFirst = nil, 0, false
	switch {
	case g.add == nil || g.alpha != 1:
	case g.beta == 1 && g.addCol == 1:
		g.From, g.FromRow = g.add, g.addRow
	default:
		g.From, g.FromRow, g.addFirst = g.C, g.N, true
	}
	g.scratch = g.Plan(c.Threads())
	return g.Repeat(c)
}

// Repeat computes the planned product again, of the same places.
func (g *product[T]) Repeat(c *kernels.Ctx) error {
	if g.addFirst {
		g.scale(c)
	}
	if g.scratch > 0 {
		g.Scratch = kernels.Scratch[T](c, g.scratch)
	}
	c.Parallel(g.Tiles, g.Grain, &g.Product)
	if g.alpha != 1 {
		g.scale(c)
	}
	return nil
}

func (g *product[T]) scale(c *kernels.Ctx) {
	c.Parallel(g.Batch*g.M, 1+gemm.MACsPerRange/(16*max(g.N, 1)), (*scaled[T])(g))
}

// scaled computes C = alpha·C + beta·add or, if alpha is 1, beta·add, as the start of the sums.
type scaled[T simd.Number] product[T]

// Range computes rows [lo, hi) of C.
func (g *scaled[T]) Range(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		row := g.C[i*g.N:][:g.N]
		for j := range row {
			switch {
			case g.add == nil:
				row[j] *= g.alpha
			case g.alpha == 1:
				row[j] = g.beta * g.add[i*g.addRow+j*g.addCol]
			default:
				row[j] = g.alpha*row[j] + g.beta*g.add[i*g.addRow+j*g.addCol]
			}
		}
	}
}
