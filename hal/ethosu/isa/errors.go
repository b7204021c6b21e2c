package isa

import (
	"errors"
	"fmt"
)

// Reasons of refusal; match with errors.Is.
var (
	ErrMalformed   = errors.New("malformed")   // the words break the format's rules or leave their memory
	ErrUnsupported = errors.New("unsupported") // well formed, but not known here
)

// Part is what an [Error] is about.
type Part string

// Parts of a compiled network.
const (
	DriverPayload Part = "driver payload"
	CommandStream Part = "command stream"
)

// Error places a fault. It is its Reason, one of the above.
type Error struct {
	Part    Part
	Word    int    // index of the 32-bit word, from the part's start
	Command string // name of the command there, may be empty
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

// Unwrap gives the reason.
func (e *Error) Unwrap() error { return e.Reason }

// Fault is what is wrong, before its place is known: the decoders of operations return
// it, and the reader of the stream places it with [Place]. It is its Reason.
type Fault struct {
	Reason error // ErrMalformed or ErrUnsupported
	Detail string
}

func (f *Fault) Error() string { return f.Reason.Error() + ": " + f.Detail }

// Unwrap gives the reason.
func (f *Fault) Unwrap() error { return f.Reason }

// Malformed makes a *Fault of words that break the format's rules.
func Malformed(format string, args ...any) error {
	return &Fault{ErrMalformed, fmt.Sprintf(format, args...)}
}

// Unsupported makes a *Fault of what is well formed, but not known here.
func Unsupported(format string, args ...any) error {
	return &Fault{ErrUnsupported, fmt.Sprintf(format, args...)}
}

// Place makes an *Error of err at a word of a part, with the command there, which may
// be empty. An error that is no *Fault becomes a malformed one with its text.
func Place(part Part, word int, command string, err error) error {
	var f *Fault
	if !errors.As(err, &f) {
		f = &Fault{ErrMalformed, err.Error()}
	}
	return &Error{Part: part, Word: word, Command: command, Reason: f.Reason, Detail: f.Detail}
}

func payloadError(word int, reason error, format string, args ...any) error {
	return &Error{Part: DriverPayload, Word: word, Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// StreamError makes an *Error about the command at a word of a stream.
func StreamError(word int, command string, reason error, format string, args ...any) error {
	return &Error{Part: CommandStream, Word: word, Command: command, Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
