//go:build !purego

package simd

const (
	lanes     = 4
	tapsBlock = 16
)

const (
	avx512  = false
	avxVNNI = false
)
