package simd

import "math"

// longRow is the length from which the loops of rows are faster than those of whole rows,
// with more sums in flight: where rows are short these save calls, and incomplete blocks,
// which they mask. A softmax gains from that at every length.
const longRow = 256

// SoftmaxRows normalises rows of n elements: with m the largest of a row,
//
//	dst[j] = exp(src[j]-m) / Σ exp(src[j]-m)
//
// as [ExpSum] has it. len(dst) is a multiple of n. dst may be src. It panics where src is
// shorter than dst.
func SoftmaxRows(dst, src []float32, n int) {
	if len(dst) == 0 {
		return
	}
	src = src[:len(dst):len(src)]
	switch {
	case avx512 && &dst[0] == &src[0] && n <= len(rowBuffer{})/2:
		softmaxInPlace(dst, n)
	case avx512:
		softmaxRows512(len(dst)/n, n, &dst[0], &src[0])
	case neon && n >= lanes:
		softmaxRows4(len(dst)/n, n, &dst[0], &src[0], blockLanes(n))
	case !avx2() || n >= longRow && n%8 == 0:
		softmaxByRow(dst, src, n)
	default:
		softmaxRows8(len(dst)/n, n/8, &dst[0], &src[0], 4*n, &masks[8-n%8])
	}
}

// rowBuffer is memory for a few short rows.
type rowBuffer [512]float32

// softmaxInPlace computes rows in a buffer: a store of a part of a block delays loads of the bytes behind it, here those of
// the next row, so that no row would begin before the last one ends.
func softmaxInPlace(x []float32, n int) {
	var buffer rowBuffer
	for most := len(buffer) / n * n; len(x) > 0; {
		part := min(most, len(x))
		softmaxRows512(part/n, n, &buffer[0], &x[0])
		copy(x, buffer[:part])
		x = x[part:]
	}
}

// NormRows normalises rows of n elements:
//
//	mean[i] = Σ src[i·n+j] / n
//	rstd[i] = 1 / sqrt(Σ (src[i·n+j]-mean[i])² / n + eps)
//	dst[i·n+j] = (src[i·n+j]-mean[i]) · rstd[i] · weight[j] + bias[j]    i < len(mean), j < n
//
// a nil weight counts as ones, a nil bias as zeros. dst may be src. It panics where another
// slice is too short for the rows that mean has.
func NormRows(dst, src []float32, n int, mean, rstd, weight, bias []float32, eps float32) {
	if n == 0 || len(mean) == 0 {
		return
	}
	all := n * len(mean)
	dst, src, rstd = dst[:all:len(dst)], src[:all:len(src)], rstd[:len(mean):len(rstd)]
	if weight != nil {
		weight = weight[:n:len(weight)]
	}
	if bias != nil {
		bias = bias[:n:len(bias)]
	}
	if weight == nil || bias == nil || !avx2() && !neon || neon && n < lanes || n >= longRow {
		normByRow(dst, src, n, mean, rstd, weight, bias, eps)
		return
	}
	if neon {
		normRows4(len(mean), n, &dst[0], &src[0], blockLanes(n), &weight[0], &bias[0], &mean[0], &rstd[0], float32(n), eps)
		return
	}
	normRows8(len(mean), n/8, &dst[0], &src[0], 4*n, &masks[8-n%8], &weight[0], &bias[0], &mean[0], &rstd[0], float32(n), eps)
}

// blockLanes are the lanes of the last four elements of a row that are in whole blocks of four.
func blockLanes(n int) *int32 { return &masks[4+n%4] }

// The norms row by row, out of the row kernels.

func softmaxByRow(dst, src []float32, n int) {
	for i := 0; i < len(dst); i += n {
		d, s := dst[i:][:n], src[i:][:n]
		sum := ExpSum(d, s, Max(s))
		ScaleShift(d, d, 1/sum, 0)
	}
}

func normByRow(dst, src []float32, n int, mean, rstd, weight, bias []float32, eps float32) {
	for i := range mean {
		d, s := dst[i*n:][:n], src[i*n:][:n]
		mean[i] = Sum(s) / float32(n)
		variance := SumSquares(s, mean[i]) / float32(n)
		rstd[i] = float32(1 / math.Sqrt(float64(variance+eps)))
		Center(d, s, mean[i], rstd[i], weight, bias)
	}
}
