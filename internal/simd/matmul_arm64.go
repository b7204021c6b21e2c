//go:build !purego

package simd

// mulAddTo goes strip by strip over the columns, so that a strip of b stays in the
// first-level cache while all rows of a pass over it. Strides become bytes.
func mulAddTo(m, n, k int, a []float32, ars, acs int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int) {
	j := 0
	for ; j+16 <= n; j += 16 {
		strip16(m, k, a, ars, acs, &b[j], 4*ldb, from[j:], ldf, c[j:], ldc)
	}
	for ; j+4 <= n; j += 4 {
		strip4(m, k, a, ars, acs, &b[j], 4*ldb, from[j:], ldf, c[j:], ldc)
	}
	if j < n {
		mulAddToGo(m, n-j, k, a, ars, acs, b[j:], ldb, from[j:], ldf, c[j:], ldc)
	}
}

func strip16(m, k int, a []float32, ars, acs int, b *float32, ldb int, from []float32, ldf int, c []float32, ldc int) {
	i := 0
	for ; i+6 <= m; i += 6 {
		tile6x16(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc)
	}
	for ; i+2 <= m; i += 2 {
		tile2x16(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc)
	}
	if i < m {
		tile1x16(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc)
	}
}

func strip4(m, k int, a []float32, ars, acs int, b *float32, ldb int, from []float32, ldf int, c []float32, ldc int) {
	i := 0
	for ; i+6 <= m; i += 6 {
		tile6x4(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc)
	}
	for ; i < m; i++ {
		tile1x4(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc)
	}
}
