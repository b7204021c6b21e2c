package isa

import (
	"errors"
	"fmt"
)

// Reasons of an Error; match with errors.Is.
var (
	ErrMalformed   = errors.New("malformed")   // the words violate the format or exceed their memory
	ErrUnsupported = errors.New("unsupported") // well formed, but not known here
)

// Part is the subject of an [Error].
type Part string

// Parts of a compiled network.
const (
	DriverPayload Part = "driver payload"
	CommandStream Part = "command stream"
)

// Error is an error at a word of a part. It matches its Reason, one of the above.
type Error struct {
	Part    Part
	Word    int    // index of the 32-bit word in the part
	Command string // name of its command, may be empty
	Reason  error
	Detail  string
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: word %d", e.Part, e.Word)
	if e.Command != "" {
		s += " (" + e.Command + ")"
	}
	return s + ": " + e.Reason.Error() + ": " + e.Detail
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }

// fault is an error whose location is not known yet: the decoders of operations return it, and the
// stream reader adds the location with [Place]. It matches its Reason.
type fault struct {
	Reason error // ErrMalformed or ErrUnsupported
	Detail string
}

func (f *fault) Error() string { return f.Reason.Error() + ": " + f.Detail }

// Unwrap returns the reason.
func (f *fault) Unwrap() error { return f.Reason }

// Malformed returns a *Fault for words that violate the format.
func Malformed(format string, args ...any) error {
	return &fault{ErrMalformed, fmt.Sprintf(format, args...)}
}

// Unsupported returns a *Fault for input that is well formed but not supported.
func Unsupported(format string, args ...any) error {
	return &fault{ErrUnsupported, fmt.Sprintf(format, args...)}
}

// Place returns an *Error for err at a word of a part, with its command, which may be empty. An
// error that is not a *Fault is reported as malformed.
func Place(part Part, word int, command string, err error) error {
	var f *fault
	if !errors.As(err, &f) {
		f = &fault{ErrMalformed, err.Error()}
	}
	return &Error{Part: part, Word: word, Command: command, Reason: f.Reason, Detail: f.Detail}
}

func payloadError(word int, reason error, format string, args ...any) error {
	return &Error{Part: DriverPayload, Word: word, Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// StreamError returns an *Error for the command at a word of a stream.
func StreamError(word int, command string, reason error, format string, args ...any) error {
	return &Error{Part: CommandStream, Word: word, Command: command, Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
