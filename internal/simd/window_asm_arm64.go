//go:build !purego

package simd

func sumTaps(y, x []float32, off []int, rows, n, ys, xs int) {
	if n < lanes {
		sumTapsGo(y, x, off, rows, n, ys, xs)
		return
	}
	sumTaps4(rows, (n-1)/lanes, &y[0], &x[0], &off[0], len(off), 4*ys, 4*xs, 4*(n-lanes))
}

func maxTaps(y, x []float32, off []int, rows, n, ys, xs int) {
	if n < lanes {
		maxTapsGo(y, x, off, rows, n, ys, xs)
		return
	}
	maxTaps4(rows, (n-1)/lanes, &y[0], &x[0], &off[0], len(off), 4*ys, 4*xs, 4*(n-lanes))
}

func extremeTaps(y []float32, at []int32, x []float32, off []int, tag []int32, rows, n, ys, xs int, least bool) {
	switch {
	case n < lanes:
		extremeTapsGo(y, at, x, off, tag, rows, n, ys, xs, least)
	case least:
		firstMinTaps4(rows, (n-1)/lanes, &y[0], &at[0], &x[0], &off[0], &tag[0], len(off), 4*ys, 4*xs, 4*(n-lanes))
	default:
		firstMaxTaps4(rows, (n-1)/lanes, &y[0], &at[0], &x[0], &off[0], &tag[0], len(off), 4*ys, 4*xs, 4*(n-lanes))
	}
}

func hasMaxPlaces(step int) bool { return false }

func maxPlaces(y []float32, at []int64, x []float32, off []int, tag []int32, rows, n, ys, xs int, p WindowPlaces) {
	maxPlacesGo(y, at, x, off, tag, rows, n, ys, xs, p)
}

func strideRows2(dst, src []float32, rows, n, ds, ss int) bool { return false }

// zipRows2 zips whole blocks and tells how many elements of a row those are.
func zipRows2(dst, a, b []float32, rows, n, ds, ss int) int {
	if n >= lanes {
		zip2Rows(rows, n/lanes, &dst[0], &a[0], &b[0], 4*ds, 4*ss)
	}
	return n / lanes * lanes
}

// placeLanes is how many places a block has.
const placeLanes = 4
