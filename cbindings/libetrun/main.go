//go:build cgo

// Command libetrun is the library for other languages. Built with -buildmode=c-shared, it
// implements etrun.h.
package main

// #include <stdlib.h>
// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"runtime/debug"
	"sync"
	"unsafe"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
)

func main() {} // required by -buildmode=c-shared

// release is set by the linker (-X main.release=…).
var release = ""

var version = forever(libraryVersion())

func libraryVersion() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// backendNames are the IDs of the backends, as strings of C.
var backendNames = func() (names []*C.char) {
	for _, b := range all.Backends() {
		names = append(names, forever(b.ID()))
	}
	return names
}()

// operatorNames are the names of the operators, each with a NUL, and where they begin.
var operatorNames = sync.OnceValues(func() (*C.char, []int) {
	var begins []int
	var all []byte
	for _, name := range etrun.DefaultOperators().Names() {
		begins = append(begins, len(all))
		all = append(append(all, name...), 0)
	}
	return forever(string(all)), begins
})

//export etrun_abi
func etrun_abi() C.int32_t { return C.ETRUN_ABI }

//export etrun_version
func etrun_version() *C.char { return version }

//export etrun_class
func etrun_class(number C.int) *C.char {
	if name, ok := classNames[number]; ok {
		return name
	}
	return unknownClass
}

//export etrun_free
func etrun_free(text *C.char) { C.free(unsafe.Pointer(text)) }

//export etrun_backend_name
func etrun_backend_name(i C.size_t) *C.char {
	if uint64(i) >= uint64(len(backendNames)) {
		return nil
	}
	return backendNames[i]
}

//export etrun_operator_name
func etrun_operator_name(i C.size_t) *C.char {
	names, begins := operatorNames()
	if uint64(i) >= uint64(len(begins)) {
		return nil
	}
	return (*C.char)(unsafe.Add(unsafe.Pointer(names), begins[i]))
}
