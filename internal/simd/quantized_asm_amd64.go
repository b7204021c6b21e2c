//go:build !purego

package simd

import "golang.org/x/sys/cpu"

// quantizedLoops reports that quantized elements have vector loops.
func quantizedLoops() bool { return vector }

// tailMask has the lanes of the last block of n columns.
func tailMask(n int) *int32 { return &masks[7-(n-1)%8] }

// requantize returns how many columns are done.
func (q *Quantized) requantize(dst []uint8, ldd int, src []int32, lds int, init []int32, scale []float32, m, n int) int {
	lo, hi := q.bounds()
	if avx512 {
		requantize512(m, n, &dst[0], ldd, &src[0], 4*lds, &init[0], &scale[0], lo, hi, q.Zero)
		return n
	}
	if !vector || n < 8 {
		return 0
	}
	f := requantizeUint8
	if q.Signed {
		f = requantizeInt8
	}
	f(m, n/8, &dst[0], ldd, &src[0], 4*lds, &init[0], &scale[0], lo, hi, q.Zero)
	return n &^ 7
}

// quantize returns how many elements are done.
func (q *Quantized) quantize(dst []uint8, src []float32, scale float32, divide bool) int {
	n := whole(len(src))
	if n == 0 {
		return 0
	}
	lo, hi := q.bounds()
	switch { // calls by name keep src on the stack
	case divide && q.Signed:
		quantizeDivInt8(n/lanes, &dst[0], &src[0], scale, lo, hi, q.Zero)
	case divide:
		quantizeDivUint8(n/lanes, &dst[0], &src[0], scale, lo, hi, q.Zero)
	case q.Signed:
		quantizeMulInt8(n/lanes, &dst[0], &src[0], scale, lo, hi, q.Zero)
	default:
		quantizeMulUint8(n/lanes, &dst[0], &src[0], scale, lo, hi, q.Zero)
	}
	return n
}

func boolIndex(b bool) int {
	if b {
		return 1
	}
	return 0
}

// dequantize returns how many elements are done.
func (q *Quantized) dequantize(dst []float32, src []uint8, scale float32) int {
	n := whole(len(dst))
	if n == 0 {
		return 0
	}
	if q.Signed {
		dequantizeInt8(n/lanes, &dst[0], &src[0], q.Zero, scale)
	} else {
		dequantizeUint8(n/lanes, &dst[0], &src[0], q.Zero, scale)
	}
	return n
}

var binaryLoops = [...][2]func(n int, dst, a, b *uint8, q *binaryParams){
	BinaryAdd: {addUint8, addInt8}, BinarySub: {subUint8, subInt8}, BinaryMul: {mulUint8, mulInt8},
}

// apply returns how many elements are done.
func (f *Binary) apply(op BinaryOp, dst, a, b []uint8) int {
	n := whole(len(dst))
	if n == 0 {
		return 0
	}
	lo, hi := f.Out.bounds()
	f.words = binaryParams{f.A.Zero, f.A.Scale, f.B.Zero, f.B.Scale, f.Min, f.Max, f.Scale, lo, hi, f.Out.Zero}
	binaryLoops[op][boolIndex(f.Out.Signed)](n/lanes, &dst[0], &a[0], &b[0], &f.words)
	return n
}

// maximumRow reports whether it did the row.
func maximumRow(signed bool, dst []uint8, ldd int, a []uint8, step int, off []int, pixels, channels int) bool {
	if !vector {
		return false
	}
	c := 0
	for ; c+DotCols <= channels; c += DotCols {
		maximumLane(signed, &dst[c], ldd, &a[c], step, off, pixels)
	}
	for i := 0; c < channels && i < pixels; i += DotCols {
		var part [DotCols * DotCols]uint8 // a pixel's last channels each
		n := min(pixels-i, DotCols)
		maximumLane(signed, &part[0], DotCols, &a[i*step+c], step, off, n)
		for k := range n {
			copy(dst[(i+k)*ldd+c:][:channels-c], part[k*DotCols:])
		}
	}
	return true
}

func maximumLane(signed bool, dst *uint8, ldd int, a *uint8, step int, off []int, pixels int) {
	if signed {
		maximumInt8(pixels, a, step, &off[0], len(off), dst, ldd)
	} else {
		maximumUint8(pixels, a, step, &off[0], len(off), dst, ldd)
	}
}

// hasVBMI reports permutations of bytes.
var hasVBMI = cpu.X86.HasAVX512VBMI

// lookup returns how many elements are done.
func lookup(dst, src []uint8, table *[256]uint8) int {
	n := len(dst) / 64
	if !avx512 || !hasVBMI || n == 0 {
		return 0
	}
	lookup512(n, &dst[0], &src[0], &table[0])
	return 64 * n
}
