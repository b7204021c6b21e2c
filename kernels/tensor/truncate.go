package tensor

import "math"

// FloatToInt truncates toward zero. If the result does not fit, or f is NaN, it returns MinInt64.
//
// C and Go do not define those cases, and Go's results differ between architectures. FloatToInt and
// [StoreFunc] behave on every architecture as PyTorch does on x86-64: Uint8, Uint32 and Int64 are
// converted to 64 bits, other integers to 32 (out of range: the minimum of that width), and the low
// bits are stored.
func FloatToInt[F float32 | float64](f F) int64 {
	if f >= math.MinInt64 && f < -math.MinInt64 {
		return int64(f)
	}
	return math.MinInt64
}

func floatToInt32[F float32 | float64](f F) int32 {
	if f > math.MinInt32-1 && f < -math.MinInt32 {
		return int32(f)
	}
	return math.MinInt32
}

func floatToUint64[F float32 | float64](f F) uint64 {
	if f < -math.MinInt64 {
		return uint64(FloatToInt(f))
	}
	return uint64(FloatToInt(f+math.MinInt64)) ^ 1<<63
}

func loadTrunc[F float32 | float64](dst []int64, src []byte) {
	s := View[F](src)[:len(dst)]
	for i := range dst {
		dst[i] = FloatToInt(s[i])
	}
}

func storeTrunc32[D int8 | int16 | int32 | uint16, F float32 | float64](dst []byte, src []F) {
	d := View[D](dst)[:len(src)]
	for i := range d {
		d[i] = D(floatToInt32(src[i]))
	}
}

func storeTrunc64[D uint8 | uint32 | int64, F float32 | float64](dst []byte, src []F) {
	d := View[D](dst)[:len(src)]
	for i := range d {
		d[i] = D(FloatToInt(src[i]))
	}
}

func storeUint64[F float32 | float64](dst []byte, src []F) {
	d := View[uint64](dst)[:len(src)]
	for i := range d {
		d[i] = floatToUint64(src[i])
	}
}
