//go:build !purego

package simd

import "golang.org/x/sys/cpu"

// dotProducts reports NEON's dot products.
var dotProducts = cpu.ARM64.HasASIMDDP

// nibbles reports that products with 4-bit weights have a vector loop.
func nibbles() bool { return dotProducts }

// dotRows is how many rows of weights a panel holds side by side.
func dotRows() int { return dotGroup }

func (w *DotWeights) multiply(c []int32, ldc int, a []uint8, rows, off []int, lo, hi int, flip uint32) {
	groups, size := w.groups(), w.panel()
	many, f, one := 2, smull2x16, smull1x16
	if dotProducts {
		many, f, one = 4, sdot4x16, sdot1x16
	}
	for p := lo; p < hi; p++ {
		tile, n := f, many
		for i := 0; i < len(rows); i += n {
			if len(rows)-i < n {
				tile, n = one, 1
			}
			tile(groups, &a[0], &rows[i], &off[0], len(off), &w.panels[p*size], size, &c[i*ldc+(p-lo)*DotCols], 4*ldc, flip)
		}
	}
}

func (w *Nibbles) multiply(c []float32, ldc int, a []uint8, rows []int, zeros []int32, lo, hi int, flip uint32) {
	size := w.panel()
	for p := lo; p < hi; p++ {
		for i := range rows {
			nibble1x16(w.blocks(), &a[0], &rows[i], &zeros[i], w.Groups, w.K, &w.panels[p*size], size, &c[i*ldc+(p-lo)*DotCols], 4*ldc, flip)
		}
	}
}
