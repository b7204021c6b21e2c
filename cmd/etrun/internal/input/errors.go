package input

import (
	"errors"
	"fmt"
	"strconv"
)

// Faults of inputs; match with errors.Is.
var (
	ErrMismatch = errors.New("input mismatch")   // the input does not fit the method
	ErrMemory   = errors.New("inputs too large") // more bytes than the limit
	ErrFile     = errors.New("unreadable input") // the file is not what its name says, or cannot be read
)

// Error is a fault of one input.
type Error struct {
	Index  int
	Name   string // as the program declares it, may be empty
	Spec   string // the argument, empty where none was given
	Reason error  // ErrMismatch, ErrMemory or ErrFile
	Err    error  // the details
}

func (e *Error) Error() string {
	text := "input " + strconv.Itoa(e.Index)
	if e.Name != "" {
		text += fmt.Sprintf(" %q", e.Name)
	}
	if e.Spec != "" {
		text += " (" + e.Spec + ")"
	}
	return text + ": " + e.Err.Error()
}

// Unwrap gives the reason and the details to errors.Is and errors.As.
func (e *Error) Unwrap() []error { return []error{e.Reason, e.Err} }

// mismatch is an input's error without its place, which Resolve adds.
func mismatch(format string, args ...any) error {
	return &Error{Index: -1, Reason: ErrMismatch, Err: fmt.Errorf(format, args...)}
}
