package tensor

import (
	"unsafe"

	"github.com/etrun-go/etrun/hal/cpu"
)

// Alignment is where every allocation starts: a cache line and the widest vector.
const Alignment = 64

// Padding follows every allocation, readable but never written: XNNPACK may read
// up to 16 bytes past an operand (XNN_EXTRA_BYTES).
const Padding = 64

// Element is a Go type that some DType stores. Half floats are seen as uint16.
type Element interface {
	~uint8 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~bool | ~complex64 | ~complex128
}

// View sees b as elements of T. b must be aligned to T; the rest of an incomplete
// last element is left out. The view shares b's bytes.
func View[T Element](b []byte) []T {
	var z T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(z)))
}

// BytesOf sees elements as their bytes; it shares them.
func BytesOf[T Element](s []T) []byte {
	var z T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(z)))
}

// Data is a tensor's elements, or nil where T does not store its DType. Valid as
// long as the tensor's bytes are; elements come in memory order.
func Data[T Element](t *Tensor) []T {
	if !Stores[T](t.DType) {
		return nil
	}
	return View[T](t.Data)
}

// TypeOf is the DType that T stores by itself; uint16 is Uint16, never a half.
func TypeOf[T Element]() DType {
	var z T
	switch any(z).(type) {
	case uint8:
		return Uint8
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case float32:
		return Float32
	case float64:
		return Float64
	case bool:
		return Bool
	case complex64:
		return Complex64
	}
	return Complex128
}

// Stores reports whether T is the Go type of d's elements; uint16 is that of halves, too.
func Stores[T Element](d DType) bool {
	own := TypeOf[T]()
	return own == d || own == Uint16 && (d == Float16 || d == BFloat16 || d == Bits16)
}

// Aligned reports whether b starts at a multiple of n, a power of two.
func Aligned(b []byte, n int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))&uintptr(n-1) == 0
}

// AlignedBytes allocates n zeroed bytes that start at a multiple of Alignment and
// are followed by Padding bytes of the same allocation, outside len and cap.
func AlignedBytes(n int) []byte {
	b := make([]byte, n+Alignment+Padding)
	if n >= largeBytes {
		cpu.UseLargePages(b)
	}
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (Alignment - 1))
	return b[skip : skip+n : skip+n]
}

// largeBytes is the size from which bytes lie on large pages, as far as they fill them:
// at least one is filled.
const largeBytes = 4 << 20
