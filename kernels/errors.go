package kernels

import (
	"errors"
	"fmt"
)

// ErrArgument is the reason of every refused argument; match with errors.Is.
var ErrArgument = errors.New("bad argument")

// ArgumentError names an argument that an operator cannot take. It is ErrArgument.
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

// Bad reports argument i: got describes what it is, want what the operator takes.
func Bad(i int, got, want string) error { return &ArgumentError{Arg: i, Got: got, Want: want} }

// Badf is Bad with a formatted got.
func Badf(i int, want, got string, args ...any) error {
	return &ArgumentError{Arg: i, Got: fmt.Sprintf(got, args...), Want: want}
}
