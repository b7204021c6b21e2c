//go:build !purego

package simd

// channelTaps computes the channels of whole blocks and tells how many those are.
func channelTaps(y, x, w, bias []float32, xo, wo []int, rows, n, ys, xs int, lo, hi float32) int {
	if n < 4 {
		return 0
	}
	for i := 0; i < rows; {
		i += pixels(rows-i, n/4, &y[i*ys], &x[i*xs], &xo[0], &w[0], &wo[0], len(xo), &bias[0], 4*ys, 4*xs, lo, hi)
	}
	return n &^ 3
}
