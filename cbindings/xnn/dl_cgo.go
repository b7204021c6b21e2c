//go:build cgo && !nodl && linux && (amd64 || arm64)

package xnn

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static uintptr_t find(uintptr_t handle, const char *name) { return (uintptr_t)dlsym((void *)handle, name); }
static void trim(uintptr_t f) { ((int (*)(size_t))f)(0); }
*/
import "C"

import (
	"errors"
	"unsafe"
)

// DynamicLoading reports whether this build can open libraries.
const DynamicLoading = true

func dlopen(path string, global bool) (uintptr, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	mode := C.int(C.RTLD_NOW | C.RTLD_LOCAL)
	if global {
		mode = C.RTLD_NOW | C.RTLD_GLOBAL
	}
	handle := C.dlopen(name, mode)
	if handle == nil {
		return 0, errors.New(C.GoString(C.dlerror()))
	}
	return uintptr(handle), nil
}

func dlsym(handle uintptr, name string) uintptr {
	symbol := C.CString(name)
	defer C.free(unsafe.Pointer(symbol))
	return uintptr(C.find(C.uintptr_t(handle), symbol))
}

func trim(address uintptr) { C.trim(C.uintptr_t(address)) }
