package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/jsonerror"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// member is one member of a JSON object.
type member struct {
	name string
	text json.RawMessage
}

// jsonMembers returns the members of an object, in order; ok is false for other values.
func jsonMembers(text []byte) (list []member, ok bool, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	first, err := d.Token()
	if err != nil {
		return nil, false, plainJSON(err)
	}
	if first != json.Delim('{') {
		return nil, false, nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, true, plainJSON(err)
		}
		m := member{name: fmt.Sprint(name)}
		if err := d.Decode(&m.text); err != nil {
			return nil, true, plainJSON(err)
		}
		list = append(list, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, true, plainJSON(err)
	}
	return list, true, nil
}

// plainJSON wraps an error of reading JSON as an error of the file.
func plainJSON(err error) error {
	return fmt.Errorf("JSON: %w", jsonerror.Plain(err))
}

// numbers is a nested list of JSON numbers being read.
type numbers struct {
	decoder *json.Decoder
	dtype   tensor.DType
	sizes   []int // lengths of the first lists at each depth
	data    []byte
	limit   int64 // bytes of data
}

// jsonValue converts a JSON text to the value of an input.
func (r *Resolver) jsonValue(text []byte, slot etrun.ValueMeta) (tensor.Value, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if slot.Kind != tensor.KindTensor {
		var v any
		if err := d.Decode(&v); err != nil {
			return tensor.Value{}, plainJSON(err)
		}
		return jsonScalar(v, slot)
	}
	if !jsonTypes[slot.DType] {
		return tensor.Value{}, mismatch("JSON for elements of %v", slot.DType)
	}
	n := numbers{decoder: d, dtype: slot.DType, limit: r.Limit / 2} // growing doubles the memory
	if err := n.read(0); err != nil {
		return tensor.Value{}, err
	}
	if _, err := d.Token(); err != io.EOF {
		return tensor.Value{}, plainJSON(errors.New("text after the value"))
	}
	slot.Sizes, slot.DimOrder = n.sizes, nil
	if slot.Sizes == nil {
		slot.Sizes = []int{}
	}
	t, err := r.allocate(slot)
	if err != nil {
		return tensor.Value{}, err
	}
	copy(t.Data, n.data)
	return tensor.TensorValue(t), nil
}

// jsonTypes are the element types with a JSON representation.
var jsonTypes = map[tensor.DType]bool{
	tensor.Uint8: true, tensor.Int8: true, tensor.Int16: true, tensor.Int32: true, tensor.Int64: true, tensor.Bool: true,
	tensor.Float16: true, tensor.BFloat16: true, tensor.Float32: true, tensor.Float64: true,
}

// jsonScalar returns the value of a declared scalar.
func jsonScalar(v any, slot etrun.ValueMeta) (tensor.Value, error) {
	number, isNumber := v.(json.Number)
	switch slot.Kind {
	case tensor.None:
		if v == nil {
			return tensor.Value{}, nil
		}
	case tensor.KindInt:
		if i, err := number.Int64(); isNumber && err == nil {
			return tensor.IntValue(i), nil
		}
	case tensor.KindDouble:
		if d, err := number.Float64(); isNumber && err == nil {
			return tensor.DoubleValue(d), nil
		}
	case tensor.KindBool:
		if b, ok := v.(bool); ok {
			return tensor.BoolValue(b), nil
		}
	case tensor.KindString:
		if s, ok := v.(string); ok {
			return tensor.StringValue(s), nil
		}
	}
	return tensor.Value{}, mismatch("%.40s, want %s", fmt.Sprint(v), want(slot))
}

// read reads a value at a depth: a list of values of one shape, or a number.
func (n *numbers) read(depth int) error {
	token, err := n.decoder.Token()
	if err != nil {
		return plainJSON(err)
	}
	if token != json.Delim('[') {
		if depth != len(n.sizes) {
			return mismatch("JSON: a number in a list of lists")
		}
		return n.element(token)
	}
	if len(n.data) > 0 && depth >= len(n.sizes) || depth >= tensor.MaxRank {
		return mismatch("JSON: a list in a list of numbers, or more than %d levels", tensor.MaxRank)
	}
	first := depth == len(n.sizes)
	if first {
		n.sizes = append(n.sizes, 0)
	}
	count := 0
	for ; n.decoder.More(); count++ {
		if err := n.read(depth + 1); err != nil {
			return err
		}
	}
	if _, err := n.decoder.Token(); err != nil {
		return plainJSON(err)
	}
	if first {
		n.sizes[depth] = count
	}
	if count != n.sizes[depth] {
		return mismatch("JSON: lists of %d and of %d values at depth %d", n.sizes[depth], count, depth)
	}
	return nil
}

// element adds a number, which the type must be able to represent.
func (n *numbers) element(token json.Token) error {
	size := n.dtype.Size()
	if int64(len(n.data)+size) > n.limit {
		return &Error{Index: -1, Reason: ErrMemory, Err: fmt.Errorf("more than %d bytes of elements", n.limit)}
	}
	at := len(n.data)
	n.data = append(n.data, make([]byte, size)...)
	refuse := func() error {
		text, _ := json.Marshal(token) // as in the file
		if d, ok := token.(json.Delim); ok && d == '{' {
			text = []byte("an object")
		}
		return mismatch("JSON: element %d is %.40s, want %v", at/size, text, n.dtype)
	}
	switch v := token.(type) {
	case bool:
		if n.dtype != tensor.Bool {
			return refuse()
		}
		if v {
			n.data[at] = 1
		}
	case json.Number:
		if n.dtype.IsFloat() {
			f, err := v.Float64()
			if err != nil {
				return refuse()
			}
			tensor.Put(n.data[at:], n.dtype, f)
			return nil
		}
		i, err := strconv.ParseInt(v.String(), 10, 64)
		low, high := integerRange(n.dtype)
		if err != nil || i < low || i > high {
			return refuse()
		}
		tensor.Put(n.data[at:], n.dtype, i)
	default:
		return refuse()
	}
	return nil
}

// integerRange returns the range of an integer type, or of booleans.
func integerRange(d tensor.DType) (low, high int64) {
	switch d {
	case tensor.Bool:
		return 0, 1
	case tensor.Uint8:
		return 0, math.MaxUint8
	}
	bits := 8*d.Size() - 1
	return -1 << bits, 1<<bits - 1
}
