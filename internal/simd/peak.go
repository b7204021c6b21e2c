package simd

// peakChains is the number of sums in the loops of [MultiplyAdds].
const peakChains = 24

// MultiplyAdds computes n rounds of fused multiply-adds of registers, which do not wait for each other, and returns their number:
// no product of float32 is faster than these. It returns 0 without vectors. It is for benchmarks.
func MultiplyAdds(n int) int {
	if n < 1 {
		return 0
	}
	switch {
	case avx512:
		peak16(n)
		return 16 * peakChains * n
	case avx2():
		peak8(n)
		return 8 * peakChains * n
	case neon:
		peak4(n)
		return 4 * peakChains * n
	}
	return 0
}
