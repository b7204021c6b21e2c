package oip

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Response is the answer to a request.
type Response struct {
	Model, Version string
	ID             string
	Outputs        []Tensor
}

// Append appends the answer to dst: the JSON part, then the data of the binary outputs.
// headerLength is the size of the JSON part if there are any, else 0. Numbers without a JSON form
// are ErrNoJSON.
func (r *Response) Append(dst []byte) (body []byte, headerLength int, err error) {
	first := len(dst)
	dst = quote(append(dst, `{"model_name":`...), r.Model)
	dst = quote(append(dst, `,"model_version":`...), r.Version)
	if r.ID != "" {
		dst = quote(append(dst, `,"id":`...), r.ID)
	}
	return appendTensors(dst, first, `,"outputs":[`, "outputs", r.Outputs)
}

// Bytes of an element in JSON, with its separator.
const (
	jsonNumber = 26 // of a float64; other types have shorter ones
	jsonShort  = 17 // of a float32
	jsonByte   = 6  // of a byte of a string
)

// MaxBytes bounds the bytes of the tensor's elements in an answer.
func (t *Tensor) MaxBytes() (n int64) {
	each := int64(jsonByte)
	if t.Binary {
		each = 1
	}
	for _, s := range t.Texts {
		n += int64(len(s))*each + jsonByte
	}
	f := formatOf(t.Datatype)
	switch {
	case f == nil:
		return n
	case t.Binary:
		return n + int64(len(t.Data))
	}
	number := int64(jsonNumber)
	if size := f.dtype.Size(); size <= 4 {
		number = min(jsonShort, int64(size)*3+jsonByte)
	}
	return n + int64(len(t.Data)/f.dtype.Size())*number
}

// Append appends the request to dst like Response.Append.
func (r *Request) Append(dst []byte) (body []byte, headerLength int, err error) {
	first := len(dst)
	dst = quote(append(dst, `{"id":`...), r.ID)
	if dst, err = r.Parameters.append(dst, "parameters"); err != nil {
		return nil, 0, err
	}
	for i, o := range r.Outputs {
		if i == 0 {
			dst = append(dst, `,"outputs":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = quote(append(dst, `{"name":`...), o.Name)
		if dst, err = o.Parameters.append(dst, fmt.Sprintf("outputs[%d].parameters", i)); err != nil {
			return nil, 0, err
		}
		dst = append(dst, '}')
	}
	if len(r.Outputs) > 0 {
		dst = append(dst, ']')
	}
	return appendTensors(dst, first, `,"inputs":[`, "inputs", r.Inputs)
}

// append appends the parameters as a member of an object, sorted by name, or nothing if there are
// none. place is their path.
func (p Parameters) append(dst []byte, place string) ([]byte, error) {
	begin := `,"parameters":{`
	for _, name := range slices.Sorted(maps.Keys(p)) {
		dst = append(quote(append(dst, begin...), name), ':')
		begin = ","
		switch v := p[name].(type) {
		case nil:
			dst = append(dst, "null"...)
		case string:
			dst = quote(dst, v)
		case bool:
			dst = strconv.AppendBool(dst, v)
		case int64:
			dst = strconv.AppendInt(dst, v, 10)
		case uint64:
			dst = strconv.AppendUint(dst, v, 10)
		case float64:
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, &Error{ErrNoJSON, join(place, name), fmt.Errorf("%v", v)}
			}
			dst = strconv.AppendFloat(dst, v, 'e', -1, 64) // an exponent distinguishes it from integers
		default:
			return nil, &Error{ErrNoJSON, join(place, name), fmt.Errorf("%T, want a type of Parameters", v)}
		}
	}
	if len(p) > 0 {
		dst = append(dst, '}')
	}
	return dst, nil
}

// appendTensors completes the JSON part, which starts at first, with a list of tensors.
func appendTensors(dst []byte, first int, begin, name string, list []Tensor) (body []byte, headerLength int, err error) {
	dst = append(dst, begin...)
	binaries := false
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = list[i].append(dst); err != nil {
			return nil, 0, &Error{ErrNoJSON, fmt.Sprintf("%s[%d]", name, i), err}
		}
		binaries = binaries || list[i].Binary
	}
	dst = append(dst, `]}`...)
	if !binaries {
		return dst, 0, nil
	}
	headerLength = len(dst) - first
	for i := range list {
		if list[i].Binary {
			dst = list[i].AppendData(dst)
		}
	}
	return dst, headerLength, nil
}

func quote(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // invalid UTF-8 is replaced
	return dst
}

// append appends the JSON of an output.
func (t *Tensor) append(dst []byte) ([]byte, error) {
	dst = quote(append(dst, `{"name":`...), t.Name)
	dst = quote(append(dst, `,"datatype":`...), string(t.Datatype))
	dst = append(dst, `,"shape":[`...)
	for i, n := range t.Shape {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(n), 10)
	}
	dst = append(dst, ']')
	if t.Binary {
		dst = append(dst, `,"parameters":{"binary_data_size":`...)
		return append(strconv.AppendInt(dst, int64(t.DataSize()), 10), `}}`...), nil
	}
	dst, err := t.appendElements(append(dst, `,"data":[`...))
	return append(dst, `]}`...), err
}

func (t *Tensor) appendElements(dst []byte) ([]byte, error) {
	for i, text := range t.Texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = quote(dst, string(text))
	}
	if t.Datatype == Bytes {
		return dst, nil
	}
	f := formatOf(t.Datatype)
	if f == nil || f.print == nil {
		return dst, fmt.Errorf("%q: %s has no JSON form; ask for binary data", t.Name, t.Datatype)
	}
	size, ok := f.dtype.Size(), true
	for i := 0; i < len(t.Data); i += size {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, ok = f.print(dst, t.Data[i:][:size]); !ok {
			return dst, fmt.Errorf("%q: element %d is not finite and has no JSON form; ask for binary data", t.Name, i/size)
		}
	}
	return dst, nil
}

// DataSize returns the number of bytes that AppendData appends.
func (t *Tensor) DataSize() int {
	n := len(t.Data)
	for _, text := range t.Texts {
		n += 4 + len(text)
	}
	return n
}

// AppendData appends the binary form of the elements.
func (t *Tensor) AppendData(dst []byte) []byte {
	for _, text := range t.Texts {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(text)))
		dst = append(dst, text...)
	}
	return append(dst, t.Data...)
}

func join(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}
