package input

import (
	"errors"
	"fmt"
	"strconv"
)

// Classes of input errors; match with errors.Is.
var (
	ErrMismatch = errors.New("input mismatch")   // the input does not fit the method
	ErrMemory   = errors.New("inputs too large") // more bytes than the limit
	ErrFile     = errors.New("unreadable input") // the file has another format than its name, or cannot be read
)

// Error is an error of one input.
type Error struct {
	Index  int
	Name   string // declared name, may be empty
	Spec   string // argument, empty if there is none
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

// Unwrap returns the reason and the details.
func (e *Error) Unwrap() []error { return []error{e.Reason, e.Err} }

// mismatch is an input error without a location, which Resolve adds.
func mismatch(format string, args ...any) error {
	return &Error{Index: -1, Reason: ErrMismatch, Err: fmt.Errorf(format, args...)}
}
