package matmul

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
)

// product is a batch of matrix products, with an addend:
//
//	c[i,j] = alpha · Σ_p a[i,p]·b[p,j] + beta·add[i,j]
//
// a is read with any strides, so it is never packed. b's rows are dense; blocks of
// it are copied where many rows of a pass over them.
type product[T simd.Number] struct {
	m, n, k, batch         int
	a, b, c                []T
	aRow, aCol, bRow       int // strides; c's rows are n apart
	aBatch, bBatch         int // strides from one product of the batch to the next
	add                    []T // nil for none
	addRow, addCol         int // strides, 0 where broadcast
	alpha, beta            T
	mul                    simd.MulAddToFunc[T]
	zeros                  []T // a row of them
	mBlock, nBlock, kBlock int
	mBlocks, nBlocks       int
	tiles, grain           int
	packed                 bool
	pack                   []T // one block of b for each worker, nil where b is read in place
}

// Block sizes. A packed block of 128 columns and 256 rows stays in the second-level
// cache, and its rows are an odd number of lines apart, so that a strip of it
// spreads over all sets of the first. Few rows of a read each row of b once, so
// there b is streamed in place, 16 rows by 512 columns at a time.
const (
	packedCols, packedRows     = 128, 256
	packedPitch                = 144
	streamedCols, streamedRows = 512, 16
	packFromRows               = 32      // rows of a from which packing pays
	packFromSize               = 1 << 16 // elements of b below which it stays in cache as it is
	page                       = 1024    // elements; rows that lie pages apart share sets of a cache
)

// macsPerRange is the work of about 20 µs, the least to give to a thread.
const macsPerRange = 600_000

// run computes the product on c's threads. Fields up to beta are set.
func (g *product[T]) run(c *kernels.Ctx) {
	if g.tiles = 0; g.m == 0 || g.n == 0 || g.batch == 0 {
		return
	}
	g.mul = simd.MulAddToOf[T]()
	if g.zeros == nil {
		g.zeros = make([]T, streamedCols)
	}
	g.packed, g.mBlock, g.nBlock, g.kBlock = false, g.m, streamedCols, streamedRows
	switch {
	case g.k*g.n <= packFromSize && (g.m < packFromRows || g.n%page != 0):
		g.nBlock, g.kBlock = packedCols, g.k
	case g.m >= packFromRows:
		g.packed, g.nBlock, g.kBlock = true, packedCols, packedRows
	}
	g.nBlocks = (g.n + g.nBlock - 1) / g.nBlock
	g.splitRows(c.Threads())
	g.tiles = g.batch * g.mBlocks * g.nBlocks
	g.grain = 1 + macsPerRange/(g.mBlock*min(g.nBlock, g.n)*max(g.k, 1))
	g.compute(c)
}

func (g *product[T]) compute(c *kernels.Ctx) {
	if g.pack = nil; g.packed {
		g.pack = kernels.Scratch[T](c, c.Threads()*packedPitch*packedRows)
	}
	c.Parallel(g.tiles, g.grain, g)
}

// Repeat computes the product of the same places again.
func (g *product[T]) Repeat(c *kernels.Ctx) error {
	g.compute(c)
	return nil
}

// splitRows cuts the rows of c into blocks where its columns alone would leave
// threads idle and there is work for them.
func (g *product[T]) splitRows(threads int) {
	const least = 24 // rows of a block that still make good use of a packed block
	if g.m*g.n*g.k < 2*macsPerRange {
		threads = 1
	}
	for threads > 1 && g.batch*g.nBlocks*((g.m+g.mBlock-1)/g.mBlock) < 2*threads && g.mBlock >= 2*least {
		g.mBlock = (g.mBlock/2 + 7) &^ 7
	}
	g.mBlocks = (g.m + g.mBlock - 1) / g.mBlock
}

// Range computes tiles of c; consecutive tiles share a block of b.
func (g *product[T]) Range(worker, lo, hi int) {
	for t := lo; t < hi; t++ {
		m, n, batch := t%g.mBlocks, t/g.mBlocks%g.nBlocks, t/g.mBlocks/g.nBlocks
		g.tile(worker, batch, m*g.mBlock, n*g.nBlock)
	}
}

func (g *product[T]) tile(worker, batch, m0, n0 int) {
	m, n := min(g.mBlock, g.m-m0), min(g.nBlock, g.n-n0)
	a := g.a[batch*g.aBatch+m0*g.aRow:]
	b := g.b[min(batch*g.bBatch+n0, len(g.b)):]
	c := g.c[batch*g.m*g.n+m0*g.n+n0:]
	from, ldf := g.start(c, m, n, m0, n0)
	for k0 := 0; k0 < g.k; k0 += g.kBlock {
		k := min(g.kBlock, g.k-k0)
		block, row := b[k0*g.bRow:], g.bRow
		if g.packed {
			block, row = g.pack[worker*packedPitch*packedRows:], packedPitch
			simd.CopyRows(block, b[k0*g.bRow:], k, n, row, g.bRow)
		}
		g.mul(m, n, k, a[k0*g.aCol:], g.aRow, g.aCol, block, row, from, ldf, c, g.n)
		from, ldf = c, g.n
	}
	if g.alpha != 1 {
		g.finish(c, m, n, m0, n0)
	}
}

// start is what products are added to in a tile of c, and its row stride: the
// addend itself where it needs no scaling, else c, which is given those values.
func (g *product[T]) start(c []T, m, n, m0, n0 int) (from []T, ldf int) {
	none := g.add == nil || g.alpha != 1
	switch {
	case g.k > 0 && none:
		return g.zeros, 0
	case g.k > 0 && g.beta == 1 && g.addCol == 1:
		return g.add[m0*g.addRow+n0:], g.addRow
	}
	for i := range m {
		row := c[i*g.n:][:n]
		if none {
			clear(row)
			continue
		}
		add := g.add[(m0+i)*g.addRow+n0*g.addCol:]
		for j := range row {
			row[j] = g.beta * add[j*g.addCol]
		}
	}
	return c, g.n
}

// finish scales a tile of sums and adds the addend.
func (g *product[T]) finish(c []T, m, n, m0, n0 int) {
	for i := range m {
		row := c[i*g.n:][:n]
		if g.add == nil {
			for j := range row {
				row[j] *= g.alpha
			}
			continue
		}
		add := g.add[(m0+i)*g.addRow+n0*g.addCol:]
		for j := range row {
			row[j] = g.alpha*row[j] + g.beta*add[j*g.addCol]
		}
	}
}
