//go:build !purego && (amd64 || arm64)

package simd

// pixels computes up to rows pixels and tells how many.
func pixels(rows, n int, y, x *float32, xo *int, w *float32, wo *int, t int, bias *float32, ys, xs int, lo, hi float32) int {
	switch {
	case rows >= 4:
		channels4(n, y, x, xo, w, wo, t, bias, ys, xs, lo, hi)
		return 4
	case rows >= 2:
		channels2(n, y, x, xo, w, wo, t, bias, ys, xs, lo, hi)
		return 2
	}
	channels1(n, y, x, xo, w, wo, t, bias, ys, xs, lo, hi)
	return 1
}
