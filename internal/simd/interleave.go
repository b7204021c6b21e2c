package simd

import "unsafe"

// Interleave puts up to four rows together, one element of each after the other:
//
//	dst[rows*i+j] = src[j*stride+i]    i < n, j < rows
//
// It returns how many elements of each row it has copied, 0 if there is no vector loop: there is one for two to four rows of
// elements of one and two bytes on NEON. It panics where dst or src is too short.
func Interleave[T any](dst, src []T, n, rows, stride int) (done int) {
	size := int(unsafe.Sizeof(dst[0]))
	if !neon || rows < 2 || rows > 4 || size > 2 || n*size < zipBlock {
		return 0
	}
	_, _ = dst[n*rows-1], src[(rows-1)*stride+n-1]
	blocks := n * size / zipBlock
	to, from := (*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&src[0]))
	switch [2]int{rows, size} { // calls by name keep the slices on the stack
	case [2]int{2, 1}:
		zip2Bytes(blocks, to, from, stride)
	case [2]int{3, 1}:
		zip3Bytes(blocks, to, from, stride)
	case [2]int{4, 1}:
		zip4Bytes(blocks, to, from, stride)
	case [2]int{2, 2}:
		zip2Halves(blocks, to, from, 2*stride)
	case [2]int{3, 2}:
		zip3Halves(blocks, to, from, 2*stride)
	case [2]int{4, 2}:
		zip4Halves(blocks, to, from, 2*stride)
	}
	return blocks * zipBlock / size
}

// zipBlock is the bytes of a row that a loop reads at a time.
const zipBlock = 16
