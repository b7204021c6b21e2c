// Package simdtest has what benchmarks of vector loops are compared with.
package simdtest

import "github.com/etrun-go/etrun/internal/simd"

// MultiplyAdds computes n rounds, at least one, of fused multiply-adds of registers, which do not wait for each other, and returns their
// number: no product of float32 is faster than these. It returns 0 without vectors.
func MultiplyAdds(n int) int {
	const chains = 24 // sums of a round: more than a processor starts before the first one ends
	lanes := map[string]int{"avx512": 16, "avx2": 8, "neon": 4}[simd.Level()]
	if lanes > 0 {
		peak(lanes, n)
	}
	return lanes * chains * n
}
