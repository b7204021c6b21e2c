//go:build !purego

package simd

// The functions below take n blocks of eight elements; n > 0.

//go:noescape
func squaresWide8(n int, x *float32, mean float64) (sum, squares float64)

//go:noescape
func addWide8(n int, sums *float64, x *float32)

//go:noescape
func addSquaresWide8(n int, sums *float64, x *float32, mean *float64)

// scanWide4 takes n blocks of four.
//
//go:noescape
func scanWide4(n int, dst, src *float32) (sum float64)

func scanWide(dst, src []float32) {
	n, sum := len(dst)/4, 0.0
	if n > 0 && vector {
		sum = scanWide4(n, &dst[0], &src[0])
		dst, src = dst[4*n:], src[4*n:]
	}
	scanWideGo(dst, src, sum)
}

func sumWide(x []float32) float64 {
	n := len(x) / 8
	if n == 0 || !vector {
		return sumWideGo(x)
	}
	s, _ := squaresWide8(n, &x[0], 0)
	return s + sumWideGo(x[8*n:])
}

func squaresWide(x []float32, mean float64) float64 {
	n := len(x) / 8
	if n == 0 || !vector {
		return squaresWideGo(x, mean)
	}
	_, s := squaresWide8(n, &x[0], mean)
	return s + squaresWideGo(x[8*n:], mean)
}

func addWide(sums []float64, x []float32) {
	n := len(sums) / 8
	if n > 0 && vector {
		addWide8(n, &sums[0], &x[0])
		sums, x = sums[8*n:], x[8*n:]
	}
	addWideGo(sums, x)
}

func addSquaresWide(sums []float64, x []float32, mean []float64) {
	n := len(sums) / 8
	if n > 0 && vector {
		addSquaresWide8(n, &sums[0], &x[0], &mean[0])
		sums, x, mean = sums[8*n:], x[8*n:], mean[8*n:]
	}
	addSquaresWideGo(sums, x, mean)
}
