//go:build arm64 && !purego && levels

package simd

// Tests change these, to compare the vector loops with those in Go.
var (
	vector = true
	neon   = true
	level  = "neon"
)
