package flatbuf

import (
	"errors"
	"fmt"
	"strconv"
)

// Reasons of an Error; match with errors.Is.
var (
	// ErrMalformed means that the bytes violate the FlatBuffers format.
	ErrMalformed = errors.New("malformed flatbuffer")
	// ErrLimit means that following the references costs more than the file's size justifies.
	ErrLimit = errors.New("flatbuffer budget exceeded")
)

// Error is an error at a location in the file.
type Error struct {
	Reason error  // ErrMalformed, ErrLimit, or the reason passed to Failf
	Offset int64  // offset from the start of the file
	Path   string // "execution_plan[0].values[17].sizes", "" for the root
	Msg    string // noun phrase that describes the error
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%v at byte %d", e.Reason, e.Offset)
	if e.Path != "" {
		s += ", " + e.Path
	}
	return s + ": " + e.Msg
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }

// element is a path element: name, or name[i].
func element(name string, i int) string {
	if i < 0 {
		return name
	}
	return name + "[" + strconv.Itoa(i) + "]"
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "." + b
}
