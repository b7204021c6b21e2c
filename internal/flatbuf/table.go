package flatbuf

import (
	"math"
	"unicode/utf8"
)

// Table is a table whose vtable has been checked. Fields are read by their id in the schema; names
// are only used for the paths of errors. The zero Table represents an absent one: all its fields
// have their defaults.
type Table struct {
	r      *Reader
	pos    int
	vtable int
	vsize  uint16 // size of the vtable
	depth  uint8
}

// table returns the table that the offset at pos refers to.
func (r *Reader) table(pos int, depth uint8, path string) Table {
	at, ok := r.follow(pos, path)
	if !ok {
		return Table{}
	}
	if depth >= maxDepth {
		r.fail(ErrLimit, at, path, "tables nested more than %d deep", maxDepth)
		return Table{}
	}
	if r.tables--; r.tables < 0 {
		r.fail(ErrLimit, at, path, "more tables than allowed, or than fit the file")
		return Table{}
	}
	return r.checkTable(at, depth+1, path)
}

// checkTable reads the vtable of the table at an offset. It ignores the size of the table in the
// vtable, because writers that share vtables, such as Python's, share them among tables of
// different sizes. Fields are checked against the buffer instead.
func (r *Reader) checkTable(at int, depth uint8, path string) Table {
	vt := int64(at) - int64(int32(r.u32(at)))
	if vt < 0 || vt+4 > int64(len(r.data)) {
		r.fail(ErrMalformed, at, path, "vtable at byte %d, the buffer has %d bytes", vt, len(r.data))
		return Table{}
	}
	v := int(vt)
	vsize := r.u16(v)
	if vsize < 4 || vsize%2 != 0 || v+vsize > len(r.data) {
		r.fail(ErrMalformed, v, path, "vtable of %d bytes, want an even number from 4 to %d", vsize, len(r.data)-v)
		return Table{}
	}
	return Table{r: r, pos: at, vtable: v, vsize: uint16(vsize), depth: depth}
}

// Exists reports whether the table is present.
func (t Table) Exists() bool { return t.r != nil }

// OK reports whether there has been no error in the whole buffer.
func (t Table) OK() bool { return t.r == nil || t.r.fault == nil }

// Has reports whether the field is stored.
func (t Table) Has(id int) bool { return t.place(id) != 0 }

// Slots returns the number of fields in the vtable, at most the number in the writer's schema.
func (t Table) Slots() int {
	if t.r == nil {
		return 0
	}
	return (int(t.vsize) - 4) / 2
}

// Within calls [Reader.Within] of the table's reader.
func (t Table) Within(name string, i int) {
	if t.r != nil {
		t.r.Within(name, i)
	}
}

// Need records an error unless the field is stored.
func (t Table) Need(id int, name string) {
	if t.r != nil && t.place(id) == 0 {
		t.r.fail(ErrMalformed, t.pos, name, "missing")
	}
}

// Failf records an error of the field with the given reason, unless there is one already. A
// negative id and an empty name mean the table itself.
func (t Table) Failf(reason error, id int, name, format string, args ...any) {
	if t.r != nil {
		t.r.fail(reason, t.pos+t.place(id), name, format, args...)
	}
}

// place returns the field's offset from the table's start, 0 if it is not stored.
func (t Table) place(id int) int {
	slot := 4 + 2*id
	if id < 0 || slot+2 > int(t.vsize) {
		return 0
	}
	return t.r.u16(t.vtable + slot)
}

// field returns the position in the buffer of a stored field of n bytes, or 0.
func (t Table) field(id, n int, name string) int {
	off := t.place(id)
	if off == 0 || t.r.fault != nil {
		return 0
	}
	if off < 4 || t.pos+off+n > len(t.r.data) {
		t.r.fail(ErrMalformed, t.vtable+4+2*id, name, "field of %d bytes at %d of a table, want 4 to %d", n, off, len(t.r.data)-t.pos-n)
		return 0
	}
	return t.pos + off
}

// Uint8 reads a u8 field, def if it is not stored.
func (t Table) Uint8(id int, name string, def uint8) uint8 {
	if p := t.field(id, 1, name); p != 0 {
		return t.r.data[p]
	}
	return def
}

// Bool reads a bool field; any nonzero byte is true.
func (t Table) Bool(id int, name string, def bool) bool {
	if p := t.field(id, 1, name); p != 0 {
		return t.r.data[p] != 0
	}
	return def
}

// Int8 reads an i8 field.
func (t Table) Int8(id int, name string, def int8) int8 {
	return int8(t.Uint8(id, name, uint8(def)))
}

// Uint16 reads a u16 field.
func (t Table) Uint16(id int, name string, def uint16) uint16 {
	if p := t.field(id, 2, name); p != 0 {
		return uint16(t.r.u16(p))
	}
	return def
}

