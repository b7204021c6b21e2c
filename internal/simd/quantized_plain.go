//go:build purego || !amd64

package simd

// quantizedLoops reports that quantized elements have vector loops.
func quantizedLoops() bool { return false }

func tailMask(int) *int32 { return nil }

func scaleSumsRows(m, n int, dst *float32, ldd int, src *int32, lds int, sums *int32, scale, bias *float32,
	zeros *int32, factors *float32, lo, hi float32, mask *int32) {
}

func scaleFloatsRows(m, n int, dst *float32, ldd int, src *float32, lds int, scale, bias, factors *float32, lo, hi float32, mask *int32) {
}

func (f *Binary) apply(op BinaryOp, dst, a, b []uint8) int { return 0 }

func maximumRow(signed bool, dst []uint8, ldd int, a []uint8, step int, off []int, pixels, channels int) bool {
	return false
}

func lookup(dst, src []uint8, table *[256]uint8) int { return 0 }
