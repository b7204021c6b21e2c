package simd

// The functions below answer 1 where a[i] compares so with b[i], and 0 elsewhere, as
// for NaN, which differs from everything. Operands are at least as long as dst.

// Equal, NotEqual, Less and LessEqual compare numbers.

func Equal(dst []uint8, a, b []float32) {
	n := compare(equalLanes, dst, a, b)
	equalGo(dst[n:], a[n:], b[n:])
}

func NotEqual(dst []uint8, a, b []float32) {
	n := compare(notEqualLanes, dst, a, b)
	notEqualGo(dst[n:], a[n:], b[n:])
}

func Less(dst []uint8, a, b []float32) {
	n := compare(lessLanes, dst, a, b)
	lessGo(dst[n:], a[n:], b[n:])
}

func LessEqual(dst []uint8, a, b []float32) {
	n := compare(lessEqualLanes, dst, a, b)
	lessEqualGo(dst[n:], a[n:], b[n:])
}

// EqualInt32, NotEqualInt32, LessInt32 and LessEqualInt32 compare integers.

func EqualInt32(dst []uint8, a, b []int32) {
	n := compare(equalInt32Lanes, dst, a, b)
	equalGo(dst[n:], a[n:], b[n:])
}

func NotEqualInt32(dst []uint8, a, b []int32) {
	n := compare(notEqualInt32Lanes, dst, a, b)
	notEqualGo(dst[n:], a[n:], b[n:])
}

func LessInt32(dst []uint8, a, b []int32) {
	n := compare(lessInt32Lanes, dst, a, b)
	lessGo(dst[n:], a[n:], b[n:])
}

func LessEqualInt32(dst []uint8, a, b []int32) {
	n := compare(lessEqualInt32Lanes, dst, a, b)
	lessEqualGo(dst[n:], a[n:], b[n:])
}

// AndInt32, OrInt32 and XorInt32 compare as truth values: all but 0 are true.

func AndInt32(dst []uint8, a, b []int32) {
	n := compare(andInt32Lanes, dst, a, b)
	andGo(dst[n:], a[n:], b[n:])
}

func OrInt32(dst []uint8, a, b []int32) {
	n := compare(orInt32Lanes, dst, a, b)
	orGo(dst[n:], a[n:], b[n:])
}

func XorInt32(dst []uint8, a, b []int32) {
	n := compare(xorInt32Lanes, dst, a, b)
	xorGo(dst[n:], a[n:], b[n:])
}

// NorInt32 is 1 where both numbers are 0.
func NorInt32(dst []uint8, a, b []int32) {
	n := compare(norInt32Lanes, dst, a, b)
	norGo(dst[n:], a[n:], b[n:])
}

// Select is a[i] where mask[i] is not 0, and b[i] elsewhere. dst may be an operand.
func Select(dst []uint32, mask []uint8, a, b []uint32) {
	n := whole(len(dst))
	if n > 0 {
		mask, a, b := mask[:n], a[:n], b[:n]
		selectLanes(n/lanes, &dst[0], &mask[0], &a[0], &b[0])
	}
	selectGo(dst[n:], mask[n:], a[n:], b[n:])
}

// compare is [pairwise] with answers.
func compare[C float32 | int32](f func(n int, dst *uint8, a, b *C), dst []uint8, a, b []C) int {
	n := whole(len(dst))
	if n > 0 {
		a, b = a[:n], b[:n]
		f(n/lanes, &dst[0], &a[0], &b[0])
	}
	return n
}
