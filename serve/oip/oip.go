// Package oip reads requests and writes answers of the Open Inference Protocol, version 2,
// as JSON and with the binary tensor extension; it carries no compatibility promise.
//
// Nothing is allocated for what a request only claims: a tensor's bytes are allocated when
// its sizes, its type and the limits of the request agree.
package oip

import (
	"errors"
	"fmt"
)

// HeaderLength is the HTTP header with the number of bytes of the JSON part, where binary
// tensors follow it.
const HeaderLength = "Inference-Header-Content-Length"

// Classes of faults of a request; match with errors.Is.
var (
	ErrInvalid  = errors.New("invalid request")
	ErrTooLarge = errors.New("request too large")
	ErrRead     = errors.New("request cannot be read") // the connection failed or was too slow
	ErrNoJSON   = errors.New("no JSON form")           // of what a response would hold
)

// Error is a fault of a request or a response, at a place of it.
type Error struct {
	Class error
	Place string // such as inputs[0].shape, empty for the whole
	Err   error
}

func (e *Error) Error() string {
	if e.Place == "" {
		return e.Err.Error()
	}
	return e.Place + ": " + e.Err.Error()
}

// Unwrap gives class and cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error { return []error{e.Class, e.Err} }

func invalid(place, format string, args ...any) error {
	return &Error{ErrInvalid, place, fmt.Errorf(format, args...)}
}

// Limits bound one request. All numbers must be set.
type Limits struct {
	Header  int64 // bytes of the JSON part in front of binary tensors
	Body    int64 // bytes of the whole body
	Tensors int64 // bytes of all decoded tensors together
	Inputs  int   // tensors, and requested outputs
	// Alloc makes the bytes of a tensor, which need not be zeros; nil for
	// tensor.AlignedBytes.
	Alloc func(n int) []byte
}

// Request is one inference.
type Request struct {
	ID         string
	Parameters Parameters
	Inputs     []Tensor
	Outputs    []Output // empty: all, in the default form
}

// Tensor is an input or an output. Elements are in logical order: the last dimension
// varies fastest.
type Tensor struct {
	Name     string
	Datatype Datatype
	Shape    []int
	Data     []byte   // little-endian elements, from tensor.AlignedBytes; nil for BYTES
	Texts    [][]byte // elements of BYTES
	Binary   bool     // it came, or goes, as binary data
}

// Output is an output that the client asks for.
type Output struct {
	Name       string
	Parameters Parameters
}

// Parameters are strings, bools, int64, uint64 beyond that, or float64.
type Parameters map[string]any

// Bool is a parameter that is true or false; false where it is absent.
func (p Parameters) Bool(name string) (value bool, err error) {
	switch v := p[name].(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	}
	return false, invalid("parameters."+name, "%v, want true or false", p[name])
}

// Int is a parameter that is an integer of at least 0; ok is false where it is absent.
func (p Parameters) Int(name string) (value int64, ok bool, err error) {
	switch v := p[name].(type) {
	case nil:
		return 0, false, nil
	case int64:
		if v >= 0 {
			return v, true, nil
		}
	}
	return 0, false, invalid("parameters."+name, "%v, want an integer from 0 to 2^63-1", p[name])
}

// Text is a parameter that is a string, or an integer in decimal digits; empty where it is
// absent.
func (p Parameters) Text(name string) (string, error) {
	switch v := p[name].(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case int64, uint64:
		return fmt.Sprint(v), nil
	}
	return "", invalid("parameters."+name, "%v, want a string or an integer", p[name])
}
