// Package jsonerror (no compatibility promise) has errors of JSON in the words of JSON: without names of packages and types of Go.
package jsonerror

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
)

// plain is an error in other words.
type plain struct {
	text  string
	cause error
}

func (e *plain) Error() string { return e.text }

// Unwrap returns the error of the package that read the JSON.
func (e *plain) Unwrap() error { return e.cause }

// Plain returns an error of package json or jsontext in plain words, others as they are. It wraps err.
func Plain(err error) error {
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text := valueOf(wrong.Value) + ", want " + typeOf(wrong.Type)
		if wrong.Field != "" {
			text = wrong.Field + ": " + text
		}
		return &plain{text, err}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &plain{"unexpected end", err}
	}
	text := err.Error()
	for _, prefix := range []string{"jsontext: ", "json: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return &plain{text, err}
}

// values are the names of kinds of JSON values that package json has others for.
var values = map[string]string{"bool": "true or false", "array": "an array", "object": "an object", "string": "a string",
	"number": "a number"}

func valueOf(name string) string { return cmp.Or(values[name], name) }

// types are the JSON values for kinds of Go types; others are integers.
var types = map[reflect.Kind]string{reflect.Bool: "true or false", reflect.String: "a string", reflect.Slice: "an array",
	reflect.Array: "an array", reflect.Map: "an object", reflect.Struct: "an object", reflect.Float32: "a number", reflect.Float64: "a number"}

func typeOf(t reflect.Type) string {
	if t == nil {
		return "another value"
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return cmp.Or(types[t.Kind()], "an integer")
}
