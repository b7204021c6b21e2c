package cpu

import "unsafe"

// Overlap reports whether a and b share memory.
func Overlap(a, b []byte) bool {
	from, to := span(a)
	start, end := span(b)
	return from < end && start < to && from < to && start < end
}

// Contains reports whether b is a part of a.
func Contains(a, b []byte) bool {
	from, to := span(a)
	start, end := span(b)
	return from <= start && end <= to
}

func span(b []byte) (from, to uintptr) {
	from = uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return from, from + uintptr(len(b))
}
