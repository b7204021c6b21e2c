//go:build !purego

package simd

// mulAddTo goes strip by strip over the columns, so that a strip of b stays in the
// first-level cache while all rows of a pass over it. Strides become bytes.
func mulAddTo(m, n, k int, a []float32, ars, acs int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int, lo, hi float32) {
	j := 0
	for ; j+16 <= n; j += 16 {
		strip16(m, k, a, ars, acs, &b[j], 4*ldb, from[j:], ldf, c[j:], ldc, lo, hi)
	}
	for ; j+4 <= n; j += 4 {
		strip4(m, k, a, ars, acs, &b[j], 4*ldb, from[j:], ldf, c[j:], ldc, lo, hi)
	}
	if j < n {
		mulAddClampGo(m, n-j, k, a, ars, acs, b[j:], ldb, from[j:], ldf, c[j:], ldc, lo, hi)
	}
}

func strip16(m, k int, a []float32, ars, acs int, b *float32, ldb int, from []float32, ldf int, c []float32, ldc int, lo, hi float32) {
	i := 0
	for ; i+6 <= m; i += 6 {
		tile6x16(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, lo, hi)
	}
	for ; i+2 <= m; i += 2 {
		tile2x16(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, lo, hi)
	}
	if i < m {
		tile1x16(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, lo, hi)
	}
}

func strip4(m, k int, a []float32, ars, acs int, b *float32, ldb int, from []float32, ldf int, c []float32, ldc int, lo, hi float32) {
	i := 0
	for ; i+6 <= m; i += 6 {
		tile6x4(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, lo, hi)
	}
	for ; i < m; i++ {
		tile1x4(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, lo, hi)
	}
}

// rowPanelsOf multiplies a row by as many panels as one call takes, and tells how many.
func rowPanelsOf(panels, k int, a, b *float32, panel int, from, c *float32, lo, hi float32) int {
	if panels == 0 {
		return 0
	}
	rowPanels(k, a, b, 4*panel, from, c, lo, hi)
	return 1
}
