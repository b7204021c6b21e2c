package simd

import "math"

// Interpolate takes a row between its points:
//
//	dst[j] = (1-weight[j])·src[first[j]] + weight[j]·src[second[j]]
//
// It is fastest where indices do not decrease and neighbours lie close to each other. It panics where
// another slice is shorter than dst, or an index lies outside src.
func Interpolate[T float32 | float64](dst, src []T, first, second []int32, weight []T) {
	first, second, weight = first[:len(dst):len(first)], second[:len(dst):len(second)], weight[:len(dst):len(weight)]
	done := 0
	if d, ok := any(dst).([]float32); ok && len(dst) > 0 && len(src) > 0 {
		x, w := any(src).([]float32), any(weight).([]float32)
		switch {
		case avx512:
			done = interpolate512(len(d), &d[0], &x[0], len(x), &first[0], &second[0], &w[0])
		case neon && len(d) >= lanes:
			done = interpolate4(len(d)/lanes, &d[0], &x[0], min(len(x), math.MaxInt32), &first[0], &second[0], &w[0])
		}
	}
	for j := done; j < len(dst); j++ {
		w := weight[j]
		dst[j] = T((1-w)*src[first[j]]) + T(w*src[second[j]])
	}
}
