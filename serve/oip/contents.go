package oip

import (
	"bytes"
)

// Contents reads the tensors of one request whose form is not JSON, within its limits.
type Contents struct{ p *parser }

// NewContents returns a reader of tensors.
func NewContents(limits Limits) *Contents { return &Contents{inputParser(nil, limits, "")} }

// Bytes sets the elements of t to data: little-endian elements, or strings, each after its length in four bytes. place is the
// place of errors, which are *Error.
func (c *Contents) Bytes(place string, t *Tensor, data []byte) error {
	if err := t.check(place); err != nil {
		return err
	}
	t.Binary = true
	return c.p.binaryTensor(place, t, int64(len(data)), bytes.NewReader(data))
}

// Alloc allocates the n elements of t, of a datatype of fixed size. n must be the number of elements of its shape.
func (c *Contents) Alloc(place string, t *Tensor, n int) error {
	if err := t.check(place); err != nil {
		return err
	}
	f := formatOf(t.Datatype)
	if f == nil {
		return invalid(place, "tensor %.100q of %s, want strings", t.Name, t.Datatype)
	}
	size := f.dtype.Size()
	if err := c.count(place, t, n, size); err != nil {
		return err
	}
	t.Data = c.p.limits.Alloc(n * size)
	return nil
}

// Strings makes room for n elements of t, of BYTES, which have a total of size bytes. n must be the number of elements of its
// shape.
func (c *Contents) Strings(place string, t *Tensor, n int, size int64) error {
	if err := t.check(place); err != nil {
		return err
	}
	if err := c.count(place, t, n, textOverhead); err != nil {
		return err
	}
	t.Texts = make([][]byte, 0, n)
	return c.p.charge(place, size)
}

// count returns an error unless a shape has n elements, of size bytes, within the limits.
func (c *Contents) count(place string, t *Tensor, n, size int) error {
	want, err := c.p.count(place, t, size)
	if err == nil && n != want {
		return invalid(place, "%d elements, %s %v has %d", n, t.Datatype, t.Shape, want)
	}
	return err
}

// check returns an error if the tensor has no name, or an unknown datatype.
func (t *Tensor) check(place string) error {
	switch {
	case t.Name == "":
		return invalid(place, "no name")
	case t.Datatype != Bytes && formatOf(t.Datatype) == nil:
		return invalid(place, "unknown datatype %.40q", t.Datatype)
	}
	return nil
}