// Int16 reads an i16 field.
func (t Table) Int16(id int, name string, def int16) int16 {
	return int16(t.Uint16(id, name, uint16(def)))
}

// Uint32 reads a u32 field.
func (t Table) Uint32(id int, name string, def uint32) uint32 {
	if p := t.field(id, 4, name); p != 0 {
		return t.r.u32(p)
	}
	return def
}

// Int32 reads an i32 field.
func (t Table) Int32(id int, name string, def int32) int32 {
	return int32(t.Uint32(id, name, uint32(def)))
}

// Float32 reads an f32 field.
func (t Table) Float32(id int, name string, def float32) float32 {
	return math.Float32frombits(t.Uint32(id, name, math.Float32bits(def)))
}

// Uint64 reads a u64 field.
func (t Table) Uint64(id int, name string, def uint64) uint64 {
	if p := t.field(id, 8, name); p != 0 {
		return t.r.u64(p)
	}
	return def
}

// Int64 reads an i64 field.
func (t Table) Int64(id int, name string, def int64) int64 {
	return int64(t.Uint64(id, name, uint64(def)))
}

// Float64 reads an f64 field.
func (t Table) Float64(id int, name string, def float64) float64 {
	return math.Float64frombits(t.Uint64(id, name, math.Float64bits(def)))
}

// Table returns a field's table, the zero Table if it is not stored. [One] also adds the field's
// name to the path of errors.
func (t Table) Table(id int, name string) Table {
	if p := t.field(id, 4, name); p != 0 {
		return t.r.table(p, t.depth, name)
	}
	return Table{}
}

// Union reads a union: the tag of field id, named name_type, and the table of field id+1. Tag 0
// (NONE) is returned with the zero Table; the caller decides whether it is allowed. A tag without a
// table, or a table without a tag, is an error.
func (t Table) Union(id int, name string) (tag uint8, payload Table) {
	tag = t.Uint8(id, name, 0)
	payload = t.Table(id+1, name)
	switch {
	case !t.OK():
		return 0, Table{}
	case tag != 0 && !payload.Exists():
		t.Failf(ErrMalformed, id, name+"_type", "union type %d without a value", tag)
	case tag == 0 && payload.Exists():
		t.Failf(ErrMalformed, id, name+"_type", "union type 0 (NONE) with a value")
	}
	return tag, payload
}

// String reads a string and checks its terminating zero and its UTF-8 encoding; "" if it is not
// stored.
func (t Table) String(id int, name string) string {
	v := t.Vector(id, name, 1)
	if v.n == 0 {
		return ""
	}
	if end := v.pos + v.n; end >= len(t.r.data) || t.r.data[end] != 0 {
		t.r.fail(ErrMalformed, v.pos, name, "string of %d bytes without its terminating zero", v.n)
		return ""
	}
	if !v.Charge() {
		return ""
	}
	if !utf8.Valid(v.data) {
		t.r.fail(ErrMalformed, v.pos, name, "invalid UTF-8 in %.60q", v.data)
		return ""
	}
	return string(v.data)
}

// Bytes returns a vector of bytes that shares the buffer's memory; nil if it is not stored.
func (t Table) Bytes(id int, name string) []byte {
	return t.Vector(id, name, 1).data
}

// Vector returns a vector of elements of the given width in bytes, empty if it is not stored.
func (t Table) Vector(id int, name string, width int) Vector {
	p := t.field(id, 4, name)
	if p == 0 {
		return Vector{}
	}
	at, ok := t.r.follow(p, name)
	if !ok {
		return Vector{}
	}
	n := uint64(t.r.u32(at))
	left := len(t.r.data) - at - 4
	if n > uint64(left/width) {
		t.r.fail(ErrMalformed, at, name, "%d elements of %d bytes, %d bytes left", n, width, left)
		return Vector{}
	}
	size := int(n) * width
	return Vector{r: t.r, name: name, pos: at + 4, data: t.r.data[at+4:][:size:size], n: int(n), width: width, depth: t.depth}
}

// Forget returns the first error, and forgets it: the caller may read other tables. name and i are those
// of the table's vector. The budget of tables and bytes stays as it is.
func (t Table) Forget(name string, i int) error {
	t.r.Within(name, i)
	err := t.r.Err()
	t.r.fault = nil
	return err
}

// Root returns the root table.
func (r *Reader) Root() Table {
	if len(r.data) < HeaderSize {
		r.fail(ErrMalformed, 0, "root", "%d bytes, a FlatBuffer has at least %d", len(r.data), HeaderSize)
		return Table{}
	}
	return r.table(0, 0, "root")
}
