//go:build cgo && !nodl && linux && (amd64 || arm64)

package xnn

/*
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// large is the size in bytes from which memory may hold a huge page.
static const size_t large = 2 << 20;

static struct heap {
	void *(*malloc)(size_t);
	void *(*realloc)(void *, size_t);
	void (*free)(void *);
	int (*posix_memalign)(void **, size_t, size_t);
} heap = {malloc, realloc, free, posix_memalign};

static void *heap_functions(void) { return &heap; }

static void *allocate(void *context, size_t size) { return heap.malloc(size); }
static void *reallocate(void *context, void *p, size_t size) { return heap.realloc(p, size); }
static void deallocate(void *context, void *p) { heap.free(p); }

// The library writes to all of what it allocates; page faults take longer than that.
static void *aligned_allocate(void *context, size_t alignment, size_t size) {
	void *p = NULL;
	if (heap.posix_memalign(&p, alignment, size) != 0) {
		return NULL;
	}
	if (size >= large) {
		uintptr_t page = sysconf(_SC_PAGESIZE), start = ((uintptr_t)p + page - 1) & -page, end = ((uintptr_t)p + size) & -page;
		madvise((void *)start, end - start, MADV_HUGEPAGE);
	}
	return p;
}

// The struct xnn_allocator of xnnpack.h.
static const struct {
	void *context;
	void *(*allocate)(void *, size_t);
	void *(*reallocate)(void *, void *, size_t);
	void (*deallocate)(void *, void *);
	void *(*aligned_allocate)(void *, size_t, size_t);
	void (*aligned_deallocate)(void *, void *);
} allocator = {NULL, allocate, reallocate, deallocate, aligned_allocate, deallocate};

static uintptr_t allocator_address(void) { return (uintptr_t)&allocator; }
*/
import "C"

import "unsafe"

// allocator returns the allocator for the library: the C library's, with huge pages for large
// memory.
func allocator() Address { return Address(C.allocator_address()) }

// Heap returns the address of four pointers to functions: malloc, realloc, free and posix_memalign,
// which the library allocates with. Package xnnguard replaces them; memory that was allocated
// before must still be freed.
func Heap() unsafe.Pointer { return C.heap_functions() }
