package graph

import (
	"math"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/x448/float16"
)

// DecodeFloats converts the elements of a float datatype to dst.
func DecodeFloats(dst []float32, d Datatype, b []byte) {
	switch d {
	case FP16:
		done := simd.HalfToFloat(dst, b)
		for i, h := range tensor.View[uint16](b)[done:len(dst)] {
			dst[done+i] = float16.Frombits(h).Float32()
		}
	case BF16:
		done := simd.BFloatToFloat(dst, b)
		for i, h := range tensor.View[uint16](b)[done:len(dst)] {
			dst[done+i] = math.Float32frombits(uint32(h) << 16)
		}
	case FP32:
		copy(dst, tensor.View[float32](b))
	}
}

// EncodeFP16 rounds to half precision.
func EncodeFP16(dst []uint16, src []float32) {
	done := simd.FloatToHalf(tensor.BytesOf(dst), src)
	for i, f := range src[done:] {
		dst[done+i] = float16.Fromfloat32(f).Bits()
	}
}

// EncodeBF16 rounds to bfloat16.
func EncodeBF16(dst []uint16, src []float32) {
	done := simd.FloatToBFloat(tensor.BytesOf(dst), src)
	for i, f := range src[done:] {
		dst[done+i] = ToBF16(f)
	}
}

// ToBF16 rounds a number to bfloat16, half to even.
func ToBF16(f float32) uint16 {
	u := math.Float32bits(f)
	if f != f {
		return 0x7fc0
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// Quantize rounds x half to even, adds the zero point and clamps to [lo, hi], which are byte
// bounds. It returns lo for NaN.
func Quantize(x float32, zero, lo, hi int32) int32 {
	if !(x > float32(lo-zero)) {
		return lo
	}
	if x >= float32(hi-zero) {
		return hi
	}
	const rounder = 3 << 22 // adding it leaves no fraction bits
	return int32(float32(x+rounder)-rounder) + zero
}

// modest is a bound of sums of squares. Beyond it the library computes roots wrongly, and sigmoids of numbers beyond its root
// times 2^26.
const modest = 0x1p126

// IsModest reports whether the elements of a float datatype are finite, and the sum of the squares of float32 is below
// 2^126: products of two elements, sums of such products, and sums of elements are far from the largest number.
func IsModest(d Datatype, data []byte) bool {
	if d != FP32 {
		return IsFinite(d, data)
	}
	x := tensor.View[float32](data)
	return simd.Dot(x, x) < modest
}

// IsFinite reports whether no element of a float datatype is infinite or NaN.
func IsFinite(d Datatype, data []byte) bool {
	switch d {
	case FP32:
		s := simd.Sum(tensor.View[float32](data))
		return s-s == 0
	case FP16:
		const exponent = 0x7c00
		for _, h := range tensor.View[uint16](data) {
			if h&exponent == exponent {
				return false
			}
		}
	}
	return true
}
