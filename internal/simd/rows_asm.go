//go:build !purego && (amd64 || arm64)

package simd

import "math"

// The functions below take n blocks of tapsBlock and of lanes elements; n > 0.

//go:noescape
func tapsBlocks(n int, y, x *float32, off *int, w *float32, t int)

//go:noescape
func tapsLanes(n int, y, x *float32, off *int, w *float32, t int)

func taps(y, x []float32, off []int, w []float32) {
	i := 0
	if vector {
		if n := len(y) / tapsBlock; n > 0 {
			tapsBlocks(n, &y[0], &x[0], &off[0], &w[0], len(off))
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

func fill(dst []float32, v float32) {
	n := len(dst) / lanes
	if n > 0 && vector {
		fillLanes(n, &dst[0], v)
		dst = dst[n*lanes:]
	}
	fillGo(dst, v)
}

func axpy(y, x []float32, a float32) {
	at, w := [1]int{}, [1]float32{a}
	taps(y, x, at[:], w[:])
}

func dot(x, y []float32) float32 {
	n := len(x) / lanes
	if n == 0 || !vector {
		return dotGo(x, y)
	}
	return dotLanes(n, &x[0], &y[0]) + dotGo(x[n*lanes:], y[n*lanes:])
}

func sum(x []float32) float32 {
	n := len(x) / lanes
	if n == 0 || !vector {
		return sumGo(x)
	}
	return sumLanes(n, &x[0]) + sumGo(x[n*lanes:])
}

func sumSquares(x []float32, mean float32) float32 {
	n := len(x) / lanes
	if n == 0 || !vector {
		return sumSquaresGo(x, mean)
	}
	return squaresLanes(n, &x[0], mean) + sumSquaresGo(x[n*lanes:], mean)
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

func minOf(x []float32) float32 {
	n := len(x) / lanes
	if n == 0 || !vector {
		return minGo(x)
	}
	m := minLanes(n, &x[0])
	for _, v := range x[n*lanes:] {
		if v < m || v != v {
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

func center(dst, src []float32, mean, scale float32, weight, bias []float32) {
	n := len(dst) / lanes
	if n == 0 || weight == nil || bias == nil || !vector {
		centerGo(dst, src, mean, scale, weight, bias)
		return
	}
	centerLanes(n, &dst[0], &src[0], &weight[0], &bias[0], mean, scale)
	if n *= lanes; n < len(dst) {
		centerGo(dst[n:], src[n:], mean, scale, weight[n:], bias[n:])
	}
}

// stride2 takes the last incomplete block together with the end of the one before,
// where src has the element beyond that a block reads.
func stride2(dst, src []float32) {
	n := len(dst)
	if n < lanes || !vector {
		stride2Go(dst, src)
		return
	}
	blocks := min(n, len(src)/2) / lanes
	if blocks > 0 {
		stride2Lanes(blocks, &dst[0], &src[0])
	}
	switch done := blocks * lanes; {
	case done == n:
	case len(src) >= 2*n:
		stride2Lanes(1, &dst[n-lanes], &src[2*(n-lanes)])
	default:
		stride2Go(dst[done:], src[2*done:])
	}
}

// expSum computes a last incomplete block in all lanes, too, so that an element's result
// does not depend on its place.
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
