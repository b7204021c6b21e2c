package grpc

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/etrun-go/etrun/serve/grpc/inference"
	"github.com/etrun-go/etrun/serve/oip"
)

// request is a ModelInferRequest as it was received. Decoded, it may need a hundred times its size, so that it is only decoded within
// the limits of its model.
type request struct{ data []byte }

// Limits of a request, besides those of the model.
const (
	maxText       = 4096 // bytes of a name, id or parameter
	maxParameters = 64
)

// maxWeight limits the memory of a decoded request but for its tensors.
const maxWeight = 1 << 20

// The fields of a request that are not texts.
const (
	parametersField protowire.Number = iota + 4
	inputsField
	outputsField
	rawField
)

func invalid(place, format string, args ...any) error {
	return &oip.Error{Class: oip.ErrInvalid, Place: place, Err: fmt.Errorf(format, args...)}
}

func tooLarge(place, format string, args ...any) error {
	return &oip.Error{Class: oip.ErrTooLarge, Place: place, Err: fmt.Errorf(format, args...)}
}

// fields calls read with each field of a message: all its bytes, and the value of one that has a length.
func fields(data []byte, read func(n protowire.Number, field, value []byte) error) error {
	for len(data) > 0 {
		number, kind, size := protowire.ConsumeField(data)
		if size < 0 {
			return invalid("", "malformed message: not in the wire format, or it ends too early")
		}
		var value []byte
		if kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(data)
			value, _ = protowire.ConsumeBytes(data[tag:])
		}
		if err := read(number, data[:size], value); err != nil {
			return err
		}
		data = data[size:]
	}
	return nil
}

// head decodes the fields of a request that are texts.
func (r *request) head() (*inference.ModelInferRequest, error) {
	var head []byte
	err := fields(r.data, func(n protowire.Number, field, _ []byte) error {
		if n < parametersField {
			head = append(head, field...)
		}
		return nil
	})
	m := new(inference.ModelInferRequest)
	if err == nil {
		err = decode(head, m)
	}
	return m, err
}

// target returns the model and the method of the request.
func (r *request) target() (model, method string, err error) {
	m, err := r.head()
	if err != nil {
		return "", "", err
	}
	if m.ModelName == "" {
		return "", "", invalid("model_name", "no name")
	}
	return m.ModelName, m.ModelVersion, cmp.Or(short("model_name", m.ModelName), short("model_version", m.ModelVersion), short("id", m.Id))
}

// short returns an error for a text that is too long.
func short(place, s string) error {
	if len(s) > maxText {
		return tooLarge(place, "a string of %d bytes, want at most %d", len(s), maxText)
	}
	return nil
}

// read reads the request within the limits of its model.
func (r *request) read(limits oip.Limits) (*oip.Request, error) {
	if int64(len(r.data)) > limits.Body {
		return nil, tooLarge("", "message of %d bytes, the model takes at most %d", len(r.data), limits.Body)
	}
	m, err := r.decode(limits)
	if err != nil {
		return nil, err
	}
	if n := len(m.RawInputContents); n > 0 && n != len(m.Inputs) {
		return nil, invalid("raw_input_contents", "%d elements for %d inputs", n, len(m.Inputs))
	}
	out := &oip.Request{ID: m.Id}
	if out.Parameters, err = parameters("parameters", m.Parameters); err != nil {
		return nil, err
	}
	for i, o := range m.Outputs {
		place := fmt.Sprintf("outputs[%d]", i)
		list, err := parameters(place+".parameters", o.Parameters)
		if err = cmp.Or(err, short(place+".name", o.Name)); err != nil {
			return nil, err
		}
		out.Outputs = append(out.Outputs, oip.Output{Name: o.Name, Parameters: list})
	}
	into := oip.NewContents(limits)
	for i := range m.Inputs {
		t, err := input(into, m, i)
		if err != nil {
			return nil, err
		}
		out.Inputs = append(out.Inputs, t)
	}
	return out, nil
}

// decode decodes the request if its parts are within the limits. Its raw contents are those of the message, not copies.
func (r *request) decode(limits oip.Limits) (*inference.ModelInferRequest, error) {
	m := new(inference.ModelInferRequest)
	of := m.ProtoReflect().Descriptor()
	rest, raw := r.data[:0], [][]byte(nil)
	var count [rawField + 1]int
	weight := int64(0)
	err := fields(r.data, func(n protowire.Number, field, value []byte) error {
		if n >= inputsField && n <= rawField {
			if count[n]++; count[n] > limits.Inputs {
				return tooLarge(string(of.Fields().ByNumber(n).Name()), "more than %d elements", limits.Inputs)
			}
		}
		switch {
		case n == rawField && value != nil:
			raw, rest = append(raw, value), slices.Clip(rest)
			return nil
		case raw == nil: // what precedes raw contents, most often all else, is not copied
			rest = rest[:len(rest)+len(field)]
		default:
			rest = append(rest, field...)
		}
		if weight += weigh(field, of); (weight-maxWeight)/elementWeight > limits.Tensors {
			return tooLarge("", "more elements than the model takes")
		}
		return nil
	})
	if err == nil {
		err = decode(rest, m)
	}
	m.RawInputContents = raw
	return m, err
}

// Bytes of decoded parts, about: of a part of a message, and of an element of a list.
const (
	partWeight    = 256
	textWeight    = 32
	elementWeight = 8
)

// weigh returns about how many bytes the fields of a message need when they are decoded.
func weigh(data []byte, of protoreflect.MessageDescriptor) (n int64) {
	_ = fields(data, func(number protowire.Number, field, value []byte) error { // what is malformed is not decoded
		switch f := of.Fields().ByNumber(number); {
		case f == nil || value == nil:
			n += elementWeight + int64(len(field))
		case f.Message() != nil:
			n += partWeight + weigh(value, f.Message())
		case f.IsPacked() && f.Kind() != protoreflect.FloatKind && f.Kind() != protoreflect.DoubleKind:
			n += elementWeight * elements(value)
		default:
			n += textWeight + int64(len(value))
		}
		return nil
	})
	return n
}

// elements returns the number of elements of variable length in a packed list.
func elements(list []byte) (n int64) {
	for _, b := range list {
		if b < 0x80 { // the last byte of a number
			n++
		}
	}
	return n
}
