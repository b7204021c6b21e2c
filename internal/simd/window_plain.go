//go:build purego || !(amd64 || arm64)

package simd

func sumTaps(y, x []float32, off []int, rows, n, ys, xs int) {
	sumTapsGo(y, x, off, rows, n, ys, xs)
}

func maxTaps(y, x []float32, off []int, rows, n, ys, xs int) {
	maxTapsGo(y, x, off, rows, n, ys, xs)
}

func extremeTaps(y []float32, at []int32, x []float32, off []int, tag []int32, rows, n, ys, xs int, least bool) {
	extremeTapsGo(y, at, x, off, tag, rows, n, ys, xs, least)
}

func hasMaxPlaces(step int) bool { return false }

func maxPlaces(y []float32, at []int64, x []float32, off []int, tag []int32, rows, n, ys, xs int, p WindowPlaces) {
	maxPlacesGo(y, at, x, off, tag, rows, n, ys, xs, p)
}

func strideRows2(dst, src []float32, rows, n, ds, ss int) bool { return false }

func zipRows2(dst, a, b []float32, rows, n, ds, ss int) int { return 0 }

// placeLanes is how many places a block has.
const placeLanes = 4

func placesLanes(n int, dst *int64, at *int32, start, step int) {}
