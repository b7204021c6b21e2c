package oip

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// textOverhead is the size charged for an element of BYTES in addition to its bytes.
const textOverhead = 32

// draft is an input being read: its members may come in any order.
type draft struct {
	Tensor
	parameters Parameters
	shaped     bool
	has        bool   // data is present
	raw        []byte // data that preceded the shape or the datatype, with padding
}

// tensor reads an input. size is that of its binary data, -1 for JSON data.
func (p *parser) tensor(place string) (t Tensor, size int64, err error) {
	d := &draft{}
	err = p.object(place, field{
		"name":       func(place string) (err error) { d.Name, err = p.text(place); return err },
		"datatype":   func(place string) error { return p.datatype(place, d) },
		"shape":      func(place string) error { return p.shape(place, d) },
		"parameters": func(place string) (err error) { d.parameters, err = p.parameters(place); return err },
		"data":       func(place string) error { return p.data(place, d) },
	})
	if err != nil {
		return t, 0, err
	}
	if size, err = p.finish(place, d); err != nil {
		return t, 0, err
	}
	return d.Tensor, size, nil
}

func (p *parser) datatype(place string, d *draft) error {
	name, err := p.text(place)
	if err != nil {
		return err
	}
	if d.Datatype = Datatype(name); d.Datatype != Bytes && formatOf(d.Datatype) == nil {
		return invalid(place, "unknown datatype %.40q", name)
	}
	return nil
}

func (p *parser) shape(place string, d *draft) error {
	if err := p.begin(place, '[', "an array"); err != nil {
		return err
	}
	d.Shape, d.shaped = []int{}, true
	for p.dec.PeekKind() != ']' {
		text, err := p.dec.ReadValue()
		if err != nil {
			return p.syntax(place, err)
		}
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil || n < 0 {
			return invalid(place, "%.40s, want sizes of at least 0", text)
		}
		if n > math.MaxInt {
			return invalid(place, "%d has too many elements", n)
		}
		if len(d.Shape) == tensor.MaxRank {
			return invalid(place, "more than %d dimensions", tensor.MaxRank)
		}
		d.Shape = append(d.Shape, int(n))
	}
	return p.end(place)
}

// data reads elements, or keeps their text until shape and datatype are known.
func (p *parser) data(place string, d *draft) error {
	d.has = true
	known := d.shaped && d.Datatype != ""
	switch {
	case known && d.Datatype == Bytes:
		return p.texts(place, d)
	case known && p.json.open(p.dec.UnreadBuffer()):
		if err := p.elements(place, d, p.json); err != nil {
			return err
		}
		p.json.close()
		return p.syntax(place, p.dec.SkipValue())
	}
	raw, err := p.dec.ReadValue()
	if err != nil {
		return p.syntax(place, err)
	}
	d.raw = slices.Concat(raw, make([]byte, padding))
	if !known {
		return nil
	}
	return p.later(place, d)
}

// later reads the elements from their text.
func (p *parser) later(place string, d *draft) error {
	n := len(d.raw) - padding
	q := *p
	defer func() { p.left, d.raw = q.left, nil }()
	if d.Datatype == Bytes {
		q.dec = jsontext.NewDecoder(bytes.NewReader(d.raw[:n]))
		return q.texts(place, d)
	}
	if d.raw[0] != '[' {
		return invalid(place, "%s, want an array", kindOf(jsontext.Value(d.raw[:n]).Kind()))
	}
	from := sourceOf(d.raw, n)
	from.at = 1
	return q.elements(place, d, from)
}

