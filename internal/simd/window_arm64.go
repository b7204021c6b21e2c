//go:build !purego

package simd

// The functions below take n blocks of lanes for each row, then the last lanes of the
// row again, which lie last bytes from its start; strides are in bytes.

//go:noescape
func sumTaps4(rows, n int, y, x *float32, off *int, taps, ys, xs, last int)

//go:noescape
func maxTaps4(rows, n int, y *float32, at *int32, x *float32, off *int, tag *int32, taps, ys, xs, last int, signs uint32)

func sumTaps(y, x []float32, off []int, rows, n, ys, xs int) {
	if n < lanes {
		sumTapsGo(y, x, off, rows, n, ys, xs)
		return
	}
	sumTaps4(rows, (n-1)/lanes, &y[0], &x[0], &off[0], len(off), 4*ys, 4*xs, 4*(n-lanes))
}

func extremeTaps(y []float32, at []int32, x []float32, off []int, tag []int32, rows, n, ys, xs int, least bool) {
	if n < lanes {
		extremeTapsGo(y, at, x, off, tag, rows, n, ys, xs, least)
		return
	}
	maxTaps4(rows, (n-1)/lanes, &y[0], &at[0], &x[0], &off[0], &tag[0], len(off), 4*ys, 4*xs, 4*(n-lanes), signsFor(least))
}
