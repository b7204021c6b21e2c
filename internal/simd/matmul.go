package simd

import "unsafe"

// tileOf is a vector loop for so many rows.
type tileOf[F any] struct {
	rows int
	f    F
}

// largest is the first tile of at most so many rows; those of more rows come first in the list, and one of a row last.
func largest[F any](list []tileOf[F], rows int) tileOf[F] {
	for list[0].rows > rows {
		list = list[1:]
	}
	return list[0]
}

// Tiles by their columns: those of 8 and 4 take the rest of a strip, those of AVX-512 have masks.
type (
	tileFunc func(runs, k int, a *float32, ars, acs, skip int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int, lo, hi float32,
		next uintptr, step int)
	maskedFunc func(runs, k int, a *float32, ars, acs, skip int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int, lo, hi float32,
		mask *int32)
	neonFunc func(tiles, runs, k int, a *float32, ars, acs, skip int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int, lo, hi float32)
	colsFunc func(tiles, runs, k int, a *float32, ars, acs, skip int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int, lo, hi float32,
		cols uint32)
	wideFunc func(tiles, runs, k int, a *float32, ars, acs, skip int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int, lo, hi float32,
		cols uint32, next uintptr, step int)
)

var (
	tiles16 = []tileOf[tileFunc]{{6, tile6x16}, {4, tile4x16}, {3, tile3x16}, {2, tile2x16}, {1, tile1x16}}
	tiles8  = []tileOf[maskedFunc]{{6, tile6x8}, {2, tile2x8}, {1, tile1x8}}
	cols32  = []tileOf[wideFunc]{{8, tile8x32}, {6, tile6x32}, {4, tile4x32}, {3, tile3x32}, {2, tile2x32}, {1, tile1x32}}
	cols8   = []tileOf[colsFunc]{{12, tile12x8cols}, {8, tile8x8cols}, {4, tile4x8cols}, {1, tile1x8cols}}
	cols16  = []tileOf[colsFunc]{{12, tile12x16cols}, {8, tile8x16cols}, {6, tile6x16cols}, {4, tile4x16cols}, {3, tile3x16cols}, {2, tile2x16cols}, {1, tile1x16cols}}
)

// neonTiles are those for NEON by their columns.
var neonTiles = [...][]tileOf[neonFunc]{
	1:  {{8, neon8x1}, {1, neon1x1}},
	2:  {{8, neon8x2}, {1, neon1x2}},
	3:  {{8, neon8x3}, {1, neon1x3}},
	4:  {{8, neon8x4}, {4, neon4x4}, {1, neon1x4}},
	8:  {{8, neon8x8}, {4, neon4x8}, {2, neon2x8}, {1, neon1x8}},
	16: {{4, neon4x16}, {3, neon3x16}, {2, neon2x16}, {1, neon1x16}},
}

// masks[8-n:] starts with n lanes that are on.
var masks = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

// mulAddTo goes strip by strip over the columns, so that a strip of b stays in the first-level cache while all rows of a pass over
// it. Rows of a have runs of k elements, run apart; more than one need vectors. What is multiplied next is ahead elements behind b,
// 0 if that is not known.
func mulAddTo(m, n, runs, k int, a []float32, ars, acs, run int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int,
	lo, hi float32, ahead int) {
	switch {
	case avx512 && (m >= 4 || m > 1 && n >= PanelCols):
		mulAddTo512(m, n, runs, k, a, ars, acs, run, b, ldb, from, ldf, c, ldc, lo, hi, ahead)
	case neon:
		mulAddToNEON(m, n, runs, k, a, ars, acs, run, b, ldb, from, ldf, c, ldc, lo, hi)
	case vector:
		mulAddTo256(m, n, runs, k, a, ars, acs, run, b, ldb, from, ldf, c, ldc, lo, hi, ahead)
	default:
		mulAddClampGo(m, n, k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi)
	}
}

// mulAddTo256 is mulAddTo by strips of 16 columns, and of 8 for the last ones. Rows of a have runs of k elements.
func mulAddTo256(m, n, runs, k int, a []float32, ars, acs, run int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int,
	lo, hi float32, ahead int) {
	j := 0
	if m == 1 && runs == 1 {
		for ; j+64 <= n; j += 64 {
			tile1x64(k, &a[0], 4*ars, 4*acs, &b[j], 4*ldb, &from[j], 4*ldf, &c[j], 4*ldc, lo, hi)
		}
	}
	next := followingOf(b, ahead, (m+tiles16[0].rows-1)/tiles16[0].rows*max(n/16, 1))
	for ; j+16 <= n; j += 16 {
		for i := 0; i < m; {
			t := largest(tiles16, m-i)
			t.f(runs, k, &a[i*ars], 4*ars, 4*acs, 4*(run-k*acs), &b[j], 4*ldb, &from[i*ldf+j], 4*ldf, &c[i*ldc+j], 4*ldc, lo, hi, next.at, next.step)
			next.behind(1, runs*k)
			i += t.rows
		}
	}
	for ; j < n; j += 8 {
		mask := &masks[8-min(n-j, 8)]
		for i := 0; i < m; {
			t := largest(tiles8, m-i)
			t.f(runs, k, &a[i*ars], 4*ars, 4*acs, 4*(run-k*acs), &b[j], 4*ldb, &from[i*ldf+j], 4*ldf, &c[i*ldc+j], 4*ldc, lo, hi, mask)
			i += t.rows
		}
	}
}