// finish checks the members of an input against each other.
func (p *parser) finish(place string, d *draft) (size int64, err error) {
	size, sized, err := d.parameters.Int("binary_data_size")
	switch {
	case err != nil:
		return 0, &Error{ErrInvalid, place, err}
	case d.Name == "":
		return 0, invalid(place, "no name")
	case d.Datatype == "" || !d.shaped:
		return 0, invalid(place, "tensor %.100q has no datatype or no shape", d.Name)
	case d.parameters["shared_memory_region"] != nil:
		return 0, invalid(place, "tensor %.100q: shared memory, want data in the request", d.Name)
	case sized && d.has:
		return 0, invalid(place, "tensor %.100q has data and binary_data_size, want one of them", d.Name)
	case sized && !p.binary:
		return 0, invalid(place, "tensor %.100q has binary_data_size without the header %s", d.Name, HeaderLength)
	case sized:
		d.Binary = true
		return size, nil
	case !d.has:
		return 0, invalid(place, "tensor %.100q has no data", d.Name)
	case d.raw == nil:
		return -1, nil
	}
	return -1, p.later(place+".data", d)
}

// charge charges bytes of tensors.
func (p *parser) charge(place string, n int64) error {
	if n > p.left {
		return &Error{ErrTooLarge, place, fmt.Errorf("%d bytes of tensors, %d left of the limit of %d", n, p.left, p.limits.Tensors)}
	}
	p.left -= n
	return nil
}

// count returns the number of elements of a shape, within the limits of the request.
func (p *parser) count(place string, d *Tensor, size int) (n int, err error) {
	n, ok := tensor.Product(d.Shape)
	if !ok || slices.Contains(d.Shape, 0) && overflows(d.Shape) {
		return 0, invalid(place, "shape %v has too many elements", d.Shape)
	}
	return n, p.charge(place, int64(n)*int64(size))
}

// overflows reports whether the product of the nonzero sizes exceeds the limit of tensors.
func overflows(shape []int) bool {
	product := 1
	for _, n := range shape {
		if n > 0 && product > math.MaxInt32/n {
			return true
		}
		product *= max(n, 1)
	}
	return false
}

// texts reads the array of strings, flat or nested like the shape.
func (p *parser) texts(place string, d *draft) error {
	n, err := p.count(place, &d.Tensor, textOverhead)
	if err != nil {
		return err
	}
	return p.grid(place, d.Shape, n, func(int) error { return p.addText(place, d) })
}

// elements reads the array of elements that follows in a source, flat or nested like the shape.
func (p *parser) elements(place string, d *draft, from *source) error {
	f := formatOf(d.Datatype)
	if f.parse == nil {
		return invalid(place, "%s has no JSON form; send binary data", d.Datatype)
	}
	size := f.dtype.Size()
	n, err := p.count(place, &d.Tensor, size)
	if err != nil {
		return err
	}
	if int64(n) > p.limits.Body/2 { // each has a digit, and a comma or a bracket
		return invalid(place, "fewer than the %d elements of shape %v: the body has %d bytes", n, d.Shape, p.limits.Body)
	}
	d.Data = p.limits.Alloc(n * size)
	s := scan{source: from, place: place, as: f, size: size, data: d.Data}
	return s.read(d.Shape)
}

func (p *parser) addText(place string, d *draft) error {
	if p.dec.PeekKind() != '"' {
		return invalid(place, "element %d is not a string", len(d.Texts))
	}
	token, err := p.dec.ReadToken()
	if err != nil {
		return p.syntax(place, err)
	}
	text := token.String()
	d.Texts = append(d.Texts, []byte(text))
	return p.charge(place, int64(len(text)))
}

// grid reads n elements, of a flat array or of arrays nested like the shape.
func (p *parser) grid(place string, shape []int, n int, read func(i int) error) error {
	if err := p.begin(place, '[', "an array"); err != nil {
		return err
	}
	if p.dec.PeekKind() != '[' || len(shape) < 2 {
		return p.row(place, 0, n, n, read)
	}
	return p.nested(place, shape, new(int), n, read)
}

// nested reads the inside of an array of the outermost dimension of shape.
func (p *parser) nested(place string, shape []int, next *int, n int, read func(i int) error) error {
	if len(shape) == 1 {
		first := *next
		*next += shape[0]
		return p.row(place, first, shape[0], n, read)
	}
	i := 0
	for ; p.dec.PeekKind() != ']'; i++ {
		if i == shape[0] {
			return invalid(place, "more than %d arrays in a dimension of that size", i)
		}
		if err := p.begin(place, '[', "an array"); err != nil {
			return err
		}
		if err := p.nested(place, shape[1:], next, n, read); err != nil {
			return err
		}
	}
	if i < shape[0] {
		return invalid(place, "%d arrays in a dimension of %d", i, shape[0])
	}
	return p.end(place)
}

