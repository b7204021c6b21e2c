//go:build !purego

package simd

const (
	lanes     = 4
	few       = 24 // products are computed without vectors
	tapsBlock = 16
)

const (
	avx512  = false
	avxVNNI = false
)
