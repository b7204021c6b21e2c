package tensor

import "math"

// HalfToFloat converts the bits of a Float16 to float32, exactly. The multiplication adjusts the
// exponent and normalizes subnormal numbers.
func HalfToFloat(h uint16) float32 {
	sign, rest := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	if rest >= 0x7c00<<13 { // infinite or NaN
		return math.Float32frombits(sign | 0x7f800000 | rest)
	}
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(rest)*0x1p112))
}

// FloatToHalf rounds to the nearest Float16, ties to even. Values of magnitude 65520 or more become
// infinite, NaN stays NaN.
func FloatToHalf(f float32) uint16 {
	b := math.Float32bits(f)
	sign, b := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00
	case b >= 0x47800000: // 65536
		return sign | 0x7c00
	case b < 0x38800000: // 2^-14: the addition cuts off at 2^-24, the step of subnormals
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	return sign | uint16((b-0x38000000+0xfff+b>>13&1)>>13) // may carry into the exponent, up to infinity
}

// BFloatToFloat converts the bits of a BFloat16 to float32, exactly.
func BFloatToFloat(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// FloatToBFloat rounds to the nearest BFloat16, ties to even; NaN becomes the quiet NaN
// (c10::detail::round_to_nearest_even).
func FloatToBFloat(f float32) uint16 {
	if f != f {
		return 0x7fc0
	}
	u := math.Float32bits(f)
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

func loadHalf[C Convertible](dst []C, src []byte) {
	s := View[uint16](src)[:len(dst)]
	for i := range dst {
		dst[i] = C(HalfToFloat(s[i]))
	}
}

// storeHalf converts through float32, as PyTorch does for every type.
func storeHalf[C Convertible](dst []byte, src []C) {
	d := View[uint16](dst)[:len(src)]
	for i := range d {
		d[i] = FloatToHalf(float32(src[i]))
	}
}

func loadHalfInt(dst []int64, src []byte) {
	s := View[uint16](src)[:len(dst)]
	for i := range dst {
		dst[i] = FloatToInt(HalfToFloat(s[i]))
	}
}

func loadBFloat[C Convertible](dst []C, src []byte) {
	s := View[uint16](src)[:len(dst)]
	for i := range dst {
		dst[i] = C(BFloatToFloat(s[i]))
	}
}

// storeBFloat converts through float32, as PyTorch does for every type.
func storeBFloat[C Convertible](dst []byte, src []C) {
	d := View[uint16](dst)[:len(src)]
	for i := range d {
		d[i] = FloatToBFloat(float32(src[i]))
	}
}

func loadBFloatInt(dst []int64, src []byte) {
	s := View[uint16](src)[:len(dst)]
	for i := range dst {
		dst[i] = FloatToInt(BFloatToFloat(s[i]))
	}
}