// row reads elements to the end of an array.
func (p *parser) row(place string, first, length, n int, read func(i int) error) error {
	i := 0
	for ; p.dec.PeekKind() != ']'; i++ {
		if i == length || first+i >= n {
			return invalid(place, "more than the %d elements of the shape", length)
		}
		if err := read(first + i); err != nil {
			return err
		}
	}
	if i < length {
		return invalid(place, "%d elements, want %d", i, length)
	}
	return p.end(place)
}

// readBinary reads the tensors after the JSON part, in order.
func (p *parser) readBinary(list []Tensor) (err error) {
	defer func() { err = p.body.explain(err) }()
	for i, size := range p.sizes {
		if size < 0 {
			continue
		}
		place := fmt.Sprintf("%s[%d]", p.tensors, i)
		if err := p.binaryTensor(place, &list[i], size, p.body); err != nil {
			return err
		}
	}
	if !p.binary {
		return nil
	}
	return p.atEnd()
}

// atEnd returns an error unless the body has ended.
func (p *parser) atEnd() error {
	if n, _ := io.ReadFull(p.body, make([]byte, 1)); n > 0 {
		return invalid("", "extra bytes after the last tensor")
	}
	return nil
}

func (p *parser) binaryTensor(place string, t *Tensor, size int64, body io.Reader) error {
	if t.Datatype == Bytes {
		return p.binaryTexts(place, t, size, body)
	}
	f := formatOf(t.Datatype)
	n, err := p.count(place, t, f.dtype.Size())
	if err != nil {
		return err
	}
	if want := int64(n) * int64(f.dtype.Size()); size != want {
		return invalid(place, "%d bytes of %s %v, want %d", size, t.Datatype, t.Shape, want)
	}
	t.Data, err = readBytes(place, size, body, p.limits.Alloc)
	return err
}

// readBytes reads the binary data of a tensor. Nothing is allocated for more bytes than the body can have.
func readBytes(place string, size int64, body io.Reader, alloc func(n int) []byte) (data []byte, err error) {
	if b, ok := body.(*bounded); ok && size > b.left {
		got, _ := io.Copy(io.Discard, body) // the body's own error explains this one
		return nil, invalid(place, "%d bytes of binary data, want %d", got, size)
	}
	data = alloc(int(size))
	if got, err := io.ReadFull(body, data); err != nil {
		return nil, invalid(place, "%d bytes of binary data, want %d", got, size)
	}
	return data, nil
}

func makeBytes(n int) []byte { return make([]byte, n) }

// binaryText reads one string.
func (p *parser) binaryText(place string, t *Tensor, size int64) error {
	if err := p.charge(place, size+textOverhead); err != nil {
		return err
	}
	text, err := readBytes(place, size, p.body, makeBytes)
	t.Texts = [][]byte{text}
	return err
}

// binaryTexts reads strings, each after its length in four bytes.
func (p *parser) binaryTexts(place string, t *Tensor, size int64, body io.Reader) error {
	n, err := p.count(place, t, textOverhead)
	if err != nil {
		return err
	}
	if err := p.charge(place, size); err != nil {
		return err
	}
	all, err := readBytes(place, size, body, makeBytes)
	if err != nil {
		return err
	}
	for range n {
		if len(all) < 4 || uint64(binary.LittleEndian.Uint32(all)) > uint64(len(all)-4) {
			return invalid(place, "string %d exceeds the binary data", len(t.Texts))
		}
		length := int(binary.LittleEndian.Uint32(all))
		t.Texts = append(t.Texts, all[4:4+length])
		all = all[4+length:]
	}
	if len(all) > 0 {
		return invalid(place, "%d extra bytes after the last string", len(all))
	}
	return nil
}
