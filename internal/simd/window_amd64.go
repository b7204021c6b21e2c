//go:build !purego

package simd

// The functions below take n whole blocks of eight for each row, then what the mask
// leaves on; strides are in bytes.

//go:noescape
func sumTaps8(rows, n int, y, x *float32, off *int, taps, ys, xs int, mask *int32)

//go:noescape
func maxTaps8(rows, n int, y *float32, at *int32, x *float32, off *int, tag *int32, taps, ys, xs int, mask *int32, signs uint32)

func sumTaps(y, x []float32, off []int, rows, n, ys, xs int) {
	if !vector {
		sumTapsGo(y, x, off, rows, n, ys, xs)
		return
	}
	sumTaps8(rows, n/8, &y[0], &x[0], &off[0], len(off), 4*ys, 4*xs, &masks[8-n%8])
}

func extremeTaps(y []float32, at []int32, x []float32, off []int, tag []int32, rows, n, ys, xs int, least bool) {
	if !vector {
		extremeTapsGo(y, at, x, off, tag, rows, n, ys, xs, least)
		return
	}
	maxTaps8(rows, n/8, &y[0], &at[0], &x[0], &off[0], &tag[0], len(off), 4*ys, 4*xs, &masks[8-n%8], signsFor(least))
}
