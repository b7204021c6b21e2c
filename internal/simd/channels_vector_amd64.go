//go:build !purego

package simd

// channelTaps computes the channels of whole blocks and tells how many those are.
func channelTaps(y, x, w, bias []float32, xo, wo []int, rows, n, ys, xs int, lo, hi float32) int {
	if !vector || !avx512 && n < 8 {
		return 0
	}
	for i := 0; i < rows; {
		if avx512 {
			i += pixels512(rows-i, n, &y[i*ys], &x[i*xs], &xo[0], &w[0], &wo[0], len(xo), &bias[0], 4*ys, 4*xs, lo, hi)
		} else {
			i += pixels(rows-i, n/8, &y[i*ys], &x[i*xs], &xo[0], &w[0], &wo[0], len(xo), &bias[0], 4*ys, 4*xs, lo, hi)
		}
	}
	if avx512 {
		return n
	}
	return n &^ 7
}

// pixels512 computes up to rows pixels and tells how many.
func pixels512(rows, n int, y, x *float32, xo *int, w *float32, wo *int, t int, bias *float32, ys, xs int, lo, hi float32) int {
	switch {
	case rows >= 4:
		channels4x512(n, y, x, xo, w, wo, t, bias, ys, xs, lo, hi)
		return 4
	case rows >= 2:
		channels2x512(n, y, x, xo, w, wo, t, bias, ys, xs, lo, hi)
		return 2
	}
	channels1x512(n, y, x, xo, w, wo, t, bias, ys, xs, lo, hi)
	return 1
}
