//go:build !purego && (amd64 || arm64)

package simd

import "math"

// The functions below take n blocks of tapsBlock, of lanes or, the sums, of 4 · lanes
// elements; n > 0.

//go:noescape
func tapsWide(n int, y, x *float32, off *int, w *float32, t int)

//go:noescape
func tapsLanes(n int, y, x *float32, off *int, w *float32, t int)

//go:noescape
func dotBlocks(n int, x, y *float32) float32

//go:noescape
func sumBlocks(n int, x *float32) float32

//go:noescape
func squaresBlocks(n int, x *float32, mean float32) float32

//go:noescape
func scaleShiftLanes(n int, dst, src *float32, scale, shift float32)

//go:noescape
func maxLanes(n int, x *float32) float32

//go:noescape
func expLanes(n int, dst, src *float32)

//go:noescape
func expSumLanes(n int, dst, src *float32, shift float32) float32

const block = 4 * lanes

func taps(y, x []float32, off []int, w []float32) {
	i := 0
	if vector {
		if n := len(y) / tapsBlock; n > 0 {
			tapsWide(n, &y[0], &x[0], &off[0], &w[0], len(off))
			i = n * tapsBlock
		}
		if n := (len(y) - i) / lanes; n > 0 {
			tapsLanes(n, &y[i], &x[i], &off[0], &w[0], len(off))
			i += n * lanes
		}
	}
	if i < len(y) {
		tapsGo(y[i:], x[i:], off, w)
	}
}

func axpy(y, x []float32, a float32) {
	at, w := [1]int{}, [1]float32{a}
	taps(y, x, at[:], w[:])
}

func dot(x, y []float32) float32 {
	n := len(x) / block
	if n == 0 || !vector {
		return dotGo(x, y)
	}
	return dotBlocks(n, &x[0], &y[0]) + dotGo(x[n*block:], y[n*block:])
}

func sum(x []float32) float32 {
	n := len(x) / block
	if n == 0 || !vector {
		return sumGo(x)
	}
	return sumBlocks(n, &x[0]) + sumGo(x[n*block:])
}

func sumSquares(x []float32, mean float32) float32 {
	n := len(x) / block
	if n == 0 || !vector {
		return sumSquaresGo(x, mean)
	}
	return squaresBlocks(n, &x[0], mean) + sumSquaresGo(x[n*block:], mean)
}

func maxOf(x []float32) float32 {
	n := len(x) / lanes
	if n == 0 || !vector {
		return maxGo(x)
	}
	m := maxLanes(n, &x[0])
	for _, v := range x[n*lanes:] {
		if v > m || v != v {
			m = v
		}
	}
	return m
}

func scaleShift(dst, src []float32, scale, shift float32) {
	n := len(dst) / lanes
	if n > 0 && vector {
		scaleShiftLanes(n, &dst[0], &src[0], scale, shift)
		dst, src = dst[n*lanes:], src[n*lanes:]
	}
	scaleShiftGo(dst, src, scale, shift)
}

// exp computes a last incomplete block in all lanes too, so that an element's result
// does not depend on its place.
func exp(dst, src []float32) {
	if !vector {
		expGo(dst, src)
		return
	}
	n := len(dst) / lanes
	if n > 0 {
		expLanes(n, &dst[0], &src[0])
	}
	if rest := dst[n*lanes:]; len(rest) > 0 {
		var b [lanes]float32
		copy(b[:], src[n*lanes:])
		expLanes(1, &b[0], &b[0])
		copy(rest, b[:])
	}
}

func expSum(dst, src []float32, shift float32) (s float32) {
	if !vector {
		return expSumGo(dst, src, shift)
	}
	n := len(dst) / lanes
	if n > 0 {
		s = expSumLanes(n, &dst[0], &src[0], shift)
	}
	if rest := dst[n*lanes:]; len(rest) > 0 {
		var b [lanes]float32
		for i := copy(b[:], src[n*lanes:]); i < lanes; i++ {
			b[i] = float32(math.Inf(-1))
		}
		s += expSumLanes(1, &b[0], &b[0], shift)
		copy(rest, b[:])
	}
	return s
}
