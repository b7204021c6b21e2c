package simd

// The functions below compute integers element by element: dst[i] = f(a[i], …). dst may be
// one of the operands, which are at least as long as it.

// AddInt32 is a[i] + b[i], wrapping.
func AddInt32(dst, a, b []int32) {
	n := pairwise(addInt32Lanes, dst, a, b)
	addGo(dst[n:], a[n:], b[n:])
}

// SubInt32 is a[i] - b[i], wrapping.
func SubInt32(dst, a, b []int32) {
	n := pairwise(subInt32Lanes, dst, a, b)
	subGo(dst[n:], a[n:], b[n:])
}

// MulInt32 is a[i] · b[i], wrapping.
func MulInt32(dst, a, b []int32) {
	n := pairwise(mulInt32Lanes, dst, a, b)
	mulGo(dst[n:], a[n:], b[n:])
}

// MaxInt32 is the larger of a[i] and b[i].
func MaxInt32(dst, a, b []int32) {
	n := pairwise(maxInt32Lanes, dst, a, b)
	maximumGo(dst[n:], a[n:], b[n:])
}

// MinInt32 is the smaller of a[i] and b[i].
func MinInt32(dst, a, b []int32) {
	n := pairwise(minInt32Lanes, dst, a, b)
	minimumGo(dst[n:], a[n:], b[n:])
}

// BitAndInt32 is a[i] & b[i].
func BitAndInt32(dst, a, b []int32) {
	n := pairwise(bitAndInt32Lanes, dst, a, b)
	bitAndGo(dst[n:], a[n:], b[n:])
}

// BitOrInt32 is a[i] | b[i].
func BitOrInt32(dst, a, b []int32) {
	n := pairwise(bitOrInt32Lanes, dst, a, b)
	bitOrGo(dst[n:], a[n:], b[n:])
}

// BitXorInt32 is a[i] ^ b[i].
func BitXorInt32(dst, a, b []int32) {
	n := pairwise(bitXorInt32Lanes, dst, a, b)
	bitXorGo(dst[n:], a[n:], b[n:])
}

// ClampInt32 is src[i] within low and high; high where low is above it.
func ClampInt32(dst, src []int32, low, high int32) {
	src = src[:len(dst)]
	n := whole(len(dst))
	if n > 0 {
		clampInt32Lanes(n/lanes, &dst[0], &src[0], low, high)
	}
	clampGo(dst[n:], src[n:], low, high)
}

// AbsInt32 is the distance from 0; the least integer stays.
func AbsInt32(dst, src []int32) {
	n := each(absInt32Lanes, dst, src)
	absIntGo(dst[n:], src[n:])
}

// NegInt32 is -src[i]; the least integer stays.
func NegInt32(dst, src []int32) {
	n := each(negInt32Lanes, dst, src)
	negGo(dst[n:], src[n:])
}
