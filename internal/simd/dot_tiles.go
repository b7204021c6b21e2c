package simd

import "golang.org/x/sys/cpu"

// vnni reports the dot products of AVX-512.
func vnni() bool { return avx512 && cpu.X86.HasAVX512VNNI }

// vnni256 reports the dot products of AVX-VNNI, where those of AVX-512 are not in use.
func vnni256() bool { return avxVNNI && avx2() && !vnni() }

// dotProducts reports NEON's dot products.
func dotProducts() bool { return neon && cpu.ARM64.HasASIMDDP }

// matrixProducts reports NEON's products of matrices of bytes.
func matrixProducts() bool { return neon && cpu.ARM64.HasI8MM }

type (
	// those of NEON do several tiles below each other
	neonDotFunc func(tiles, k int, a *uint8, rows, off *int, t int, b *int8, ldb int, c *int32, ldc int, flip uint32)

	dotFunc func(k int, a *uint8, rows, off *int, t int, b *int8, ldb int, c *int32, ldc int, flip uint32)
)

// Tiles by their panels.
var (
	vnniTiles = [...][]tileOf[dotFunc]{
		4: {{1, vnni1x64}},
		2: {{8, vnni8x32}, {4, vnni4x32}, {2, vnni2x32}, {1, vnni1x32}},
		1: {{8, vnni8x16}, {4, vnni4x16}, {2, vnni2x16}, {1, vnni1x16}},
	}
	dot256Tiles = [...][]tileOf[dotFunc]{
		4: {{1, dot256x1x64}},
		1: {{6, dot256x6x16}, {4, dot256x4x16}, {2, dot256x2x16}, {1, dot256x1x16}},
	}
	maddTiles  = [][]tileOf[dotFunc]{1: {{4, madd4x16}, {2, madd2x16}, {1, madd1x16}}}
	sdotTiles  = []tileOf[neonDotFunc]{{4, sdot4x16}, {3, sdot3x16}, {2, sdot2x16}, {1, sdot1x16}}
	smmlaTiles = []tileOf[neonDotFunc]{{4, smmla4x16}, {3, smmla3x16}, {2, smmla2x16}, {1, smmla1x16}}
	smullTiles = []tileOf[neonDotFunc]{{2, smull2x16}, {1, smull1x16}}
)

// dotTiles are the tiles for this processor.
func dotTiles() [][]tileOf[dotFunc] {
	switch {
	case vnni():
		return vnniTiles[:]
	case vnni256():
		return dot256Tiles[:]
	}
	return maddTiles
}

// width is how many of n panels a tile of so many rows takes.
func width(rows, n int) int {
	switch {
	case rows == 1 && n >= 4 && (vnni() || vnni256()):
		return 4
	case vnni():
		return min(n, 2)
	}
	return 1
}

// dotRows is how many rows of weights a panel holds side by side: two of words, or four of bytes.
func dotRows() int {
	if avx2() && !vnni() && !vnni256() {
		return 2
	}
	return dotGroup
}

// multiply goes panel by panel, so that a panel stays in cache while all rows pass over it.
func (w *DotWeights) multiply(c []int32, ldc int, a []uint8, rows, off []int, lo, hi int, flip uint32) {
	if neon {
		w.multiplyNEON(c, ldc, a, rows, off, lo, hi, flip)
		return
	}
	groups, size, tiles := w.groups(), w.panel(), dotTiles()
	for p := lo; p < hi; {
		n := width(len(rows), hi-p)
		for i := 0; i < len(rows); {
			t := largest(tiles[n], len(rows)-i)
			t.f(groups, &a[0], &rows[i], &off[0], len(off), &w.panels[p*size], size, &c[i*ldc+(p-lo)*DotCols], 4*ldc, flip)
			i += t.rows
		}
		p += n
	}
}

func (w *DotWeights) multiplyNEON(c []int32, ldc int, a []uint8, rows, off []int, lo, hi int, flip uint32) {
	groups, size, tiles := w.groups(), w.panel(), smullTiles
	switch {
	case matrixProducts():
		tiles = smmlaTiles
	case dotProducts():
		tiles = sdotTiles
	}
	for p := lo; p < hi; p++ {
		for i := 0; i < len(rows); {
			t := largest(tiles, len(rows)-i)
			count := (len(rows) - i) / t.rows
			t.f(count, groups, &a[0], &rows[i], &off[0], len(off), &w.panels[p*size], size, &c[i*ldc+(p-lo)*DotCols], 4*ldc, flip)
			i += count * t.rows
		}
	}
}
