package simd

// AddRows adds a number to each row of n elements:
//
//	dst[i*n+j] = a[i*n+j] + b[i]    i*n+j < len(dst)
//
// dst may be a. It panics where n does not divide the length of dst, where a is shorter than dst, and where b has fewer
// elements than dst has rows. So do the functions below.
func AddRows(dst, a, b []float32, n int) {
	if b = rowsOf(dst, a, b, n); vector && n >= lanes && len(b) > 0 {
		addRows(len(b), n, &dst[0], &a[0], &b[0])
		return
	}
	byRowsGo(dst, a, b, n, func(x, v float32) float32 { return x + v })
}

// SubRows is [AddRows] that subtracts b[i].
func SubRows(dst, a, b []float32, n int) {
	if b = rowsOf(dst, a, b, n); vector && n >= lanes && len(b) > 0 {
		subRows(len(b), n, &dst[0], &a[0], &b[0])
		return
	}
	byRowsGo(dst, a, b, n, func(x, v float32) float32 { return x - v })
}

// MulRows is [AddRows] that multiplies by b[i].
func MulRows(dst, a, b []float32, n int) {
	if b = rowsOf(dst, a, b, n); vector && n >= lanes && len(b) > 0 {
		mulRows(len(b), n, &dst[0], &a[0], &b[0])
		return
	}
	byRowsGo(dst, a, b, n, func(x, v float32) float32 { return x * v })
}

// DivRows is [AddRows] that divides by b[i].
func DivRows(dst, a, b []float32, n int) {
	if b = rowsOf(dst, a, b, n); vector && n >= lanes && len(b) > 0 {
		divRows(len(b), n, &dst[0], &a[0], &b[0])
		return
	}
	byRowsGo(dst, a, b, n, func(x, v float32) float32 { return x / v })
}

// rowsOf checks lengths, and returns the elements of b that belong to rows of dst.
func rowsOf(dst, a, b []float32, n int) []float32 {
	if len(dst) == 0 {
		return nil
	}
	rows := len(dst) / n
	if rows*n != len(dst) {
		panic("simd: rows of a length that does not divide that of dst")
	}
	_ = a[len(dst)-1]
	return b[:rows:len(b)]
}

func byRowsGo(dst, a, b []float32, n int, f func(x, v float32) float32) {
	for i, v := range b {
		row, x := dst[i*n:][:n], a[i*n:][:n]
		for j := range row {
			row[j] = f(x[j], v)
		}
	}
}
