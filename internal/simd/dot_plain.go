//go:build purego || !(amd64 || arm64)

package simd

// dotRows is how many rows of weights a panel holds side by side.
func dotRows() int { return dotGroup }

// nibbles reports that products with 4-bit weights have a vector loop.
func nibbles() bool { return false }

func (w *DotWeights) multiply(c []int32, ldc int, a []uint8, rows, off []int, lo, hi int, flip uint32) {
	w.multiplyGo(c, ldc, a, rows, off, lo, hi, flip != 0)
}

func (w *Nibbles) multiply(c []float32, ldc int, a []uint8, rows []int, zeros []int32, lo, hi int, flip uint32) {
	w.multiplyGo(c, ldc, a, rows, zeros, lo, hi, flip != 0)
}
