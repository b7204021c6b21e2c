//go:build cgo

// Command libetrun is the library for other languages. Built with -buildmode=c-shared, it
// implements etrun.h.
package main

// #include <stdlib.h>
// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/cgo"
	"runtime/debug"
	"sync"
	"unsafe"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
)

func main() {} // required by -buildmode=c-shared

// instance is the method of a handle.
type instance struct {
	mu     sync.Mutex
	method *etrun.Method
}

var (
	errHandle   = errors.New("no such handle")
	errArgument = errors.New("argument")
	errBusy     = errors.New("another thread uses the method")
)

// classes are the error classes; the first match wins.
var classes = []struct {
	cause error
	class C.int
}{
	{errHandle, C.ETRUN_CLOSED}, {errBusy, C.ETRUN_BUSY}, {errArgument, C.ETRUN_INPUT},
	{context.Canceled, C.ETRUN_CANCELLED}, {context.DeadlineExceeded, C.ETRUN_CANCELLED},
	{etrun.ErrPanic, C.ETRUN_PANIC}, {etrun.ErrClosed, C.ETRUN_CLOSED}, {etrun.ErrBusy, C.ETRUN_BUSY},
	{etrun.ErrMemory, C.ETRUN_MEMORY}, {etrun.ErrMissing, C.ETRUN_MISSING}, {etrun.ErrUnsupported, C.ETRUN_MISSING},
	{delegate.ErrMissing, C.ETRUN_MISSING}, {etrun.ErrFormat, C.ETRUN_MODEL},
	{etrun.ErrInput, C.ETRUN_INPUT}, {etrun.ErrDevice, C.ETRUN_DEVICE},
}

func classOf(err error) C.int {
	for _, c := range classes {
		if errors.Is(err, c.cause) {
			return c.class
		}
	}
	if _, file := errors.AsType[*fs.PathError](err); file {
		return C.ETRUN_FILE
	}
	return C.ETRUN_FAILURE
}

// call runs a function for a C caller and converts its error or panic to a class and a message.
func call(text **C.char, f func() error) (class C.int) {
	if text != nil {
		*text = nil
	}
	defer func() {
		if fault := recover(); fault != nil {
			class = fail(text, C.ETRUN_PANIC, fmt.Sprintf("panic: %v\n%s", fault, debug.Stack()))
		}
	}()
	if err := f(); err != nil {
		return fail(text, classOf(err), err.Error())
	}
	return C.ETRUN_OK
}

func fail(text **C.char, class C.int, message string) C.int {
	if text != nil {
		*text = C.CString(message)
	}
	return class
}

// handles are the open handles. Closed ones are never reused.
var handles sync.Map // of cgo.Handle

func open(value any) C.uintptr_t {
	h := cgo.NewHandle(value)
	handles.Store(h, value)
	return C.uintptr_t(h)
}

// take returns the object of a handle.
func take[T any](number C.uintptr_t) (found T, err error) {
	value, ok := handles.Load(cgo.Handle(number))
	if ok {
		found, ok = value.(T)
	}
	if !ok {
		return found, fmt.Errorf("%w %d", errHandle, uintptr(number))
	}
	return found, nil
}

// drop closes a handle; of several concurrent calls one succeeds.
func drop[T any](number C.uintptr_t) (found T, err error) {
	if found, err = take[T](number); err != nil {
		return found, err
	}
	if _, ok := handles.LoadAndDelete(cgo.Handle(number)); !ok {
		return found, fmt.Errorf("%w %d", errHandle, uintptr(number))
	}
	cgo.Handle(number).Delete()
	return found, nil
}

// use calls f with exclusive use of a method.
func use(number C.etrun_method, text **C.char, f func(m *etrun.Method) error) C.int {
	return call(text, func() error {
		i, err := take[*instance](C.uintptr_t(number))
		if err != nil {
			return err
		}
		if !i.mu.TryLock() {
			return errBusy
		}
		defer i.mu.Unlock()
		return f(i.method)
	})
}

//export etrun_free
func etrun_free(text *C.char) { C.free(unsafe.Pointer(text)) }

var version = C.CString(libraryVersion())

func libraryVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

//export etrun_version
func etrun_version() *C.char { return version }
