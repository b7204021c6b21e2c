package tensor

func truth8(dst, src []byte) { copy(dst, src[:len(dst)]) }

// truth tests the bits of mask: all but the signs of floats.
func truth[T uint16 | uint32 | uint64](mask T) func(dst, src []byte) {
	return func(dst, src []byte) {
		s := View[T](src)[:len(dst)]
		for i := range dst {
			b := byte(0)
			if s[i]&mask != 0 {
				b = 1
			}
			dst[i] = b
		}
	}
}
