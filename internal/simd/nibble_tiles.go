package simd

type (
	// of panels behind each other
	nibbleFunc func(panels, k, groups int, a, b *uint8, c *float32, ldc int)
	// of count times as many panels as its own, side by side
	besideFunc func(k, groups int, a, b *uint8, wide, from, count int, c *float32, ldc int)
)

// Tiles of rows, by their panels those that multiply panels side by side.
var (
	nibbles512 = []tileOf[[5]besideFunc]{
		{8, [5]besideFunc{1: nibble512x8x16, 2: nibble512x8x32}},
		{4, [5]besideFunc{1: nibble512x4x16, 2: nibble512x4x32}},
		{2, [5]besideFunc{1: nibble512x2x16, 2: nibble512x2x32}},
		{1, [5]besideFunc{1: nibble512x1x16, 4: nibble512x1x64}},
	}
	nibbles256     = []tileOf[nibbleFunc]{{4, nibble256x4x16}, {2, nibble256x2x16}, {1, nibble256x1x16}}
	nibbleRows     = []tileOf[nibbleFunc]{{4, nibble4x16}, {2, nibble2x16}, {1, nibble1x16}} // AVX2, or NEON with dot products
	nibbleMatrices = []tileOf[nibbleFunc]{{4, smmlaNibble4x16}, {2, smmlaNibble2x16}, {1, smmlaNibble1x16}}
	nibbleProducts = []tileOf[nibbleFunc]{{1, smullNibble1x16}}
)

// nibbleTiles are the tiles for this processor, if it has no AVX-512 with VNNI.
func nibbleTiles() []tileOf[nibbleFunc] {
	switch {
	case vnni256():
		return nibbles256
	case matrixProducts():
		return nibbleMatrices
	case neon && !dotProducts():
		return nibbleProducts
	}
	return nibbleRows
}

// firstNibbleRows is how many rows the first tile of m rows has.
func firstNibbleRows(m int) int {
	switch {
	case !vector:
		return 1
	case vnni():
		return largest(nibbles512, m).rows
	}
	return largest(nibbleTiles(), m).rows
}

// nibblesAcross is how many panels of 4-bit weights are side by side: those of the widest tile of one row. Of four panels behind
// each other a processor has to learn four streams anew every few kilobytes, and loads half as fast as of one, see BenchmarkDecode.
func nibblesAcross() int {
	if vnni() {
		return 4
	}
	return 1
}

// multiply goes panel by panel, so that a panel stays in cache while all rows pass over it. Rows of a single tile pass once over
// all panels: there is one call.
func (w *Nibbles) multiply(c []float32, ldc int, a []uint8, m, lo, hi int) {
	tiles, size, panels := nibbleTiles(), w.RowBytes(), 1
	if largest(tiles, m).rows == m {
		panels = hi - lo
	}
	for p := lo; p < hi; p += panels {
		for i := 0; i < m; {
			t := largest(tiles, m-i)
			t.f(panels, w.blocks(), w.Groups, &a[i*size], &w.panels[p*w.panel()], &c[i*ldc+(p-lo)*DotCols], 4*ldc)
			i += t.rows
		}
	}
}

// multiplyAdjacent is multiply for panels that are side by side.
func (w *Nibbles) multiplyAdjacent(c []float32, ldc int, a []uint8, m, lo, hi int) {
	for p := lo; p < hi; {
		wide, from := w.adjacent(p)
		n, b := min(hi-p, wide-from), &w.panels[(p-from)*w.panel()]
		for i := 0; i < m; {
			t := largest(nibbles512, m-i)
			for at := 0; at < n; {
				panels := min(n-at, len(t.f)-1)
				for t.f[panels] == nil {
					panels--
				}
				count := (n - at) / panels
				t.f[panels](w.blocks(), w.Groups, &a[i*w.RowBytes()], b, wide, from+at, count, &c[i*ldc+(p-lo+at)*DotCols], 4*ldc)
				at += count * panels
			}
			i += t.rows
		}
		p += n
	}
}
