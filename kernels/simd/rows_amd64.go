//go:build !purego

package simd

import "math"

// The functions below take n blocks of as many elements as their name says; n > 0.

//go:noescape
func taps64(n int, y, x *float32, off *int, w *float32, t int)

//go:noescape
func taps8(n int, y, x *float32, off *int, w *float32, t int)

//go:noescape
func dot32(n int, x, y *float32) float32

//go:noescape
func sum32(n int, x *float32) float32

//go:noescape
func squares32(n int, x *float32, mean float32) float32

//go:noescape
func scaleShift8(n int, dst, src *float32, scale, shift float32)

//go:noescape
func max8(n int, x *float32) float32

//go:noescape
func exp8(n int, dst, src *float32)

//go:noescape
func expSum8(n int, dst, src *float32, shift float32) float32

// short is the length of rows that are not worth a call.
const short = 8

func taps(y, x []float32, off []int, w []float32) {
	i := 0
	if vector {
		if n := len(y) / 64; n > 0 {
			taps64(n, &y[0], &x[0], &off[0], &w[0], len(off))
			i = n * 64
		}
		if n := (len(y) - i) / 8; n > 0 {
			taps8(n, &y[i], &x[i], &off[0], &w[0], len(off))
			i += n * 8
		}
	}
	if i < len(y) {
		tapsGo(y[i:], x[i:], off, w)
	}
}

func taps1(y, x []float32, a float32) {
	if len(y) < short || !vector {
		axpyGo(y, x, a)
		return
	}
	at := [1]int{}
	w := [1]float32{a}
	taps(y, x, at[:], w[:])
}

func dot(x, y []float32) float32 {
	n := len(x) / 32
	if n == 0 || !vector {
		return dotGo(x, y)
	}
	return dot32(n, &x[0], &y[0]) + dotGo(x[n*32:], y[n*32:])
}

func sum(x []float32) float32 {
	n := len(x) / 32
	if n == 0 || !vector {
		return sumGo(x)
	}
	return sum32(n, &x[0]) + sumGo(x[n*32:])
}

func sumSquares(x []float32, mean float32) float32 {
	n := len(x) / 32
	if n == 0 || !vector {
		return sumSquaresGo(x, mean)
	}
	return squares32(n, &x[0], mean) + sumSquaresGo(x[n*32:], mean)
}

func maxOf(x []float32) float32 {
	n := len(x) / 8
	if n == 0 || !vector {
		return maxGo(x)
	}
	m := max8(n, &x[0])
	for _, v := range x[n*8:] {
		if v > m || v != v {
			m = v
		}
	}
	return m
}

func scaleShift(dst, src []float32, scale, shift float32) {
	n := len(dst) / 8
	if n > 0 && vector {
		scaleShift8(n, &dst[0], &src[0], scale, shift)
		dst, src = dst[n*8:], src[n*8:]
	}
	scaleShiftGo(dst, src, scale, shift)
}

// exp computes a last incomplete block in eight lanes too, so that an element's
// result does not depend on its place.
func exp(dst, src []float32) {
	if !vector {
		expGo(dst, src)
		return
	}
	n := len(dst) / 8
	if n > 0 {
		exp8(n, &dst[0], &src[0])
	}
	if rest := dst[n*8:]; len(rest) > 0 {
		var b [8]float32
		copy(b[:], src[n*8:])
		exp8(1, &b[0], &b[0])
		copy(rest, b[:])
	}
}

func expSum(dst, src []float32, shift float32) (s float32) {
	if !vector {
		return expSumGo(dst, src, shift)
	}
	n := len(dst) / 8
	if n > 0 {
		s = expSum8(n, &dst[0], &src[0], shift)
	}
	if rest := dst[n*8:]; len(rest) > 0 {
		b := [8]float32{}
		for i := copy(b[:], src[n*8:]); i < len(b); i++ {
			b[i] = float32(math.Inf(-1))
		}
		s += expSum8(1, &b[0], &b[0], shift)
		copy(rest, b[:])
	}
	return s
}

//go:noescape
func copyRows8(rows int, dst, src *float32, n, ds, ss int, mask *int32)

func copyRows(dst, src []float32, rows, n, ds, ss int) {
	const long = 64 // from here copy is as fast
	if !vector || n >= long {
		copyRowsGo(dst, src, rows, n, ds, ss)
		return
	}
	copyRows8(rows, &dst[0], &src[0], n/8, 4*ds, 4*ss, &masks[8-n%8])
}
