//go:build arm64 && !purego && !levels

package simd

// NEON is part of every arm64 processor.
const (
	vector = true
	neon   = true
	level  = "neon"
)
