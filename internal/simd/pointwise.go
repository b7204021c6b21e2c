package simd

// The functions below compute element by element: dst[i] = f(a[i], …). dst may be one
// of the operands, which are at least as long as it. A NaN operand gives NaN.

// Add is a[i] + b[i].
func Add(dst, a, b []float32) {
	n := pairwise(addLanes, dst, a, b)
	addGo(dst[n:], a[n:], b[n:])
}

// AddScaled is a[i] + alpha·b[i], rounded twice.
func AddScaled(dst, a, b []float32, alpha float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	n := whole(len(dst))
	if n > 0 {
		addScaledLanes(n/lanes, &dst[0], &a[0], &b[0], alpha)
	}
	addScaledGo(dst[n:], a[n:], b[n:], alpha)
}

// Sub is a[i] - b[i].
func Sub(dst, a, b []float32) {
	n := pairwise(subLanes, dst, a, b)
	subGo(dst[n:], a[n:], b[n:])
}

// Mul is a[i] · b[i].
func Mul(dst, a, b []float32) {
	n := pairwise(mulLanes, dst, a, b)
	mulGo(dst[n:], a[n:], b[n:])
}

// Div is a[i] / b[i].
func Div(dst, a, b []float32) {
	n := pairwise(divLanes, dst, a, b)
	divGo(dst[n:], a[n:], b[n:])
}

// Maximum is the larger of a[i] and b[i].
func Maximum(dst, a, b []float32) {
	n := pairwise(maximumLanes, dst, a, b)
	maximumGo(dst[n:], a[n:], b[n:])
}

// Minimum is the smaller of a[i] and b[i].
func Minimum(dst, a, b []float32) {
	n := pairwise(minimumLanes, dst, a, b)
	minimumGo(dst[n:], a[n:], b[n:])
}

// Clamp is src[i] within low and high, which are no NaN; high where low is above it.
func Clamp(dst, src []float32, low, high float32) {
	src = src[:len(dst)]
	n := whole(len(dst))
	if n > 0 {
		clampLanes(n/lanes, &dst[0], &src[0], low, high)
	}
	clampGo(dst[n:], src[n:], low, high)
}

// LeakyReLU is src[i], times slope where it is negative.
func LeakyReLU(dst, src []float32, slope float32) {
	src = src[:len(dst)]
	n := whole(len(dst))
	if n > 0 {
		leakyReLULanes(n/lanes, &dst[0], &src[0], slope)
	}
	leakyReLUGo(dst[n:], src[n:], slope)
}

// Abs clears the sign.
func Abs(dst, src []float32) {
	n := each(absLanes, dst, src)
	absGo(dst[n:], src[n:])
}

// Neg changes the sign.
func Neg(dst, src []float32) {
	n := each(negLanes, dst, src)
	negGo(dst[n:], src[n:])
}

// Sign is 1 for positive numbers, -1 for negative ones, and 0 for the rest, NaN too.
func Sign(dst, src []float32) {
	n := each(signLanes, dst, src)
	signGo(dst[n:], src[n:])
}

// Floor rounds down.
func Floor(dst, src []float32) {
	n := each(floorLanes, dst, src)
	floorGo(dst[n:], src[n:])
}

// Ceil rounds up.
func Ceil(dst, src []float32) {
	n := each(ceilLanes, dst, src)
	ceilGo(dst[n:], src[n:])
}

// Trunc rounds toward zero.
func Trunc(dst, src []float32) {
	n := each(truncLanes, dst, src)
	truncGo(dst[n:], src[n:])
}

// Round rounds to the nearest integer, and halves to the even one.
func Round(dst, src []float32) {
	n := each(roundLanes, dst, src)
	roundGo(dst[n:], src[n:])
}

// Reciprocal is 1 / src[i].
func Reciprocal(dst, src []float32) {
	n := each(reciprocalLanes, dst, src)
	reciprocalGo(dst[n:], src[n:])
}

// Sqrt is the square root.
func Sqrt(dst, src []float32) {
	n := each(sqrtLanes, dst, src)
	sqrtGo(dst[n:], src[n:])
}

// Rsqrt is 1 / √src[i], rounded twice.
func Rsqrt(dst, src []float32) {
	n := each(rsqrtLanes, dst, src)
	rsqrtGo(dst[n:], src[n:])
}

// pairwise and each compute the whole blocks, and return the number of elements in
// them. They are small enough to become a part of their callers, and so call f
// directly.

func pairwise[C float32 | int32](f func(n int, dst, a, b *C), dst, a, b []C) int {
	n := whole(len(dst))
	if n > 0 {
		a, b = a[:n], b[:n]
		f(n/lanes, &dst[0], &a[0], &b[0])
	}
	return n
}

func each[C float32 | int32](f func(n int, dst, src *C), dst, src []C) int {
	n := whole(len(dst))
	if n > 0 {
		src = src[:n]
		f(n/lanes, &dst[0], &src[0])
	}
	return n
}
