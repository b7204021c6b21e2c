package pte

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/etrun-go/etrun/internal/flatbuf"
)

// Reasons of a FormatError; match with errors.Is.
var (
	// ErrFormat means that the bytes are not a valid file of their format.
	ErrFormat = errors.New("malformed file")
	// ErrUnsupported means that the file is valid but uses features that this version does not
	// support.
	ErrUnsupported = errors.New("unsupported file")
	// ErrVersion means that the file has another version of its format. It also matches
	// ErrUnsupported.
	ErrVersion = fmt.Errorf("%w of another version", ErrUnsupported)
	// ErrLimit means that the file exceeds a limit set by the caller.
	ErrLimit = errors.New("limit exceeded")
)

// FormatError is an error at a location in a file.
type FormatError struct {
	Reason error  // ErrFormat, ErrUnsupported, ErrVersion or ErrLimit
	Offset int64  // offset from the start of the file, -1 if there is none
	Path   string // "execution_plan[0].values[17].dim_order", may be empty
	Msg    string // noun phrase that describes the error
}

func (e *FormatError) Error() string {
	s := e.Reason.Error()
	if e.Offset >= 0 {
		s += fmt.Sprintf(" at byte %d", e.Offset)
	}
	if e.Path != "" {
		s += ", " + e.Path
	}
	return s + ": " + e.Msg
}

// Unwrap returns the reason.
func (e *FormatError) Unwrap() error { return e.Reason }

// faultf returns a FormatError.
func faultf(reason error, offset int64, path, format string, args ...any) *FormatError {
	return &FormatError{Reason: reason, Offset: offset, Path: path, Msg: fmt.Sprintf(format, args...)}
}

// formatError converts an error of package flatbuf to a FormatError.
func formatError(err error) error {
	fault, ok := errors.AsType[*flatbuf.Error](err)
	if !ok {
		return err
	}
	reason := fault.Reason
	switch reason {
	case flatbuf.ErrMalformed:
		reason = ErrFormat
	case flatbuf.ErrLimit:
		reason = ErrLimit
	}
	return &FormatError{Reason: reason, Offset: fault.Offset, Path: fault.Path, Msg: fault.Msg}
}

// quote quotes a string from a file, truncated to a readable length.
func quote(s string) string {
	const most = 60
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%.60q… (%d bytes)", s, len(s))
}
