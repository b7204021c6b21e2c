// Package xnnguard (no compatibility promise) places every allocation of an open libXNNPACK between
// inaccessible pages, for tests: an access beyond an allocation, or to a freed one, ends the
// process by SIGSEGV. It changes the library's relocations of malloc, realloc, free and
// posix_memalign; the heap of the rest of the process is not affected.
package xnnguard

import (
	"sync"

	"github.com/etrun-go/etrun/cbindings/xnn"
)

// Options configure the guarded heap.
type Options struct {
	// Poison is the initial value of allocated memory, and of the bytes between it and the
	// inaccessible pages. A write to the latter ends the process by SIGABRT when the memory is
	// freed.
	Poison byte
	// Underrun places allocations at the start of their pages, so that accesses before them fault.
	// By default they end at the end of their pages, except for alignment.
	Underrun bool
	// Limit is the maximum number of bytes allocated at once; further allocations fail. 0 means no
	// limit.
	Limit uint64
}

// Stats are statistics of the guarded heap.
type Stats struct {
	Blocks, Bytes uint64 // now allocated
	Peak          uint64 // most bytes
	Allocations   uint64 // since the start
	Refused       uint64 // allocations beyond the limit
}

var installed struct {
	sync.Mutex
	by map[*xnn.Library]error
}

// Install guards a library's further allocations. Existing memory is still freed by its own
// allocator.
func Install(lib *xnn.Library) error {
	installed.Lock()
	defer installed.Unlock()
	if err, ok := installed.by[lib]; ok {
		return err
	}
	if installed.by == nil {
		installed.by = make(map[*xnn.Library]error)
	}
	err := install(lib)
	installed.by[lib] = err
	return err
}
