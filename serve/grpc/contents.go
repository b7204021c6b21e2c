package grpc

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etrun-go/etrun/serve/oip"
)

// form is the field of a datatype's elements in InferTensorContents, their wire type and bounds.
type form struct {
	field     protowire.Number
	kind      protowire.Type
	size      int // bytes of an element of the tensor
	low, high int64
}

// forms are those of the datatypes of fixed size. Half floats have none. 64-bit numbers have all values.
var forms = map[oip.Datatype]form{
	"BOOL":   {1, protowire.VarintType, 1, 0, 1},
	"INT8":   {2, protowire.VarintType, 1, math.MinInt8, math.MaxInt8},
	"INT16":  {2, protowire.VarintType, 2, math.MinInt16, math.MaxInt16},
	"INT32":  {2, protowire.VarintType, 4, math.MinInt32, math.MaxInt32},
	"INT64":  {3, protowire.VarintType, 8, 0, 0},
	"UINT8":  {4, protowire.VarintType, 1, 0, math.MaxUint8},
	"UINT16": {4, protowire.VarintType, 2, 0, math.MaxUint16},
	"UINT32": {4, protowire.VarintType, 4, 0, math.MaxUint32},
	"UINT64": {5, protowire.VarintType, 8, 0, 0},
	"FP32":   {6, protowire.Fixed32Type, 4, 0, 0},
	"FP64":   {7, protowire.Fixed64Type, 8, 0, 0},
}

// textsField is the field of the elements of BYTES.
const textsField = 8

// texts sets the elements of an input of BYTES.
func texts(place string, into *oip.Contents, t *oip.Tensor, contents []byte) error {
	n, size := 0, int64(0)
	err := fields(place, contents, func(number protowire.Number, v value) error {
		n, size = n+1, size+int64(len(v.bytes))
		if number != textsField {
			return invalid(place, "field %d of contents, the elements of BYTES are in field %d", number, textsField)
		}
		return v.is(place, protowire.BytesType)
	})
	if err != nil {
		return err
	}
	if err := into.Strings(place, t, n, size); err != nil {
		return err
	}
	return fields(place, contents, func(_ protowire.Number, v value) error {
		t.Texts = append(t.Texts, v.bytes)
		return nil
	})
}

// numbers sets the elements of an input of another datatype.
func (f form) numbers(place string, into *oip.Contents, t *oip.Tensor, contents []byte) error {
	n := 0
	err := fields(place, contents, func(number protowire.Number, v value) error {
		if number != f.field {
			return invalid(place, "field %d of contents, the elements of %s are in field %d", number, t.Datatype, f.field)
		}
		n += f.count(v)
		return nil
	})
	if err != nil {
		return err
	}
	if err := into.Alloc(place, t, n); err != nil {
		return err
	}
	data, at := t.Data, 0
	return fields(place, contents, func(_ protowire.Number, v value) error {
		if v.kind == f.kind {
			at++
			return f.put(place, t.Datatype, &data, at-1, v.number)
		}
		if err := v.is(place, protowire.BytesType); err != nil {
			return err
		}
		return f.packed(place, t.Datatype, &data, &at, v.bytes)
	})
}

// count returns the number of elements of a field: one, or those of a packed list, of which an incomplete last one counts.
func (f form) count(v value) (n int) {
	if v.kind != protowire.BytesType {
		return 1
	}
	if f.kind != protowire.VarintType {
		return (len(v.bytes) + f.size - 1) / f.size
	}
	for i, b := range v.bytes {
		if b < 0x80 || i == len(v.bytes)-1 {
			n++
		}
	}
	return n
}

// packed moves the elements of a packed list to data. at is the number of those before.
func (f form) packed(place string, d oip.Datatype, data *[]byte, at *int, list []byte) error {
	if f.kind != protowire.VarintType {
		if len(list)%f.size != 0 {
			return invalid(place, "malformed message: %d bytes of %s", len(list), d)
		}
		*at += len(list) / f.size
		*data = (*data)[copy(*data, list):]
		return nil
	}
	for len(list) > 0 {
		bits, n := protowire.ConsumeVarint(list)
		if n < 0 {
			return malformed(place, fmt.Sprintf("element %d: ", *at), n)
		}
		if err := f.put(place, d, data, *at, bits); err != nil {
			return err
		}
		list = list[n:]
		*at++
	}
	return nil
}

// put moves one element to data, whose rest is for the next ones.
func (f form) put(place string, d oip.Datatype, data *[]byte, at int, bits uint64) error {
	if x := int64(bits); f.low != f.high && (x < f.low || x > f.high) {
		return invalid(place, "element %d is %d, want %s", at, x, d)
	}
	for i := range f.size {
		(*data)[i] = byte(bits >> (8 * i))
	}
	*data = (*data)[f.size:]
	return nil
}
