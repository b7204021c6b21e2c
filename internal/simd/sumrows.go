package simd

// SumRows sums rows of n elements, one behind the other:
//
//	dst[i] = Σ_j x[i*n+j]    i < len(dst), j < n
//
// It is for short rows, where a call for each would take longer than the sum. It panics
// where x ends before the last row does.
func SumRows(dst, x []float32, n int) {
	if len(dst) == 0 {
		return
	}
	if n <= 0 {
		clear(dst)
		return
	}
	_ = x[len(dst)*n-1]
	if eights := len(dst) &^ 7; eights > 0 && alignedRows(n) {
		sumRows16(eights, n, &dst[0], &x[0])
		if dst, x = dst[eights:], x[eights*n:]; len(dst) == 0 {
			return
		}
	}
	fours := len(dst) &^ 3
	switch {
	case fours > 0 && avx2():
		sumRows8(fours, n/8, &dst[0], &x[0], 4*n, &masks[8-n%8])
	case fours > 0 && neon && n >= lanes:
		sumRows4(fours, n, &dst[0], &x[0], blockLanes(n))
	default:
		fours = 0
	}
	dst, x = dst[fours:], x[fours*n:]
	for i := range dst {
		dst[i] = Sum(x[i*n:][:n])
	}
}

// alignedRows reports whether rows of n elements are summed by AVX-512, with aligned loads. AVX2 is faster for long rows
// of whole vectors, few of whose loads cross a line of the cache.
func alignedRows(n int) bool { return avx512 && n >= 16 && (n < 128 || n%8 != 0) }

// SumHalfRows is SumRows of float16. It returns false, without a sum, if there is no vector loop or if there are too few
// rows or elements in one.
func SumHalfRows(dst []float32, x []byte, n int) bool {
	rows := len(dst)
	if !avx2() || rows < 4 || n < lanes {
		return false
	}
	_ = x[2*rows*n-1]
	rest, fours := n%lanes, rows&^3
	sum := func(at, count int) {
		sumHalfRows8(count, n/lanes, &dst[at], &x[2*at*n], 2*n, 2*(rest-lanes), &masks[rest])
	}
	if sum(0, fours); fours < rows {
		sum(rows-4, 4)
	}
	return true
}
