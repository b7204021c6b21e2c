//go:build !purego

package simd

//go:noescape
func softmaxRows8(rows, n int, dst, src *float32, stride int, mask *int32)

//go:noescape
func normRows8(rows, n int, dst, src *float32, stride int, mask *int32, weight, bias, mean, rstd *float32, size, eps float32)

// Loops of whole rows win where rows are short: what they save is calls, and incomplete
// blocks, which they mask. Along long rows the loops of rows are faster, with more sums in
// flight.
const (
	longNorm    = 192
	longSoftmax = 256
)

func softmaxRows(dst, src []float32, n int) {
	if !vector || n >= longSoftmax && n%8 == 0 {
		softmaxByRow(dst, src, n)
		return
	}
	softmaxRows8(len(dst)/n, n/8, &dst[0], &src[0], 4*n, &masks[8-n%8])
}

func normRows(dst, src []float32, n int, mean, rstd, weight, bias []float32, eps float32) {
	if !vector || weight == nil || bias == nil || n >= longNorm {
		normByRow(dst, src, n, mean, rstd, weight, bias, eps)
		return
	}
	normRows8(len(mean), n/8, &dst[0], &src[0], 4*n, &masks[8-n%8], &weight[0], &bias[0], &mean[0], &rstd[0], float32(n), eps)
}
