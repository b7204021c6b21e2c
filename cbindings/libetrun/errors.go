//go:build cgo

package main

// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/advice"
	"github.com/etrun-go/etrun/media/sound"
	"github.com/etrun-go/etrun/speech"
	"github.com/etrun-go/etrun/text/tokenizer"
)

var (
	errHandle   = errors.New("no open handle")
	errArgument = errors.New("argument")
	errBusy     = errors.New("in use by another thread")
)

// fault is an error of the caller, with its class.
type fault struct {
	class error
	text  string
}

func (e *fault) Error() string { return e.text }

// Unwrap returns the class.
func (e *fault) Unwrap() error { return e.class }

// argument returns an error of an argument.
func argument(format string, args ...any) error {
	return &fault{errArgument, fmt.Sprintf(format, args...)}
}

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
	{tokenizer.ErrFormat, C.ETRUN_MODEL}, {tokenizer.ErrUnsupported, C.ETRUN_MISSING},
	{tokenizer.ErrText, C.ETRUN_INPUT}, {tokenizer.ErrToken, C.ETRUN_INPUT},
	{speech.ErrOption, C.ETRUN_INPUT}, {sound.ErrFormat, C.ETRUN_INPUT}, {sound.ErrUnsupported, C.ETRUN_INPUT}, {sound.ErrSize, C.ETRUN_INPUT},
}

// classNames are the names of the classes, as strings of C.
var classNames = map[C.int]*C.char{
	C.ETRUN_OK: forever("ETRUN_OK"), C.ETRUN_FAILURE: forever("ETRUN_FAILURE"), C.ETRUN_FILE: forever("ETRUN_FILE"),
	C.ETRUN_MODEL: forever("ETRUN_MODEL"), C.ETRUN_MISSING: forever("ETRUN_MISSING"), C.ETRUN_INPUT: forever("ETRUN_INPUT"),
	C.ETRUN_DEVICE: forever("ETRUN_DEVICE"), C.ETRUN_CANCELLED: forever("ETRUN_CANCELLED"), C.ETRUN_MEMORY: forever("ETRUN_MEMORY"),
	C.ETRUN_BUSY: forever("ETRUN_BUSY"), C.ETRUN_CLOSED: forever("ETRUN_CLOSED"), C.ETRUN_PANIC: forever("ETRUN_PANIC"),
}

var unknownClass = forever("unknown error class")

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
		return fail(text, classOf(err), advice.Binding(err.Error()))
	}
	return C.ETRUN_OK
}

func fail(text **C.char, class C.int, message string) C.int {
	if text != nil {
		*text = C.CString(message)
	}
	return class
}
