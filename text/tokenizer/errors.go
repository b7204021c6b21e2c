package tokenizer

import (
	"errors"
	"fmt"
)

// Classes of errors; match with errors.Is. Errors of opening and reading a file have none.
var (
	ErrFormat      = errors.New("invalid tokenizer")     // the file violates its format
	ErrUnsupported = errors.New("unsupported tokenizer") // not a file of a known kind, or one that is not supported exactly
	ErrText        = errors.New("text not encodable")    // the text is too long, not valid UTF-8, or has no tokens
	ErrToken       = errors.New("no such token")         // no token has this id
)

// Error is a failure of this package.
type Error struct {
	Class error  // one of the package's classes
	File  string // empty if the tokenizer does not come from a file, and for texts and ids
	Place string // part of the file, such as "pre_tokenizer" or "token 12"; may be empty
	Err   error
}

func (e *Error) Error() string {
	s := e.Class.Error() + ": "
	if e.File != "" {
		s = e.File + ": " + s
	}
	if e.Place != "" {
		s += e.Place + ": "
	}
	return s + e.Err.Error()
}

// Unwrap returns the class and the cause.
func (e *Error) Unwrap() []error { return []error{e.Class, e.Err} }

// malformed returns an error for a file that violates its format.
func malformed(place, format string, args ...any) error {
	return &Error{Class: ErrFormat, Place: place, Err: fmt.Errorf(format, args...)}
}

// unsupported returns an error for a file that is not supported exactly.
func unsupported(place, format string, args ...any) error {
	return &Error{Class: ErrUnsupported, Place: place, Err: fmt.Errorf(format, args...)}
}

// notEncodable returns an error for a text.
func notEncodable(format string, args ...any) error {
	return &Error{Class: ErrText, Err: fmt.Errorf(format, args...)}
}
