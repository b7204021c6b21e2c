//go:build !purego

package simd

//go:noescape
func softmaxRows8(rows, n int, dst, src *float32, stride int, mask *int32)

//go:noescape
func normRows8(rows, n int, dst, src *float32, stride int, mask *int32, weight, bias, mean, rstd *float32, size, eps float32)

// longRow is the length from which the loops of rows are faster than those of whole rows,
// with more sums in flight: where rows are short these save calls, and incomplete blocks,
// which they mask. A softmax gains from that at every length.
const longRow = 256

func softmaxRows(dst, src []float32, n int) {
	if avx512 {
		softmaxRows512(len(dst)/n, n, &dst[0], &src[0])
		return
	}
	if !vector || n >= longRow && n%8 == 0 {
		softmaxByRow(dst, src, n)
		return
	}
	softmaxRows8(len(dst)/n, n/8, &dst[0], &src[0], 4*n, &masks[8-n%8])
}

func normRows(dst, src []float32, n int, mean, rstd, weight, bias []float32, eps float32) {
	if !vector || weight == nil || bias == nil || n >= longRow {
		normByRow(dst, src, n, mean, rstd, weight, bias, eps)
		return
	}
	normRows8(len(mean), n/8, &dst[0], &src[0], 4*n, &masks[8-n%8], &weight[0], &bias[0], &mean[0], &rstd[0], float32(n), eps)
}
