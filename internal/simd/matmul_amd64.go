//go:build !purego

package simd

// masks[8-n:] starts with n lanes that are on.
var masks = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

// mulAddTo goes strip by strip over the columns, so that a strip of b stays in the
// first-level cache while all rows of a pass over it. Strides become bytes.
func mulAddTo(m, n, k int, a []float32, ars, acs int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int) {
	if !vector {
		mulAddToGo(m, n, k, a, ars, acs, b, ldb, from, ldf, c, ldc)
		return
	}
	if avx512 && m >= 4 && n > 8 {
		mulAddTo512(m, n, k, a, ars, acs, b, ldb, from, ldf, c, ldc)
		return
	}
	j := 0
	if m == 1 {
		for ; j+64 <= n; j += 64 {
			tile1x64(k, &a[0], 4*ars, 4*acs, &b[j], 4*ldb, &from[j], 4*ldf, &c[j], 4*ldc)
		}
	}
	for ; j+16 <= n; j += 16 {
		strip16(m, k, a, ars, acs, &b[j], 4*ldb, from[j:], ldf, c[j:], ldc)
	}
	for ; j < n; j += 8 {
		strip8(m, k, a, ars, acs, &b[j], 4*ldb, from[j:], ldf, c[j:], ldc, &masks[8-min(n-j, 8)])
	}
}

func strip16(m, k int, a []float32, ars, acs int, b *float32, ldb int, from []float32, ldf int, c []float32, ldc int) {
	i := 0
	for ; i+6 <= m; i += 6 {
		tile6x16(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc)
	}
	if m-i >= 4 {
		tile4x16(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc)
		i += 4
	}
	if m-i >= 2 {
		tile2x16(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc)
		i += 2
	}
	if m > i {
		tile1x16(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc)
	}
}

func strip8(m, k int, a []float32, ars, acs int, b *float32, ldb int, from []float32, ldf int, c []float32, ldc int, mask *int32) {
	i := 0
	for ; i+6 <= m; i += 6 {
		tile6x8(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, mask)
	}
	for ; i+2 <= m; i += 2 {
		tile2x8(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, mask)
	}
	if m > i {
		tile1x8(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, mask)
	}
}

// mulAddTo512 is mulAddTo by strips of 32 columns.
func mulAddTo512(m, n, k int, a []float32, ars, acs int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int) {
	for j := 0; j < n; j += 32 {
		cols := uint32(1<<min(n-j, 32) - 1)
		i := 0
		for ; i+8 <= m; i += 8 {
			tile8x32(k, &a[i*ars], 4*ars, 4*acs, &b[j], 4*ldb, &from[i*ldf+j], 4*ldf, &c[i*ldc+j], 4*ldc, cols)
		}
		if m-i >= 4 {
			tile4x32(k, &a[i*ars], 4*ars, 4*acs, &b[j], 4*ldb, &from[i*ldf+j], 4*ldf, &c[i*ldc+j], 4*ldc, cols)
			i += 4
		}
		for ; i < m; i++ {
			tile1x32(k, &a[i*ars], 4*ars, 4*acs, &b[j], 4*ldb, &from[i*ldf+j], 4*ldf, &c[i*ldc+j], 4*ldc, cols)
		}
	}
}
