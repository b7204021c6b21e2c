//go:build !purego

package simd

// requantize returns how many columns are done.
func (q *Quantized) requantize(dst []uint8, ldd int, src []int32, lds int, init []int32, scale []float32, m, n int) int {
	if n < lanes {
		return 0
	}
	lo, hi := q.bounds()
	requantizeLanes(m, n/lanes, &dst[0], ldd, &src[0], 4*lds, &init[0], &scale[0], lo, hi, q.Zero)
	return whole(n)
}

// quantize returns how many elements are done.
func (q *Quantized) quantize(dst []uint8, src []float32, scale float32, divide bool) int {
	n := whole(len(src))
	if n == 0 {
		return 0
	}
	lo, hi := q.bounds()
	if divide {
		quantizeDivLanes(n/lanes, &dst[0], &src[0], scale, lo, hi, q.Zero)
	} else {
		quantizeMulLanes(n/lanes, &dst[0], &src[0], scale, lo, hi, q.Zero)
	}
	return n
}

// dequantize returns how many elements are done.
func (q *Quantized) dequantize(dst []float32, src []uint8, scale float32) int {
	n := whole(len(dst))
	switch {
	case n == 0:
	case q.Signed:
		dequantizeInt8(n/lanes, &dst[0], &src[0], q.Zero, scale)
	default:
		dequantizeUint8(n/lanes, &dst[0], &src[0], q.Zero, scale)
	}
	return n
}
