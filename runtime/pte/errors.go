package pte

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/etrun-go/etrun/internal/flatbuf"
)

// Reasons; match with errors.Is.
var (
	// ErrFormat: the bytes are not a valid file of their format.
	ErrFormat = errors.New("malformed file")
	// ErrUnsupported: valid, but of a kind that this version does not read.
	ErrUnsupported = errors.New("unsupported file")
	// ErrVersion: of another version of its format. It is ErrUnsupported, too.
	ErrVersion = fmt.Errorf("%w of another version", ErrUnsupported)
	// ErrLimit: valid so far, but beyond a limit that the caller set.
	ErrLimit = errors.New("limit exceeded")
)

// FormatError is a fault in a file's bytes, with its place.
type FormatError struct {
	Reason error  // ErrFormat, ErrUnsupported, ErrVersion or ErrLimit
	Offset int64  // from the file's start, -1 where no single byte is to blame
	Path   string // "execution_plan[0].values[17].dim_order", may be empty
	Msg    string // noun phrase of what is wrong
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

// Unwrap gives the reason to errors.Is.
func (e *FormatError) Unwrap() error { return e.Reason }

// faultf makes a FormatError.
func faultf(reason error, offset int64, path, format string, args ...any) *FormatError {
	return &FormatError{Reason: reason, Offset: offset, Path: path, Msg: fmt.Sprintf(format, args...)}
}

// formatError puts a fault of the FlatBuffers reader into this package's terms.
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

// quote quotes a string from a file, cut to a length that can be read.
func quote(s string) string {
	const most = 60
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%.60q… (%d bytes)", s, len(s))
}
