package tensor

import (
	"unsafe"

	"github.com/etrun-go/etrun/hal/cpu"
)

// Alignment of every allocation: a cache line and the widest vector.
const Alignment = 64

// Padding is the number of bytes after every allocation that may be read but not written: XNNPACK
// may read up to 16 bytes past an operand (XNN_EXTRA_BYTES).
const Padding = 64

// Element is a Go type that some DType stores. Half floats are stored as uint16.
type Element interface {
	~uint8 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~bool | ~complex64 | ~complex128
}

// View returns b as a slice of T that shares its memory. b must be aligned to T; an incomplete last
// element is omitted.
func View[T Element](b []byte) []T {
	var z T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(z)))
}

// BytesOf returns the bytes of s, sharing its memory.
func BytesOf[T Element](s []T) []byte {
	var z T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(z)))
}

// Aligned reports whether the address of b is a multiple of n, a power of two.
func Aligned(b []byte, n int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))&uintptr(n-1) == 0
}

// AlignedBytes allocates n zeroed bytes, aligned to Alignment and followed by Padding further bytes
// beyond the capacity of the slice.
func AlignedBytes(n int) []byte {
	b := make([]byte, n+Alignment+Padding)
	if n >= largeBytes {
		cpu.UseLargePages(b)
	}
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (Alignment - 1))
	return b[skip : skip+n : skip+n]
}

// largeBytes is the size from which allocations use huge pages: at least one page is filled.
const largeBytes = 4 << 20
