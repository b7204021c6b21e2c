package cpu

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// UseLargePages asks for pages of megabytes where b has not been touched yet, if the
// system has them: a fault for each small one takes longer than to fill it.
func UseLargePages(b []byte) { advise(b, unix.MADV_HUGEPAGE) }

// UseSmallPages asks for the opposite: memory of which much may never be touched is then
// taken page by page.
func UseSmallPages(b []byte) { advise(b, unix.MADV_NOHUGEPAGE) }

// Discard gives back the memory of the whole pages within b, which reads as zeros
// afterwards, or as the file's bytes where b is a view of a file.
func Discard(b []byte) { advise(b, unix.MADV_DONTNEED) }

// advise is about the whole pages within b. Advice may fail: the memory then stays as it is.
func advise(b []byte, advice int) {
	if p := wholePages(b); len(p) > 0 {
		_ = unix.Madvise(p, advice)
	}
}

var pageSize = uintptr(os.Getpagesize())

// wholePages is the part of b that starts and ends at pages.
func wholePages(b []byte) []byte {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := -start & (pageSize - 1)
	if uintptr(len(b)) < skip+pageSize {
		return nil
	}
	return b[skip : (start+uintptr(len(b)))&^(pageSize-1)-start]
}
