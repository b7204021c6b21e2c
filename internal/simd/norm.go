package simd

import "math"

// The norms row by row, out of the row kernels.

func softmaxByRow(dst, src []float32, n int) {
	for i := 0; i < len(dst); i += n {
		d, s := dst[i:][:n], src[i:][:n]
		sum := expSum(d, s, maxOf(s))
		scaleShift(d, d, 1/sum, 0)
	}
}

func normByRow(dst, src []float32, n int, mean, rstd, weight, bias []float32, eps float32) {
	for i := range mean {
		d, s := dst[i*n:][:n], src[i*n:][:n]
		mean[i] = sum(s) / float32(n)
		variance := sumSquares(s, mean[i]) / float32(n)
		rstd[i] = float32(1 / math.Sqrt(float64(variance+eps)))
		center(d, s, mean[i], rstd[i], weight, bias)
	}
}
