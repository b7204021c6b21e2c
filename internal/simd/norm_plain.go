//go:build purego || !amd64

package simd

func softmaxRows(dst, src []float32, n int) { softmaxByRow(dst, src, n) }

func normRows(dst, src []float32, n int, mean, rstd, weight, bias []float32, eps float32) {
	normByRow(dst, src, n, mean, rstd, weight, bias, eps)
}
