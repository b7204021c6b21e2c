package cpu

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// UseLargePages requests huge pages for the parts of b that have not been touched: page faults for
// small pages take longer than filling them.
func UseLargePages(b []byte) { advisePages(b, unix.MADV_HUGEPAGE) }

// UseSmallPages requests small pages, for memory much of which may never be touched.
func UseSmallPages(b []byte) { advisePages(b, unix.MADV_NOHUGEPAGE) }

// largePage is the size of the smallest huge page of the supported processors.
const largePage = 2 << 20

// advisePages advises on the size of pages. Memory that is smaller than a huge page has none anyway,
// and the kernel would have to split its areas.
func advisePages(b []byte, advice int) {
	if len(b) >= largePage {
		advise(b, advice)
	}
}

// Discard releases the memory of the whole pages within b. They then read as zeros or, if b is a
// mapping of a file, as the file's contents. Huge pages are no longer requested: the kernel would make them of any page that is touched, or
// left beside others, and fill the rest again.
func Discard(b []byte) {
	UseSmallPages(b)
	advise(b, unix.MADV_DONTNEED)
}

// Move gives the memory of the whole pages of from to those of to, which have as many; from then reads as zeros. Both are of mappings of
// MapMemory or MapSparse. It takes microseconds, page faults and their zeros milliseconds. If the kernel cannot, it changes nothing
// and returns false.
func Move(to, from []byte) bool {
	to, from = wholePages(to), wholePages(from)
	if len(to) == 0 || len(to) != len(from) {
		return false
	}
	_, err := unix.MremapPtr(unsafe.Pointer(&from[0]), uintptr(len(from)), unsafe.Pointer(&to[0]), uintptr(len(to)),
		unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED|unix.MREMAP_DONTUNMAP)
	return err == nil
}

// Zero clears b, which must not be a mapping of a file. The memory of its whole pages is released until it is touched again.
func Zero(b []byte) {
	p := wholePages(b)
	if len(p) == 0 || unix.Madvise(p, unix.MADV_DONTNEED) != nil {
		clear(b)
		return
	}
	skip := cap(b) - cap(p)
	clear(b[:skip])
	clear(b[skip+len(p):])
}

// Resident returns how many bytes of the whole pages within b are in memory.
func Resident(b []byte) (n int64) {
	var marks [4096]byte
	page := int(pageSize)
	for p := wholePages(b); len(p) > 0; {
		part := p[:min(len(p), len(marks)*page)]
		if _, _, fault := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&part[0])), uintptr(len(part)),
			uintptr(unsafe.Pointer(&marks[0]))); fault != 0 {
			return n + int64(len(p))
		}
		for _, m := range marks[:len(part)/page] {
			n += int64(m&1) * int64(page)
		}
		p = p[len(part):]
	}
	return n
}

// Populate allocates the whole pages within b, which the caller is about to write: one call takes a fraction of the time of
// a fault for each page. It is only a hint, which kernels before 5.14 ignore.
func Populate(b []byte) {
	if p := wholePages(b); len(p) >= populateBytes {
		_ = unix.Madvise(p, unix.MADV_POPULATE_WRITE)
	}
}

// Touch allocates the pages of b and writes to each of them, so that the first use of b, which must be zeros, takes no faults.
func Touch(b []byte) {
	Populate(b)
	for i := 0; i < len(b); i += int(pageSize) {
		b[i] = 0
	}
}

// populateBytes is the size from which a call is faster than faults.
const populateBytes = 16 << 10

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
