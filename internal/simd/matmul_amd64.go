//go:build !purego

package simd

// masks[8-n:] starts with n lanes that are on.
var masks = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

// mulAddTo goes strip by strip over the columns, so that a strip of b stays in the
// first-level cache while all rows of a pass over it. Strides become bytes.
func mulAddTo(m, n, k int, a []float32, ars, acs int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int, lo, hi float32) {
	if !vector {
		mulAddClampGo(m, n, k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi)
		return
	}
	if avx512 && m >= 4 {
		mulAddTo512(m, n, k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi)
		return
	}
	j := 0
	if m == 1 {
		for ; j+64 <= n; j += 64 {
			tile1x64(k, &a[0], 4*ars, 4*acs, &b[j], 4*ldb, &from[j], 4*ldf, &c[j], 4*ldc, lo, hi)
		}
	}
	for ; j+16 <= n; j += 16 {
		strip16(m, k, a, ars, acs, &b[j], 4*ldb, from[j:], ldf, c[j:], ldc, lo, hi)
	}
	for ; j < n; j += 8 {
		strip8(m, k, a, ars, acs, &b[j], 4*ldb, from[j:], ldf, c[j:], ldc, lo, hi, &masks[8-min(n-j, 8)])
	}
}

func strip16(m, k int, a []float32, ars, acs int, b *float32, ldb int, from []float32, ldf int, c []float32, ldc int, lo, hi float32) {
	i := 0
	for ; i+6 <= m; i += 6 {
		tile6x16(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, lo, hi)
	}
	if m-i >= 4 {
		tile4x16(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, lo, hi)
		i += 4
	}
	if m-i >= 2 {
		tile2x16(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, lo, hi)
		i += 2
	}
	if m > i {
		tile1x16(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, lo, hi)
	}
}

func strip8(m, k int, a []float32, ars, acs int, b *float32, ldb int, from []float32, ldf int, c []float32, ldc int, lo, hi float32, mask *int32) {
	i := 0
	for ; i+6 <= m; i += 6 {
		tile6x8(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, lo, hi, mask)
	}
	for ; i+2 <= m; i += 2 {
		tile2x8(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, lo, hi, mask)
	}
	if m > i {
		tile1x8(k, &a[i*ars], 4*ars, 4*acs, b, ldb, &from[i*ldf], 4*ldf, &c[i*ldc], 4*ldc, lo, hi, mask)
	}
}

// mulAddTo512 is mulAddTo by strips of 32 columns; the last of 16 or fewer is one of 16.
func mulAddTo512(m, n, k int, a []float32, ars, acs int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int, lo, hi float32) {
	for j := 0; j < n; j += 32 {
		cols := uint32(1<<min(n-j, 32) - 1)
		for i := 0; i < m; {
			if n-j <= 16 {
				i += rows16(m-i, k, &a[i*ars], 4*ars, 4*acs, &b[j], 4*ldb, &from[i*ldf+j], 4*ldf, &c[i*ldc+j], 4*ldc, lo, hi, cols)
			} else {
				i += rows32(m-i, k, &a[i*ars], 4*ars, 4*acs, &b[j], 4*ldb, &from[i*ldf+j], 4*ldf, &c[i*ldc+j], 4*ldc, lo, hi, cols)
			}
		}
	}
}

// rows32 computes the largest tile of up to m rows and tells how many it has.
func rows32(m, k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int, lo, hi float32, cols uint32) int {
	switch {
	case m >= 8:
		tile8x32(k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi, cols)
		return 8
	case m >= 6:
		tile6x32(k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi, cols)
		return 6
	case m >= 4:
		tile4x32(k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi, cols)
		return 4
	case m >= 2:
		tile2x32(k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi, cols)
		return 2
	}
	tile1x32(k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi, cols)
	return 1
}

func rows16(m, k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int, lo, hi float32, cols uint32) int {
	switch {
	case m >= 8:
		tile8x16cols(k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi, cols)
		return 8
	case m >= 6:
		tile6x16cols(k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi, cols)
		return 6
	case m >= 4:
		tile4x16cols(k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi, cols)
		return 4
	case m >= 2:
		tile2x16cols(k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi, cols)
		return 2
	}
	tile1x16cols(k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi, cols)
	return 1
}

// rowPanelsOf multiplies a row by as many panels as one call takes, and tells how many.
func rowPanelsOf(panels, k int, a, b *float32, panel int, from, c *float32, lo, hi float32) int {
	switch {
	case avx512 && panels >= 4:
		rowPanels512(k, a, b, 4*panel, from, c, lo, hi)
		return 4
	case vector && panels >= 2:
		rowPanels(k, a, b, 4*panel, from, c, lo, hi)
		return 2
	}
	return 0
}
