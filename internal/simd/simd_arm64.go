//go:build !purego

package simd

const (
	lanes     = 4
	few       = 24 // products are not worth a vector
	tapsBlock = 16
)

const (
	avx512  = false
	avxVNNI = false
)
