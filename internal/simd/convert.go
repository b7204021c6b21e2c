package simd

// The functions below convert as many elements from the start as make whole vectors,
// and return their number: 0 without vectors. The caller converts the rest. Bytes are
// those of the narrow type, as many as the other slice has elements.

// Int8ToInt32, Uint8ToInt32, Int16ToInt32 and Uint16ToInt32 widen integers.
func Int8ToInt32(dst []int32, src []byte) int   { return widen(int8ToInt32Lanes, 1, dst, src) }
func Uint8ToInt32(dst []int32, src []byte) int  { return widen(uint8ToInt32Lanes, 1, dst, src) }
func Int16ToInt32(dst []int32, src []byte) int  { return widen(int16ToInt32Lanes, 2, dst, src) }
func Uint16ToInt32(dst []int32, src []byte) int { return widen(uint16ToInt32Lanes, 2, dst, src) }

// BoolToInt32 is 0 for a byte of 0 and 1 for any other.
func BoolToInt32(dst []int32, src []byte) int { return widen(boolToInt32Lanes, 1, dst, src) }

// Int32To8 and Int32To16 keep the low bits.
func Int32To8(dst []byte, src []int32) int  { return narrow(int32To8Lanes, 1, dst, src) }
func Int32To16(dst []byte, src []int32) int { return narrow(int32To16Lanes, 2, dst, src) }

// Int32ToBool is 1 for every number but 0.
func Int32ToBool(dst []byte, src []int32) int { return narrow(int32ToBoolLanes, 1, dst, src) }

// Int8ToFloat, Uint8ToFloat, Int16ToFloat, Uint16ToFloat and Int32ToFloat convert
// integers, rounded to nearest even.
func Int8ToFloat(dst []float32, src []byte) int   { return widen(int8ToFloatLanes, 1, dst, src) }
func Uint8ToFloat(dst []float32, src []byte) int  { return widen(uint8ToFloatLanes, 1, dst, src) }
func Int16ToFloat(dst []float32, src []byte) int  { return widen(int16ToFloatLanes, 2, dst, src) }
func Uint16ToFloat(dst []float32, src []byte) int { return widen(uint16ToFloatLanes, 2, dst, src) }
func Int32ToFloat(dst []float32, src []byte) int  { return widen(int32ToFloatLanes, 4, dst, src) }

// BoolToFloat is 0 for a byte of 0 and 1 for any other.
func BoolToFloat(dst []float32, src []byte) int { return widen(boolToFloatLanes, 1, dst, src) }

// FloatToInt32 truncates toward zero; where the result does not fit, and for NaN, it
// is the least integer. FloatTo8 and FloatTo16 keep its low bits.
func FloatToInt32(dst []byte, src []float32) int { return narrow(floatToInt32Lanes, 4, dst, src) }
func FloatTo8(dst []byte, src []float32) int     { return narrow(floatTo8Lanes, 1, dst, src) }
func FloatTo16(dst []byte, src []float32) int    { return narrow(floatTo16Lanes, 2, dst, src) }

// FloatToBool is 1 for everything but zeros.
func FloatToBool(dst []byte, src []float32) int { return narrow(floatToBoolLanes, 1, dst, src) }

// HalfToFloat widens float16 bits, exactly.
func HalfToFloat(dst []float32, src []byte) int { return widen(halfToFloatLanes, 2, dst, src) }

// FloatToHalf rounds to float16 bits, to nearest even; a NaN stays one.
func FloatToHalf(dst []byte, src []float32) int { return narrow(floatToHalfLanes, 2, dst, src) }

// BFloatToFloat widens bfloat16 bits, exactly.
func BFloatToFloat(dst []float32, src []byte) int { return widen(bfloatToFloatLanes, 2, dst, src) }

// FloatToBFloat rounds to bfloat16 bits, to nearest even; a NaN becomes 0x7fc0.
func FloatToBFloat(dst []byte, src []float32) int { return narrow(floatToBFloatLanes, 2, dst, src) }

// widen and narrow are small enough to become a part of the functions above, and so
// call f directly.

func widen[C int32 | float32](f func(n int, dst *C, src *byte), size int, dst []C, src []byte) int {
	n := whole(len(dst))
	if n > 0 {
		src = src[:n*size]
		f(n/lanes, &dst[0], &src[0])
	}
	return n
}

func narrow[C int32 | float32](f func(n int, dst *byte, src *C), size int, dst []byte, src []C) int {
	n := whole(len(src))
	if n > 0 {
		dst = dst[:n*size]
		f(n/lanes, &dst[0], &src[0])
	}
	return n
}
