package grpc

import (
	"fmt"
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
			return invalid(place, "malformed message: %w", protowire.ParseError(n))
		}
		data = data[n:]
		v, n := consume(data, number, kind)
		if n < 0 {
			return invalid(place, "malformed message: field %d: %w", number, protowire.ParseError(n))
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

// draft is a request being read: its fields may come in any order.
type draft struct {
	oip.Request
	limits   oip.Limits
	contents [][]byte // of the inputs, nil for none
	raw      [][]byte
}

// read reads the request within the limits of its model.
func (r *request) read(limits oip.Limits) (*oip.Request, error) {
	if int64(len(r.data)) > limits.Body {
		return nil, tooLarge("", "message of %d bytes, the model takes at most %d", len(r.data), limits.Body)
	}
	d := &draft{limits: limits}
	if err := fields("", r.data, d.field); err != nil {
		return nil, err
	}
	if len(d.raw) > 0 && len(d.raw) != len(d.Inputs) {
		return nil, invalid("raw_input_contents", "%d elements for %d inputs", len(d.raw), len(d.Inputs))
	}
	into := oip.NewContents(limits)
	for i := range d.Inputs {
		if err := d.fill(into, i); err != nil {
			return nil, err
		}
	}
	return &d.Request, nil
}

// field reads a field of the request.
func (d *draft) field(n protowire.Number, v value) (err error) {
	switch n {
	case 3:
		d.ID, err = v.text("id")
	case 4:
		err = parameter("parameters", v, &d.Parameters)
	case 5:
		return d.input(v)
	case 6:
		return d.output(v)
	case 7:
		if len(d.raw) == d.limits.Inputs {
			return tooLarge("raw_input_contents", "more than %d elements", d.limits.Inputs)
		}
		d.raw = append(d.raw, v.bytes)
		err = v.is("raw_input_contents", protowire.BytesType)
	}
	return err
}

// output reads an output that is asked for.
func (d *draft) output(v value) error {
	place := fmt.Sprintf("outputs[%d]", len(d.Outputs))
	if err := v.is(place, protowire.BytesType); err != nil {
		return err
	}
	if len(d.Outputs) == d.limits.Inputs {
		return tooLarge("outputs", "more than %d elements", d.limits.Inputs)
	}
	var o oip.Output
	err := fields(place, v.bytes, func(n protowire.Number, v value) (err error) {
		switch n {
		case 1:
			o.Name, err = v.text(place + ".name")
		case 2:
			err = parameter(place+".parameters", v, &o.Parameters)
		}
		return err
	})
	d.Outputs = append(d.Outputs, o)
	return err
}

// input reads an input but for its elements.
func (d *draft) input(v value) error {
	place := fmt.Sprintf("inputs[%d]", len(d.Inputs))
	if err := v.is(place, protowire.BytesType); err != nil {
		return err
	}
	if len(d.Inputs) == d.limits.Inputs {
		return tooLarge("inputs", "more than %d elements", d.limits.Inputs)
	}
	t, contents := oip.Tensor{Shape: []int{}}, []byte(nil)
	var parameters oip.Parameters
	err := fields(place, v.bytes, func(n protowire.Number, v value) (err error) {
		var text string
		switch n {
		case 1:
			t.Name, err = v.text(place + ".name")
		case 2:
			text, err = v.text(place + ".datatype")
			t.Datatype = oip.Datatype(text)
		case 3:
			return shape(place+".shape", v, &t.Shape)
		case 4:
			return parameter(place+".parameters", v, &parameters)
		case 5:
			if contents != nil {
				return invalid(place, "contents given twice")
			}
			contents, err = v.bytes, v.is(place+".contents", protowire.BytesType)
		}
		return err
	})
	if err == nil && parameters["shared_memory_region"] != nil {
		err = invalid(place, "tensor %.100q: shared memory, want data in the request", t.Name)
	}
	d.Inputs, d.contents = append(d.Inputs, t), append(d.contents, contents)
	return err
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
			return invalid(place, "malformed message: %w", protowire.ParseError(n))
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
