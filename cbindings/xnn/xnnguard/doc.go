// Package xnnguard (no compatibility promise) puts every allocation that an open
// libXNNPACK makes between pages without access, for tests: an access beyond an
// allocation, or to a freed one, ends the process by SIGSEGV. It changes the library's
// relocations of malloc, realloc, free and posix_memalign; the heap of the rest of the
// process stays as it is.
package xnnguard

import (
	"sync"

	"github.com/etrun-go/etrun/cbindings/xnn"
)

// Options say how the library's memory is given.
type Options struct {
	// Poison fills new memory, and what lies between it and the pages without access.
	// A write there ends the process by SIGABRT when the memory is freed.
	Poison byte
	// Underrun puts allocations at the first byte of their pages, so that accesses in
	// front of them fault. Else they end where their pages end, less what their
	// alignment takes.
	Underrun bool
	// Limit is how many bytes the library may have at once; an allocation beyond it
	// fails. 0 is no limit.
	Limit uint64
}

// Stats are figures of the guarded heap.
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

// Install guards a library's memory from now on. Memory that it has already is given
// back to where it came from.
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
