//go:build !purego

package simd

const (
	lanes     = 4
	tapsBlock = 16
)

// NEON is part of every arm64 processor.
const (
	vector  = true
	avx512  = false
	avxVNNI = false
	neon    = true
	level   = "neon"
)
