package grpc

import (
	"cmp"
	"fmt"
	"math"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve/grpc/inference"
	"github.com/etrun-go/etrun/serve/oip"
)

// parameters returns parameters as those of JSON are.
func parameters(place string, list map[string]*inference.InferParameter) (oip.Parameters, error) {
	if len(list) > maxParameters {
		return nil, tooLarge(place, "more than %d parameters", maxParameters)
	}
	var out oip.Parameters
	for name, p := range list {
		v, err := parameter(place, p)
		if err = cmp.Or(err, short(place, name)); err != nil {
			return nil, err
		}
		if out == nil {
			out = make(oip.Parameters)
		}
		out[name] = v
	}
	return out, nil
}

// parameter returns the value of a parameter, nil if it has none.
func parameter(place string, p *inference.InferParameter) (any, error) {
	if len(p.ProtoReflect().GetUnknown()) > 0 {
		return nil, invalid(place, "a parameter of an unknown type")
	}
	switch c := p.ParameterChoice.(type) {
	case *inference.InferParameter_BoolParam:
		return c.BoolParam, nil
	case *inference.InferParameter_Int64Param:
		return c.Int64Param, nil
	case *inference.InferParameter_StringParam:
		return c.StringParam, short(place, c.StringParam)
	case *inference.InferParameter_DoubleParam:
		return c.DoubleParam, nil
	case *inference.InferParameter_Uint64Param:
		if c.Uint64Param <= math.MaxInt64 {
			return int64(c.Uint64Param), nil
		}
		return c.Uint64Param, nil
	}
	return nil, nil
}

func shape(place string, sizes []int64) ([]int, error) {
	if len(sizes) > tensor.MaxRank {
		return nil, invalid(place, "more than %d dimensions", tensor.MaxRank)
	}
	out := make([]int, len(sizes))
	for i, n := range sizes {
		switch {
		case n < 0:
			return nil, invalid(place, "%d, want sizes of at least 0", n)
		case n > math.MaxInt:
			return nil, invalid(place, "%d has too many elements", n)
		}
		out[i] = int(n)
	}
	return out, nil
}

// input returns input i with its elements.
func input(into *oip.Contents, m *inference.ModelInferRequest, i int) (t oip.Tensor, err error) {
	x, place := m.Inputs[i], fmt.Sprintf("inputs[%d]", i)
	t = oip.Tensor{Name: x.Name, Datatype: oip.Datatype(x.Datatype)}
	list, err := parameters(place+".parameters", x.Parameters)
	if err = cmp.Or(err, short(place+".name", x.Name), short(place+".datatype", x.Datatype)); err != nil {
		return t, err
	}
	if list["shared_memory_region"] != nil {
		return t, invalid(place, "tensor %.100q: shared memory, want data in the request", t.Name)
	}
	if t.Shape, err = shape(place+".shape", x.Shape); err != nil {
		return t, err
	}
	if len(m.RawInputContents) == 0 {
		return t, fill(place, into, &t, x.Contents)
	}
	if other(x.Contents, 0) != 0 {
		return t, invalid(place, "tensor %.100q has contents beside raw_input_contents, want one of them", t.Name)
	}
	return t, into.Bytes(fmt.Sprintf("raw_input_contents[%d]", i), &t, m.RawInputContents[i])
}

type contents = inference.InferTensorContents

// move sets the elements of a tensor to those of contents.
type move func(place string, into *oip.Contents, t *oip.Tensor, c *contents) error

// form is the field of a datatype's elements in contents, and moves them to a tensor.
type form struct {
	field protoreflect.FieldNumber
	move  move
}

// forms has the datatypes that contents may have: all but half floats.
var forms = map[oip.Datatype]form{
	"BOOL":    {1, equal((*contents).GetBoolContents)},
	"INT8":    {2, narrow[int8]((*contents).GetIntContents)},
	"INT16":   {2, narrow[int16]((*contents).GetIntContents)},
	"INT32":   {2, equal((*contents).GetIntContents)},
	"INT64":   {3, equal((*contents).GetInt64Contents)},
	"UINT8":   {4, narrow[uint8]((*contents).GetUintContents)},
	"UINT16":  {4, narrow[uint16]((*contents).GetUintContents)},
	"UINT32":  {4, equal((*contents).GetUintContents)},
	"UINT64":  {5, equal((*contents).GetUint64Contents)},
	"FP32":    {6, equal((*contents).GetFp32Contents)},
	"FP64":    {7, equal((*contents).GetFp64Contents)},
	oip.Bytes: {8, texts},
}

// fill sets the elements of an input without raw contents.
func fill(place string, into *oip.Contents, t *oip.Tensor, c *contents) error {
	f, ok := forms[t.Datatype]
	if _, known := t.Datatype.DType(); !ok && known {
		return invalid(place, "%s has no contents; send raw_input_contents", t.Datatype)
	}
	if !ok {
		return invalid(place, "unknown datatype %.40q", t.Datatype)
	}
	if n := other(c, f.field); n != 0 {
		return invalid(place, "field %d of contents, the elements of %s are in field %d", n, t.Datatype, f.field)
	}
	return f.move(place, into, t, c)
}

// other returns a field of contents that has elements besides one, 0 for none.
func other(c *contents, field protoreflect.FieldNumber) (n protoreflect.FieldNumber) {
	c.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if f.Number() != field {
			n = f.Number()
		}
		return n == 0
	})
	return n
}

// equal moves elements of the tensor's type.
func equal[E tensor.Element](list func(*contents) []E) move {
	return func(place string, into *oip.Contents, t *oip.Tensor, c *contents) error {
		from := list(c)
		err := into.Alloc(place, t, len(from))
		copy(t.Data, tensor.BytesOf(from))
		return err
	}
}

// narrow moves elements of a wider type than the tensor's.
func narrow[E int8 | int16 | uint8 | uint16, W int32 | uint32](list func(*contents) []W) move {
	return func(place string, into *oip.Contents, t *oip.Tensor, c *contents) error {
		from := list(c)
		if err := into.Alloc(place, t, len(from)); err != nil {
			return err
		}
		to := tensor.View[E](t.Data)
		for i, x := range from {
			if to[i] = E(x); W(to[i]) != x {
				return invalid(place, "element %d is %d, want %s", i, x, t.Datatype)
			}
		}
		return nil
	}
}

// texts moves the elements of BYTES.
func texts(place string, into *oip.Contents, t *oip.Tensor, c *contents) error {
	size := int64(0)
	for _, s := range c.GetBytesContents() {
		size += int64(len(s))
	}
	if err := into.Strings(place, t, len(c.GetBytesContents()), size); err != nil {
		return err
	}
	t.Texts = append(t.Texts, c.GetBytesContents()...)
	return nil
}
