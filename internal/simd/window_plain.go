//go:build purego || !(amd64 || arm64)

package simd

func sumTaps(y, x []float32, off []int, rows, n, ys, xs int) {
	sumTapsGo(y, x, off, rows, n, ys, xs)
}

func extremeTaps(y []float32, at []int32, x []float32, off []int, tag []int32, rows, n, ys, xs int, least bool) {
	extremeTapsGo(y, at, x, off, tag, rows, n, ys, xs, least)
}
