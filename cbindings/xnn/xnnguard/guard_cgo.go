//go:build cgo && !nodl && linux && (amd64 || arm64)

package xnnguard

/*
#cgo LDFLAGS: -ldl -lpthread
#include <stdlib.h>
#include "guard.h"
*/
import "C"

import (
	"errors"
	"unsafe"

	"github.com/etrun-go/etrun/cbindings/xnn"
)

func install(lib *xnn.Library) error {
	path := C.CString(lib.Path)
	defer C.free(unsafe.Pointer(path))
	if why := C.guard_install(path, (*unsafe.Pointer)(xnn.Heap())); why != nil {
		return errors.New("xnnguard: " + C.GoString(why))
	}
	return nil
}

// Set sets the options for further allocations.
func Set(o Options) {
	underrun := C.int(0)
	if o.Underrun {
		underrun = 1
	}
	if o.Limit == 0 {
		o.Limit = ^uint64(0)
	}
	C.guard_set(C.uint8_t(o.Poison), underrun, C.size_t(o.Limit))
}

// Read returns the statistics, and resets Peak and Refused if reset is set.
func Read(reset bool) Stats {
	var s C.struct_guard_stats
	anew := C.int(0)
	if reset {
		anew = 1
	}
	C.guard_read(&s, anew)
	return Stats{Blocks: uint64(s.blocks), Bytes: uint64(s.bytes), Peak: uint64(s.peak),
		Allocations: uint64(s.allocations), Refused: uint64(s.refused)}
}

// block is memory of the guarded heap, for tests of the guard.
type block struct{ at unsafe.Pointer }

// allocate allocates n bytes of the guarded heap.
func allocate(n int) block { return block{C.guard_malloc(C.size_t(n))} }

// Free frees a block.
func (b block) Free() { C.guard_free(b.at) }

// Load reads the byte at an offset from the block's start, inside or outside it.
//
//go:noinline
func (b block) Load(offset int) byte { return *(*byte)(unsafe.Add(b.at, offset)) }

// Store writes the byte at an offset from the block's start.
func (b block) Store(offset int, x byte) { *(*byte)(unsafe.Add(b.at, offset)) = x }
