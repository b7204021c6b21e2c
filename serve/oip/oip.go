// Package oip (no compatibility promise) reads requests and writes answers of the Open Inference
// Protocol, version 2, as JSON and with the binary tensor extension.
//
// It does not allocate memory for sizes that a request merely claims: a tensor is allocated after
// its sizes, its type and the limits of the request were found to agree.
package oip

import (
	"errors"
	"fmt"
)

// HeaderLength is the HTTP header with the number of bytes of the JSON part, required if binary
// tensors follow.
const HeaderLength = "Inference-Header-Content-Length"

// Classes of errors; match with errors.Is.
var (
	ErrInvalid  = errors.New("invalid request")
	ErrTooLarge = errors.New("request too large")
	ErrRead     = errors.New("request cannot be read") // the connection failed or was too slow
	ErrNoJSON   = errors.New("no JSON form")           // a value of a response
)

// Error is an error at a place in a request or a response.
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

// Unwrap returns the class and the cause.
func (e *Error) Unwrap() []error { return []error{e.Class, e.Err} }

func invalid(place, format string, args ...any) error {
	return &Error{ErrInvalid, place, fmt.Errorf(format, args...)}
}

// Request is one inference.
type Request struct {
	ID         string
	Parameters Parameters
	Inputs     []Tensor
	Outputs    []Output // empty: all, in the default form
}

// Tensor is an input or an output. Elements are in logical order: the last dimension varies
// fastest.
type Tensor struct {
	Name     string
	Datatype Datatype
	Shape    []int
	Data     []byte   // little-endian elements, from tensor.AlignedBytes; nil for BYTES
	Texts    [][]byte // elements of BYTES
	Binary   bool     // received, or to be sent, as binary data
}

// Output is a requested output.
type Output struct {
	Name       string
	Parameters Parameters
}

// Parameters are strings, bools, int64, larger uint64, float64, nil for null, or Nested.
type Parameters map[string]any

// nested is a parameter that is an array or an object, of which only the kind is kept: '[' or '{'. No parameter of this
// version is one.
type nested byte

// Bool returns a bool parameter, false if it is absent.
func (p Parameters) Bool(name string) (value bool, err error) {
	switch v := p[name].(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	}
	return false, invalid("parameters."+name, "%v, want true or false", p[name])
}

// Int returns a nonnegative integer parameter; ok is false if it is absent.
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

// Text returns a string parameter, or an integer one in decimal digits; empty if it is absent.
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
