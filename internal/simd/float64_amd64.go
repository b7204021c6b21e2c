//go:build !purego

package simd

// The functions below take n blocks of eight elements; n > 0.

//go:noescape
func sumSquaresFloat64x8(n int, x *float32, mean float64) (sum, squares float64)

//go:noescape
func addFloat64x8(n int, sums *float64, x *float32)

//go:noescape
func addSquaresFloat64x8(n int, sums *float64, x *float32, mean *float64)

// cumSumx4 takes n blocks of four.
//
//go:noescape
func cumSumx4(n int, dst, src *float32) (sum float64)

func cumSum(dst, src []float32) {
	n, sum := len(dst)/4, 0.0
	if n > 0 && vector {
		sum = cumSumx4(n, &dst[0], &src[0])
		dst, src = dst[4*n:], src[4*n:]
	}
	cumSumGo(dst, src, sum)
}

func sumFloat64(x []float32) float64 {
	n := len(x) / 8
	if n == 0 || !vector {
		return sumFloat64Go(x)
	}
	s, _ := sumSquaresFloat64x8(n, &x[0], 0)
	return s + sumFloat64Go(x[8*n:])
}

func sumSquaresFloat64(x []float32, mean float64) float64 {
	n := len(x) / 8
	if n == 0 || !vector {
		return sumSquaresFloat64Go(x, mean)
	}
	_, s := sumSquaresFloat64x8(n, &x[0], mean)
	return s + sumSquaresFloat64Go(x[8*n:], mean)
}

func addFloat64(sums []float64, x []float32) {
	n := len(sums) / 8
	if n > 0 && vector {
		addFloat64x8(n, &sums[0], &x[0])
		sums, x = sums[8*n:], x[8*n:]
	}
	addFloat64Go(sums, x)
}

func addSquaresFloat64(sums []float64, x []float32, mean []float64) {
	n := len(sums) / 8
	if n > 0 && vector {
		addSquaresFloat64x8(n, &sums[0], &x[0], &mean[0])
		sums, x, mean = sums[8*n:], x[8*n:], mean[8*n:]
	}
	addSquaresFloat64Go(sums, x, mean)
}
