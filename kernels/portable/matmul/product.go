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
}

// multiply sets up g for products of m·k by k·n, without an addend.
func (g *product[T]) multiply(batch, m, n, k int) {
	g.Batch, g.M, g.N, g.K = batch, m, n, k
	g.ARow, g.ACol, g.AEach, g.AMatrices = k, 1, m*k, batch
	g.BRow, g.BEach = n, k*n
	g.alpha, g.beta, g.add = 1, 1, nil
}

// Repeat computes the product on c's threads, also of the same places again.
func (g *product[T]) Repeat(c *kernels.Ctx) error {
	g.From, g.FromRow = nil, 0
	switch {
	case g.add == nil || g.alpha != 1:
	case g.beta == 1 && g.addCol == 1:
		g.From, g.FromRow = g.add, g.addRow
	default:
		g.scale(c)
		g.From, g.FromRow = g.C, g.N
	}
	g.Scratch = kernels.Scratch[T](c, g.Plan(c.Threads()))
	c.Parallel(g.Tiles, g.Grain, &g.Product)
	if g.alpha != 1 {
		g.scale(c)
	}
	return nil
}

func (g *product[T]) scale(c *kernels.Ctx) {
	c.Parallel(g.Batch*g.M, 1+gemm.MACsPerRange/(16*max(g.N, 1)), (*scaled[T])(g))
}

// scaled makes C alpha·C + beta·add, or beta·add, for sums to start from, where alpha is 1.
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
