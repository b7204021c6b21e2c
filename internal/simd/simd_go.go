//go:build purego || !(amd64 || arm64)

package simd

const (
	lanes     = 1
	few       = 128 // products are computed without vectors
	tapsBlock = 1
	level     = "go"

	vector  = false
	avx512  = false
	avxVNNI = false
	neon    = false
)
