//go:build !purego

package simd

func sumTaps(y, x []float32, off []int, rows, n, ys, xs int) {
	switch {
	case avx512:
		sumTaps16(rows, n, &y[0], &x[0], &off[0], len(off), 4*ys, 4*xs)
	case vector:
		sumTaps8(rows, n/8, &y[0], &x[0], &off[0], len(off), 4*ys, 4*xs, &masks[8-n%8])
	default:
		sumTapsGo(y, x, off, rows, n, ys, xs)
	}
}

func maxTaps(y, x []float32, off []int, rows, n, ys, xs int) {
	switch {
	case avx512:
		maxTaps16(rows, n, &y[0], &x[0], &off[0], len(off), 4*ys, 4*xs)
	case vector:
		maxTaps8(rows, n/8, &y[0], &x[0], &off[0], len(off), 4*ys, 4*xs, &masks[8-n%8])
	default:
		maxTapsGo(y, x, off, rows, n, ys, xs)
	}
}

func extremeTaps(y []float32, at []int32, x []float32, off []int, tag []int32, rows, n, ys, xs int, least bool) {
	if !vector {
		extremeTapsGo(y, at, x, off, tag, rows, n, ys, xs, least)
		return
	}
	f, f512 := firstMaxTaps8, firstMaxTaps16
	if least {
		f, f512 = firstMinTaps8, firstMinTaps16
	}
	if avx512 {
		f512(rows, n, &y[0], &at[0], &x[0], &off[0], &tag[0], len(off), 4*ys, 4*xs)
		return
	}
	f(rows, n/8, &y[0], &at[0], &x[0], &off[0], &tag[0], len(off), 4*ys, 4*xs, &masks[8-n%8])
}

func hasMaxPlaces(step int) bool { return avx512 && step <= 2 }

func maxPlaces(y []float32, at []int64, x []float32, off []int, tag []int32, rows, n, ys, xs int, p WindowPlaces) {
	f := maxPlaces1
	if p.Step == 2 {
		f = maxPlaces2
	}
	f(rows, n, &y[0], &at[0], &x[0], &off[0], &tag[0], len(off), 4*ys, 4*xs, p.Start, p.Down)
}

func strideRows2(dst, src []float32, rows, n, ds, ss int) bool {
	if !avx512 {
		return false
	}
	stride2Rows(rows, n, &dst[0], &src[0], 4*ds, 4*ss)
	return true
}

// zipRows2 zips whole blocks and tells how many elements of a row those are.
func zipRows2(dst, a, b []float32, rows, n, ds, ss int) int {
	switch {
	case avx512:
		zip2Rows16(rows, n, &dst[0], &a[0], &b[0], 4*ds, 4*ss)
		return n
	case vector && n >= lanes:
		zip2Rows(rows, n/lanes, &dst[0], &a[0], &b[0], 4*ds, 4*ss)
		return n / lanes * lanes
	}
	return 0
}

// placeLanes is how many places a block has.
const placeLanes = 4
