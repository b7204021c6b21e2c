package flatbuf

import (
	"errors"
	"fmt"
	"strconv"
)

// Reasons; match with errors.Is.
var (
	// ErrMalformed: the bytes break the FlatBuffers format.
	ErrMalformed = errors.New("malformed flatbuffer")
	// ErrLimit: following the references costs more than the file's size warrants.
	ErrLimit = errors.New("flatbuffer budget exceeded")
)

// Error is a fault with its place.
type Error struct {
	Reason error  // ErrMalformed, ErrLimit, or what the reader's user gave to Failf
	Offset int64  // from the start of the file
	Path   string // "execution_plan[0].values[17].sizes", "" for the root
	Msg    string // noun phrase of what is wrong
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%v at byte %d", e.Reason, e.Offset)
	if e.Path != "" {
		s += ", " + e.Path
	}
	return s + ": " + e.Msg
}

// Unwrap gives the reason to errors.Is.
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
