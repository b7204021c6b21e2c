package simd

// The functions below convert as many elements from the start as make whole vectors,
// and return their number: 0 without vectors. The caller converts the rest.

// HalfToFloat widens float16 bits, exactly.
func HalfToFloat(dst []float32, src []uint16) int { return halfToFloat(dst, src[:len(dst)]) }

// FloatToHalf rounds to float16 bits, to nearest even; a NaN stays one.
func FloatToHalf(dst []uint16, src []float32) int { return floatToHalf(dst, src[:len(dst)]) }

// BFloatToFloat widens bfloat16 bits, exactly.
func BFloatToFloat(dst []float32, src []uint16) int { return bfloatToFloat(dst, src[:len(dst)]) }

// FloatToBFloat rounds to bfloat16 bits, to nearest even; a NaN becomes 0x7fc0.
func FloatToBFloat(dst []uint16, src []float32) int { return floatToBFloat(dst, src[:len(dst)]) }
