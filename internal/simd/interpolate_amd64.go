//go:build !purego

package simd

// interpolate returns how many elements are done.
func interpolate(dst, src []float32, first, second []int32, weight []float32) int {
	if len(dst) == 0 || len(src) == 0 || !avx512 {
		return 0
	}
	return interpolate512(len(dst), &dst[0], &src[0], len(src), &first[0], &second[0], &weight[0])
}
