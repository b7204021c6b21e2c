package gemm

import "github.com/etrun-go/etrun/internal/simd"

// Product is a batch of matrix products, each with an initial value:
//
//	C[i,j] = start[i,j] + Σ_p A[i,p]·B[p,j]    i < M, j < N, p < K
//
// After the fields up to Columns are set, [Product.Plan] divides the work into tiles, and
// [Product.Range] computes some of them. Sums are in the order of p for every division.
type Product[T simd.Number] struct {
	Batch, M, N, K int

	// A may have any strides and is never packed. It has AMatrices matrices, AEach apart; product b
	// uses matrix b%AMatrices.
	A                []T
	ARow, ACol       int
	AEach, AMatrices int

	// B has dense rows BRow apart, in matrices BEach apart. It is nil if Columns is set.
	B           []T
	BRow, BEach int

	// C has rows of N elements, in matrices of M rows.
	C []T

	// From holds the initial values, in rows FromRow apart, 0 for one row that is used for all; it
	// may be C. RowBias holds one number for each row instead, cyclically if there are more rows in
	// all products. If both are nil, sums start from zero.
	From    []T
	FromRow int
	RowBias []T

	// Columns generates B if it is not in memory.
	Columns Columns[T]
	// Blocks is the number of blocks of Columns.
	Blocks int

	// Scratch has the size returned by Plan; it may change between computations.
	Scratch []T
	// Tiles is the number of tiles, and Grain the minimum number of tiles per thread.
	Tiles, Grain int

	mul                    simd.MulAddToFunc[T]
	zeros                  []T // one row
	mBlock, nBlock, kBlock int
	mBlocks                int
	packed                 bool
}

// Columns generates matrices B block by block.
type Columns[T any] interface {
	// Span returns the first column of block i and its number of columns, at most BlockCols.
	Span(i int) (j, n int)
	// Pack writes rows [p, p+k) of block i of a product's matrix to dst, ld apart.
	Pack(dst []T, ld, worker, product, i, p, k int)
}

// Block sizes. A packed block of BlockCols columns and BlockRows rows stays in the second-level
// cache. Its rows are an odd number of cache lines apart, so that a strip of it uses all sets of
// the first-level cache. With few rows of A each row of B is read once, so B is then streamed in
// place, 16 rows by 512 columns at a time.
const (
	BlockCols, BlockRows, BlockPitch = 128, 256, 144
	streamedCols, streamedRows       = 512, 16
	packFromRows                     = 32      // minimum rows of A for packing to pay off
	packFromSize                     = 1 << 16 // elements of B up to which it stays in cache without packing
	page                             = 1024    // elements; rows that are multiples of a page apart share cache sets
	minRows                          = 24      // of a tile, for good use of a packed block
)

// MACsPerRange is the number of MACs that take about 20 µs, the minimum work for a thread.
const MACsPerRange = 600_000

// fewRows is the number of rows up to which a product takes as long as to read B.
const fewRows = 4

// Work returns the number of MACs that take as long as a product of m rows.
func Work(m, n, k int) int { return max(m, fewRows) * n * k }

// Plan divides the work into tiles for the given number of threads, and returns the required length
// of Scratch.
func (g *Product[T]) Plan(threads int) (scratch int) {
	if g.Tiles = 0; g.M == 0 || g.N == 0 || g.Batch == 0 {
		return 0
	}
	if g.mul = simd.MulAddToOf[T](); g.zeros == nil {
		g.zeros = make([]T, streamedCols)
	}
	if g.Columns == nil {
		g.planBlocks()
	} else {
		g.packed, g.nBlock, g.kBlock = true, BlockCols, BlockRows
	}
	g.splitRows(threads)
	g.Tiles = g.Batch * g.mBlocks * g.Blocks
	g.Grain = 1 + MACsPerRange/Work(g.mBlock, min(g.nBlock, g.N), max(g.K, 1))
	if g.packed {
		return threads * BlockPitch * BlockRows
	}
	return 0
}

// planBlocks chooses the blocks of a B in memory.
func (g *Product[T]) planBlocks() {
	g.packed, g.nBlock, g.kBlock = false, streamedCols, streamedRows
	switch {
	case g.K*g.N <= packFromSize && (g.M < packFromRows || g.N%page != 0):
		g.nBlock, g.kBlock = BlockCols, max(g.K, 1)
	case g.M >= packFromRows:
		g.packed, g.nBlock, g.kBlock = true, BlockCols, BlockRows
	}
	g.Blocks = (g.N + g.nBlock - 1) / g.nBlock
}

// splitRows divides the rows of C into blocks if its columns alone would leave threads idle and
// there is enough work.
func (g *Product[T]) splitRows(threads int) {
	if g.mBlock = g.M; Work(g.M, g.N, max(g.K, 1)) < 2*MACsPerRange {
		threads = 1
	}
	for threads > 1 && g.Batch*g.Blocks*((g.M+g.mBlock-1)/g.mBlock) < 2*threads && g.mBlock >= 2*minRows {
		g.mBlock = (g.mBlock/2 + 7) &^ 7
	}
	g.mBlocks = (g.M + g.mBlock - 1) / g.mBlock
}

// Range computes tiles [lo, hi); consecutive ones share a block of B.
func (g *Product[T]) Range(worker, lo, hi int) {
	for t := lo; t < hi; t++ {
		m, rest := t%g.mBlocks, t/g.mBlocks
		g.tile(worker, rest/g.Blocks, rest%g.Blocks, m*g.mBlock)
	}
}

// tile computes rows from i on in a block of the columns.
func (g *Product[T]) tile(worker, product, block, i int) {
	j, n := block*g.nBlock, min(g.nBlock, g.N-block*g.nBlock)
	if g.Columns != nil {
		j, n = g.Columns.Span(block)
	}
	m := min(g.mBlock, g.M-i)
	a, c := g.A[product%g.AMatrices*g.AEach+i*g.ARow:], g.C[(product*g.M+i)*g.N+j:]
	from, ldf := g.start(c, product*g.M+i, m, j, n)
	for p := 0; p == 0 || p < g.K; p += g.kBlock {
		k := min(g.kBlock, g.K-p)
		b, ldb := g.block(worker, product, block, j, n, p, k)
		g.mul(m, n, k, a[p*g.ACol:], g.ARow, g.ACol, b, ldb, from, ldf, c, g.N)
		from, ldf = c, g.N
	}
}

// start returns the initial values of a tile c and their row stride. Rows are counted over all
// products.
func (g *Product[T]) start(c []T, row, m, j, n int) ([]T, int) {
	switch {
	case g.RowBias != nil:
		for i := range m {
			simd.Fill(c[i*g.N:][:n], g.RowBias[(row+i)%len(g.RowBias)])
		}
		return c, g.N
	case g.From != nil:
		return g.From[row*g.FromRow+j:], g.FromRow
	}
	return g.zeros, 0
}

// block returns rows [p, p+k) of n columns of B from j on, and their row stride.
func (g *Product[T]) block(worker, product, i, j, n, p, k int) ([]T, int) {
	var packed []T
	if g.packed {
		packed = g.Scratch[worker*BlockPitch*BlockRows:][:BlockPitch*BlockRows]
	}
	if g.Columns != nil {
		g.Columns.Pack(packed, BlockPitch, worker, product, i, p, k)
		return packed, BlockPitch
	}
	b := g.B[min(product*g.BEach+p*g.BRow+j, len(g.B)):]
	if !g.packed {
		return b, g.BRow
	}
	simd.CopyRows(packed, b, k, n, BlockPitch, g.BRow)
	return packed, BlockPitch
}
