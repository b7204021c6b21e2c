package kernels

import (
	"errors"
	"fmt"
)

// ErrArgument is matched by every error about an argument; use errors.Is.
var ErrArgument = errors.New("bad argument")

// ArgumentError reports an argument that an operator does not accept. It matches ErrArgument.
type ArgumentError struct {
	Op   string // full name; the runtime fills it in
	Arg  int    // index in the schema, -1 for the call as a whole
	Name string // the argument's name in the schema; the runtime fills it in
	Got  string
	Want string
}

func (e *ArgumentError) Error() string {
	place := ""
	switch {
	case e.Arg >= 0 && e.Name != "":
		place = fmt.Sprintf("argument %d (%s): ", e.Arg, e.Name)
	case e.Arg >= 0:
		place = fmt.Sprintf("argument %d: ", e.Arg)
	}
	return fmt.Sprintf("%sgot %s, want %s", place, e.Got, e.Want)
}

// Unwrap makes errors.Is(err, ErrArgument) true.
func (e *ArgumentError) Unwrap() error { return ErrArgument }

// Bad returns an error about argument i: got describes its value, want what the operator accepts.
func Bad(i int, got, want string) error { return &ArgumentError{Arg: i, Got: got, Want: want} }

// Badf is Bad with a format and its arguments for got.
func Badf(i int, want, format string, args ...any) error {
	return &ArgumentError{Arg: i, Got: fmt.Sprintf(format, args...), Want: want}
}
