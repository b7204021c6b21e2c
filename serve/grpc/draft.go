package grpc

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etrun-go/etrun/serve/oip"
)

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

// fill sets the elements of an input.
func (d *draft) fill(into *oip.Contents, i int) error {
	place, t := fmt.Sprintf("inputs[%d]", i), &d.Inputs[i]
	if len(d.raw) > 0 {
		if len(d.contents[i]) > 0 {
			return invalid(place, "tensor %.100q has contents beside raw_input_contents, want one of them", t.Name)
		}
		return into.Bytes(fmt.Sprintf("raw_input_contents[%d]", i), t, d.raw[i])
	}
	if t.Datatype == oip.Bytes {
		return texts(place, into, t, d.contents[i])
	}
	f, ok := forms[t.Datatype]
	switch _, known := t.Datatype.DType(); {
	case !known:
		return invalid(place, "unknown datatype %.40q", t.Datatype)
	case !ok:
		return invalid(place, "%s has no contents; send raw_input_contents", t.Datatype)
	}
	return f.numbers(place, into, t, d.contents[i])
}
