package simd

func equalGo[C float32 | int32](dst []uint8, a, b []C) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = answer(a[i] == b[i])
	}
}

func notEqualGo[C float32 | int32](dst []uint8, a, b []C) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = answer(a[i] != b[i])
	}
}

func lessGo[C float32 | int32](dst []uint8, a, b []C) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = answer(a[i] < b[i])
	}
}

func lessEqualGo[C float32 | int32](dst []uint8, a, b []C) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = answer(a[i] <= b[i])
	}
}

func andGo(dst []uint8, a, b []int32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = answer(a[i] != 0) & answer(b[i] != 0)
	}
}

func orGo(dst []uint8, a, b []int32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = answer(a[i]|b[i] != 0)
	}
}

func norGo(dst []uint8, a, b []int32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = answer(a[i]|b[i] == 0)
	}
}

func xorGo(dst []uint8, a, b []int32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = answer(a[i] != 0) ^ answer(b[i] != 0)
	}
}

func answer(yes bool) (bit uint8) {
	if yes {
		bit = 1
	}
	return bit
}

// selectGo chooses among bits, without a branch for the processor to guess.
func selectGo(dst []uint32, mask []uint8, a, b []uint32) {
	mask, a, b = mask[:len(dst)], a[:len(dst)], b[:len(dst)]
	for i := range dst {
		v, w := b[i], a[i]
		if mask[i] != 0 {
			v = w
		}
		dst[i] = v
	}
}
