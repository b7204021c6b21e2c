//go:build !purego && (amd64 || arm64)

package simd

// The functions below move n tiles, one below the other in src and side by side in
// dst: of 8 × 8 elements of one or two bytes, lanes × lanes of four and 4 × 4 of eight.
// Strides are in bytes.

//go:noescape
func transposeLanes(n int, dst *uint32, ds int, src *uint32, ss int)

//go:noescape
func transposeBytes(n int, dst *uint8, ds int, src *uint8, ss int)

//go:noescape
func transposeHalves(n int, dst *uint16, ds int, src *uint16, ss int)

//go:noescape
func transposeQuads(n int, dst *uint64, ds int, src *uint64, ss int)

func transpose64(dst, src []uint64, rows, cols, ds, ss int) {
	if !vector {
		transposeGo(dst, src, rows, cols, ds, ss)
		return
	}
	for j := 0; j < cols; j += 4 {
		transposeQuads(rows/4, &dst[j*ds], 8*ds, &src[j], 8*ss)
	}
}

func transpose32(dst, src []uint32, rows, cols, ds, ss int) {
	if !vector {
		transposeGo(dst, src, rows, cols, ds, ss)
		return
	}
	for j := 0; j < cols; j += lanes {
		transposeLanes(rows/lanes, &dst[j*ds], 4*ds, &src[j], 4*ss)
	}
}

func transpose16(dst, src []uint16, rows, cols, ds, ss int) {
	if !vector {
		transposeGo(dst, src, rows, cols, ds, ss)
		return
	}
	for j := 0; j < cols; j += 8 {
		transposeHalves(rows/8, &dst[j*ds], 2*ds, &src[j], 2*ss)
	}
}

func transpose8(dst, src []uint8, rows, cols, ds, ss int) {
	if !vector {
		transposeGo(dst, src, rows, cols, ds, ss)
		return
	}
	for j := 0; j < cols; j += 8 {
		transposeBytes(rows/8, &dst[j*ds], ds, &src[j], ss)
	}
}
