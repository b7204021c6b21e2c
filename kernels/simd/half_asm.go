//go:build !purego && (amd64 || arm64)

package simd

// The functions below take n blocks of lanes elements; n > 0. Every processor with
// AVX2 has F16C, which came before it.

//go:noescape
func halfToFloatLanes(n int, dst *float32, src *uint16)

//go:noescape
func floatToHalfLanes(n int, dst *uint16, src *float32)

//go:noescape
func bfloatToFloatLanes(n int, dst *float32, src *uint16)

//go:noescape
func floatToBFloatLanes(n int, dst *uint16, src *float32)

func halfToFloat(dst []float32, src []uint16) int {
	n := whole(len(dst))
	if n > 0 {
		halfToFloatLanes(n/lanes, &dst[0], &src[0])
	}
	return n
}

func floatToHalf(dst []uint16, src []float32) int {
	n := whole(len(dst))
	if n > 0 {
		floatToHalfLanes(n/lanes, &dst[0], &src[0])
	}
	return n
}

func bfloatToFloat(dst []float32, src []uint16) int {
	n := whole(len(dst))
	if n > 0 {
		bfloatToFloatLanes(n/lanes, &dst[0], &src[0])
	}
	return n
}

func floatToBFloat(dst []uint16, src []float32) int {
	n := whole(len(dst))
	if n > 0 {
		floatToBFloatLanes(n/lanes, &dst[0], &src[0])
	}
	return n
}
