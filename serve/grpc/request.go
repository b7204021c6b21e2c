package grpc

import (
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve/oip"
)

// request is a ModelInferRequest as it was received. Package inference would allocate up to a hundred times its size before the
// limits of the model are known.
type request struct{ data []byte }

// Limits of a request, besides those of the model.
const (
	maxText       = 4096 // bytes of a name, id or parameter
	maxParameters = 64
)

func invalid(place, format string, args ...any) error {
	return &oip.Error{Class: oip.ErrInvalid, Place: place, Err: fmt.Errorf(format, args...)}
}

func tooLarge(place, format string, args ...any) error {
	return &oip.Error{Class: oip.ErrTooLarge, Place: place, Err: fmt.Errorf(format, args...)}
}

// malformed returns the error of a message, or a part of it, for which a function of package protowire returned the negative number n.
func malformed(place, part string, n int) error {
	why := "not in the wire format"
	if errors.Is(protowire.ParseError(n), io.ErrUnexpectedEOF) {
		why = "it ends too early"
	}
	return invalid(place, "malformed message: %s%s", part, why)
}

// value is the value of a field: a number, or bytes.
type value struct {
	kind   protowire.Type
	number uint64
	bytes  []byte
}

// fields calls read with each field of a message. place is that of errors.
func fields(place string, data []byte, read func(n protowire.Number, v value) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return malformed(place, "", n)
		}
		data = data[n:]
		v, n := consume(data, number, kind)
		if n < 0 {
			return malformed(place, fmt.Sprintf("field %d: ", number), n)
		}
		data = data[n:]
		if err := read(number, v); err != nil {
			return err
		}
	}
	return nil
}

// consume reads a value and returns its size, or a negative number for an error.
func consume(data []byte, number protowire.Number, kind protowire.Type) (v value, n int) {
	v.kind = kind
	switch kind {
	case protowire.VarintType:
		v.number, n = protowire.ConsumeVarint(data)
	case protowire.Fixed32Type:
		var bits uint32
		bits, n = protowire.ConsumeFixed32(data)
		v.number = uint64(bits)
	case protowire.Fixed64Type:
		v.number, n = protowire.ConsumeFixed64(data)
	case protowire.BytesType:
		v.bytes, n = protowire.ConsumeBytes(data)
	default:
		n = protowire.ConsumeFieldValue(number, kind, data)
	}
	return v, n
}

// is returns an error unless the value has a kind.
func (v value) is(place string, kind protowire.Type) error {
	if v.kind == kind {
		return nil
	}
	return invalid(place, "malformed message: a value of wire type %d, want %d", v.kind, kind)
}

// text returns a string.
func (v value) text(place string) (string, error) {
	if err := v.is(place, protowire.BytesType); err != nil {
		return "", err
	}
	switch {
	case len(v.bytes) > maxText:
		return "", tooLarge(place, "a string of %d bytes, want at most %d", len(v.bytes), maxText)
	case !utf8.Valid(v.bytes):
		return "", invalid(place, "not UTF-8")
	}
	return string(v.bytes), nil
}

// target returns the model and the method of the request.
func (r *request) target() (model, method string, err error) {
	err = fields("", r.data, func(n protowire.Number, v value) (err error) {
		switch n {
		case 1:
			model, err = v.text("model_name")
		case 2:
			method, err = v.text("model_version")
		}
		return err
	})
	if err == nil && model == "" {
		err = invalid("model_name", "no name")
	}
	return model, method, err
}

// parameter reads an entry of a map of parameters.
func parameter(place string, v value, to *oip.Parameters) error {
	if err := v.is(place, protowire.BytesType); err != nil {
		return err
	}
	var name string
	var chosen any
	err := fields(place, v.bytes, func(n protowire.Number, part value) (err error) {
		switch n {
		case 1:
			name, err = part.text(place)
		case 2:
			chosen, err = choice(place, part)
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, known := (*to)[name]; !known && len(*to) == maxParameters {
		return tooLarge(place, "more than %d parameters", maxParameters)
	}
	if *to == nil {
		*to = make(oip.Parameters)
	}
	(*to)[name] = chosen
	return nil
}

// choices are the types of a parameter by the number of its field.
var choices = map[protowire.Number]struct {
	kind protowire.Type
	read func(bits uint64) any
}{
	1: {protowire.VarintType, func(bits uint64) any { return bits != 0 }},
	2: {protowire.VarintType, func(bits uint64) any { return int64(bits) }},
	4: {protowire.Fixed64Type, func(bits uint64) any { return math.Float64frombits(bits) }},
	5: {protowire.VarintType, unsigned},
}

// unsigned returns an int64 if it fits, as parameters of JSON are.
func unsigned(bits uint64) any {
	if bits <= math.MaxInt64 {
		return int64(bits)
	}
	return bits
}

// choice reads the value of a parameter, nil if it has none.
func choice(place string, v value) (chosen any, err error) {
	if err := v.is(place, protowire.BytesType); err != nil {
		return nil, err
	}
	err = fields(place, v.bytes, func(n protowire.Number, v value) (err error) {
		if n == 3 {
			chosen, err = v.text(place)
			return err
		}
		c, ok := choices[n]
		if !ok {
			return invalid(place, "a parameter of an unknown type (field %d)", n)
		}
		chosen = c.read(v.number)
		return v.is(place, c.kind)
	})
	return chosen, err
}

// shape reads a size, or several.
func shape(place string, v value, to *[]int) error {
	if v.kind == protowire.VarintType {
		return size(place, v.number, to)
	}
	if err := v.is(place, protowire.BytesType); err != nil {
		return err
	}
	for data := v.bytes; len(data) > 0; {
		bits, n := protowire.ConsumeVarint(data)
		if n < 0 {
			return malformed(place, "", n)
		}
		if err := size(place, bits, to); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func size(place string, bits uint64, to *[]int) error {
	switch n := int64(bits); {
	case n < 0:
		return invalid(place, "%d, want sizes of at least 0", n)
	case n > math.MaxInt:
		return invalid(place, "%d has too many elements", n)
	case len(*to) == tensor.MaxRank:
		return invalid(place, "more than %d dimensions", tensor.MaxRank)
	default:
		*to = append(*to, int(n))
	}
	return nil
}
