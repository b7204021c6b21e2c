package strided

// DenseStrides writes the strides of a contiguous array of the given sizes to dst and returns them: the start of dst.
func DenseStrides(dst, sizes []int) []int {
	stride := 1
	for d := len(sizes) - 1; d >= 0; d-- {
		dst[d] = stride
		stride *= max(sizes[d], 1)
	}
	return dst[:len(sizes)]
}

// Broadcast combines dst with the sizes of one more tensor, aligned at the last dimension, by NumPy's rules. dst has the
// capacity [tensor.MaxRank]. ok is false if they do not fit.
func Broadcast(dst, sizes []int) (combined []int, ok bool) {
	if missing := len(sizes) - len(dst); missing > 0 {
		dst = dst[:len(sizes)]
		copy(dst[missing:], dst)
		copy(dst, sizes[:missing])
	}
	skip := len(dst) - len(sizes)
	for i, n := range sizes {
		switch d := &dst[skip+i]; {
		case *d == 1:
			*d = n
		case n != 1 && n != *d:
			return nil, false
		}
	}
	return dst, true
}

// BroadcastsTo reports whether sizes broadcast to the sizes to.
func BroadcastsTo(sizes, to []int) bool {
	skip := len(to) - len(sizes)
	if skip < 0 {
		return false
	}
	for i, n := range sizes {
		if n != 1 && n != to[skip+i] {
			return false
		}
	}
	return true
}

// BySize returns what copies elements of size bytes: 1, 2, 4, 8 or 16.
func BySize[F any](size int, of1, of2, of4, of8, of16 F) F {
	switch size {
	case 1:
		return of1
	case 2:
		return of2
	case 4:
		return of4
	case 8:
		return of8
	}
	return of16
}