// following is what tiles load ahead: the elements from at on, step bytes for each row of b. at is no pointer, as it may lie
// behind the panels.
type following struct {
	at   uintptr
	step int
}

// followingOf is the panel that starts ahead elements behind b, of which each of so many tiles loads its share.
func followingOf(b []float32, ahead, tiles int) following {
	const row, line = 4 * PanelCols, 64
	at := uintptr(unsafe.Pointer(&b[0]))
	if ahead == 0 {
		return following{at, 0}
	}
	return following{at + uintptr(4*ahead), min((row+tiles-1)/tiles, line)}
}

// behind moves on behind the share of tiles of k rows.
func (f *following) behind(tiles, k int) { f.at += uintptr(tiles * k * f.step) }

// mulAddToNEON is mulAddTo by strips of 16 columns, and of fewer for the last ones. Rows of a have runs of k elements.
func mulAddToNEON(m, n, runs, k int, a []float32, ars, acs, run int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int,
	lo, hi float32) {
	for j := 0; j < n; {
		width := n - j
		switch {
		case width >= 16:
			width = 16
		case width >= 8:
			width = 8
		case width >= 4:
			width = 4
		}
		for i := 0; i < m; {
			t := largest(neonTiles[width], m-i)
			count := (m - i) / t.rows
			t.f(count, runs, k, &a[i*ars], 4*ars, 4*acs, 4*(run-k*acs), &b[j], 4*ldb, &from[i*ldf+j], 4*ldf, &c[i*ldc+j], 4*ldc, lo, hi)
			i += count * t.rows
		}
		j += width
	}
}

// mulAddTo512 is mulAddTo by strips of 32 columns, and of 16 and 8 for the last 24. Rows of a have runs of k elements. What is
// read after this product is ahead elements behind b, 0 if that is not known.
func mulAddTo512(m, n, runs, k int, a []float32, ars, acs, run int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int,
	lo, hi float32, ahead int) {
	j, next := 0, followingOf(b, ahead, (m+cols32[0].rows-1)/cols32[0].rows)
	for ; n-j > 24; j += 32 {
		cols := uint32(1<<min(n-j, 32) - 1)
		for i := 0; i < m; {
			t, count := nextTiles(cols32, m-i)
			t.f(count, runs, k, &a[i*ars], 4*ars, 4*acs, 4*(run-k*acs), &b[j], 4*ldb, &from[i*ldf+j], 4*ldf, &c[i*ldc+j], 4*ldc, lo, hi, cols,
				next.at, next.step)
			next.behind(count, runs*k)
			i += count * t.rows
		}
	}
	for j < n {
		tiles, width := cols16, 16
		if n-j <= 8 {
			tiles, width = cols8, 8
		}
		cols := uint32(1<<min(n-j, width) - 1)
		for i := 0; i < m; {
			t, count := nextTiles(tiles, m-i)
			t.f(count, runs, k, &a[i*ars], 4*ars, 4*acs, 4*(run-k*acs), &b[j], 4*ldb, &from[i*ldf+j], 4*ldf, &c[i*ldc+j], 4*ldc, lo, hi, cols)
			i += count * t.rows
		}
		j += width
	}
}

// nextTiles returns the next tiles of rows, and how many. One of 12 rows is left to smaller ones where these take the rows
// that remain in less time: a tile of few rows waits for its sums.
func nextTiles[F any](tiles []tileOf[F], rows int) (tileOf[F], int) {
	t := largest(tiles, rows)
	count, rest := rows/t.rows, rows%t.rows
	if t.rows == 12 && (rest >= 2 && rest <= 5 || rest >= 10) {
		if count--; count == 0 {
			return largest(tiles[1:], rows), 1
		}
	}
	return t, count
}

// rowPanelsOf multiplies a row by as many panels as one call takes, and tells how many.
func rowPanelsOf(panels, k int, a, b *float32, panel int, from, c *float32, lo, hi float32) int {
	switch {
	case avx512 && panels >= 4:
		rowPanels512(k, a, b, 4*panel, from, c, lo, hi)
		return 4
	case avx2() && panels >= 2:
		rowPanels(k, a, b, 4*panel, from, c, lo, hi)
		return 2
	case neon && panels >= 1:
		rowPanels(k, a, b, 4*panel, from, c, lo, hi)
		return 1
	}
	return 0
}
