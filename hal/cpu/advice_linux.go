package cpu

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// UseLargePages requests huge pages for the parts of b that have not been touched: page faults for
// small pages take longer than filling them.
func UseLargePages(b []byte) { advise(b, unix.MADV_HUGEPAGE) }

// UseSmallPages requests small pages, for memory much of which may never be touched.
func UseSmallPages(b []byte) { advise(b, unix.MADV_NOHUGEPAGE) }

// Discard releases the memory of the whole pages within b. They then read as zeros or, if b is a
// mapping of a file, as the file's contents.
func Discard(b []byte) { advise(b, unix.MADV_DONTNEED) }

// advise applies to the whole pages within b. It is only a hint: on failure the memory is
// unchanged.
func advise(b []byte, advice int) {
	if p := wholePages(b); len(p) > 0 {
		_ = unix.Madvise(p, advice)
	}
}

var pageSize = uintptr(os.Getpagesize())

// wholePages returns the part of b that starts and ends at page boundaries.
func wholePages(b []byte) []byte {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := -start & (pageSize - 1)
	if uintptr(len(b)) < skip+pageSize {
		return nil
	}
	return b[skip : (start+uintptr(len(b)))&^(pageSize-1)-start]
}
