package simd

// rowDotsBlock is how many elements of a row the vector loops but that for AVX-512 multiply at a time, and rowDotsChunk is how many
// rows of b are multiplied by all rows of a before the next ones: they stay in the first-level cache.
const rowDotsBlock, rowDotsChunk = 8, 32

// RowDots multiplies rows of a by rows of b:
//
//	c[i*ldc+j] = Σ_p a[i*lda+p] · b[j*ldb+p]    i < m, j < n, p < k
//
// It is for few rows of a, for which b is not worth transposing. A sum depends on its two rows and on k alone, not on m, n, i
// or j. It panics where a slice ends before an element that it reads or sets.
func RowDots(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	if m <= 0 || n <= 0 {
		return
	}
	k = max(k, 0)
	_, _, _ = a[:(m-1)*lda+k], b[:(n-1)*ldb+k], c[(m-1)*ldc+n-1]
	group, vectors := rowDotsGroup(k)
	switch {
	case group == 0:
		rowDotsGo(m, n, k, a, lda, b, ldb, c, ldc)
		return
	case n < group:
		rowDotsFew(m, n, k, a, lda, b, ldb, c, ldc)
	default:
		for j := 0; j+group <= n; j += rowDotsChunk {
			rowDotsOf(m, min(rowDotsChunk, n-j)/group, k, a, lda, b[j*ldb:], ldb, c[j:], ldc)
		}
		if n%group > 0 { // the last rows together with the ones before
			rowDotsOf(m, 1, k, a, lda, b[(n-group)*ldb:], ldb, c[n-group:], ldc)
		}
	}
	if vectors < k {
		addRowDotsGo(m, n, k, vectors, a, lda, b, ldb, c, ldc)
	}
}

// rowDotsGroup returns how many rows of b the vector loops multiply at a time, 0 for none, and how many elements of each.
func rowDotsGroup(k int) (group, vectors int) {
	switch {
	case k < rowDotsBlock || !vector:
		return 0, 0
	case avx512:
		return 8, k
	}
	return 4, k &^ (rowDotsBlock - 1)
}

// rowDotsFew is for fewer rows of b than a group: each is all rows of one. It calls loops by their names, since same would be
// allocated otherwise.
func rowDotsFew(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	var same [8]float32
	for i := range m {
		for j := range n {
			if avx512 {
				rowDots512x1(1, k/16, &a[i*lda], 0, &b[j*ldb], 0, &same[0], 0, uint32(1<<(k%16)-1))
			} else {
				rowDots1(1, k/rowDotsBlock, &a[i*lda], 0, &b[j*ldb], 0, &same[0], 0)
			}
			c[i*ldc+j] = same[0]
		}
	}
}

type (
	rowDotsFunc func(groups, blocks int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int)
	restedFunc  func(groups, blocks int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int, rest uint32)
)

var (
	rowDotsTiles    = []tileOf[rowDotsFunc]{{3, rowDots3}, {2, rowDots2}, {1, rowDots1}}
	rowDotsNEON     = []tileOf[rowDotsFunc]{{4, rowDots4}, {3, rowDots3}, {2, rowDots2}, {1, rowDots1}}
	rowDots512Tiles = []tileOf[restedFunc]{{3, rowDots512x3}, {2, rowDots512x2}, {1, rowDots512x1}}
)

// rowDotsOf multiplies m rows by groups of rows of b, without the elements behind whole vectors. Strides become bytes.
func rowDotsOf(m, groups, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	tiles := rowDotsTiles
	if neon {
		tiles = rowDotsNEON
	}
	for i := 0; i < m; {
		if avx512 {
			t := largest(rowDots512Tiles, m-i)
			t.f(groups, k/16, &a[i*lda], 4*lda, &b[0], 4*ldb, &c[i*ldc], 4*ldc, uint32(1<<(k%16)-1))
			i += t.rows
			continue
		}
		t := largest(tiles, m-i)
		t.f(groups, k/rowDotsBlock, &a[i*lda], 4*lda, &b[0], 4*ldb, &c[i*ldc], 4*ldc)
		i += t.rows
	}
}

func rowDotsGo(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	for i := range m {
		for j := range n {
			c[i*ldc+j] = dotGo(a[i*lda:][:k], b[j*ldb:])
		}
	}
}

// addRowDotsGo adds the products of elements [from, k).
func addRowDotsGo(m, n, k, from int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	for i := range m {
		for j := range n {
			c[i*ldc+j] += dotGo(a[i*lda+from:][:k-from], b[j*ldb+from:])
		}
	}
}
