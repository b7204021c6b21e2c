//go:build !purego

package simd

const (
	lanes     = 4
	tapsBlock = 16
)

// NEON is part of every arm64 processor.
const (
	vector = true
	level  = "neon"
)

func copyRows(dst, src []float32, rows, n, ds, ss int) { copyRowsGo(dst, src, rows, n, ds, ss) }
