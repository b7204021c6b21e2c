package simd

// Sums of float32 in float64, which variances and means of many elements take.

// vectorizedFloat64 is the number of elements in whole blocks of eight, 0 where there is no loop.
func vectorizedFloat64(n int) int {
	if !vector {
		return 0
	}
	return n &^ 7
}

// SumFloat64 is Σ x[i], 0 for none.
func SumFloat64(x []float32) float64 {
	n, s := vectorizedFloat64(len(x)), 0.0
	if n > 0 {
		s, _ = sumSquaresFloat64x8(n/8, &x[0], 0)
	}
	return s + SumAs[float64](x[n:])
}

// SumSquaresFloat64 is Σ (x[i]-mean)², 0 for none.
func SumSquaresFloat64(x []float32, mean float64) float64 {
	n, s := vectorizedFloat64(len(x)), 0.0
	if n > 0 {
		_, s = sumSquaresFloat64x8(n/8, &x[0], mean)
	}
	return s + SumSquaresAs(x[n:], mean)
}

// AddFloat64 adds x[i] to sums[i]. It panics where x is shorter than sums.
func AddFloat64(sums []float64, x []float32) {
	x = x[:len(sums):len(x)]
	n := vectorizedFloat64(len(sums))
	if n > 0 {
		addFloat64x8(n/8, &sums[0], &x[0])
	}
	addFloat64Go(sums[n:], x[n:])
}

// AddSquaresFloat64 adds (x[i]-mean[i])² to sums[i]. It panics where x or mean is shorter than
// sums.
func AddSquaresFloat64(sums []float64, x []float32, mean []float64) {
	x, mean = x[:len(sums):len(x)], mean[:len(sums):len(mean)]
	n := vectorizedFloat64(len(sums))
	if n > 0 {
		addSquaresFloat64x8(n/8, &sums[0], &x[0], &mean[0])
	}
	addSquaresFloat64Go(sums[n:], x[n:], mean[n:])
}

// CumSum sets dst[i] to Σ_{j≤i} src[j], the running sum. dst may be src. It panics where
// src is shorter than dst.
func CumSum(dst, src []float32) {
	src = src[:len(dst):len(src)]
	n, sum := len(dst)&^3, 0.0
	if n > 0 && vector {
		sum = cumSumx4(n/4, &dst[0], &src[0])
		dst, src = dst[n:], src[n:]
	}
	cumSumGo(dst, src, sum)
}

// cumSumGo adds up four elements at a time, so that only one addition of each four
// waits for those before.
func cumSumGo(dst, src []float32, sum float64) {
	for ; len(src) >= 4 && len(dst) >= 4; src, dst = src[4:], dst[4:] {
		a, c := float64(src[0]), float64(src[2])
		ab, cd := a+float64(src[1]), c+float64(src[3])
		dst[0], dst[1], dst[2], dst[3] = float32(sum+a), float32(sum+ab), float32(sum+(ab+c)), float32(sum+(ab+cd))
		sum += ab + cd
	}
	for i, v := range src {
		sum += float64(v)
		dst[i] = float32(sum)
	}
}

func addFloat64Go(sums []float64, x []float32) {
	x = x[:len(sums)]
	for i := range sums {
		sums[i] += float64(x[i])
	}
}

func addSquaresFloat64Go(sums []float64, x []float32, mean []float64) {
	x, mean = x[:len(sums)], mean[:len(sums)]
	for i := range sums {
		d := float64(x[i]) - mean[i]
		sums[i] += d * d
	}
}
