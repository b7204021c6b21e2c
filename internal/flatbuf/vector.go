package flatbuf

import (
	"encoding/binary"
	"math"
)

// Vector is a vector inside the buffer. The zero Vector is empty. As with slices, an index outside
// 0 ≤ i < Len is a bug in the caller.
type Vector struct {
	r     *Reader
	name  string
	pos   int    // position of element 0
	data  []byte // the elements
	n     int
	width int
	depth uint8
}

// Len returns the number of elements.
func (v Vector) Len() int { return v.n }

// Uint8 returns element i of a vector of u8.
func (v Vector) Uint8(i int) uint8 { return v.data[i] }

// Bool returns element i of a vector of bool.
func (v Vector) Bool(i int) bool { return v.data[i] != 0 }

// Uint16 returns element i of a vector of u16.
func (v Vector) Uint16(i int) uint16 { return binary.LittleEndian.Uint16(v.data[i*2:]) }

// Uint32 returns element i of a vector of u32.
func (v Vector) Uint32(i int) uint32 { return binary.LittleEndian.Uint32(v.data[i*4:]) }

// Int32 returns element i of a vector of i32.
func (v Vector) Int32(i int) int32 { return int32(v.Uint32(i)) }

// Float32 returns element i of a vector of f32.
func (v Vector) Float32(i int) float32 { return math.Float32frombits(v.Uint32(i)) }

// Uint64 returns element i of a vector of u64.
func (v Vector) Uint64(i int) uint64 { return binary.LittleEndian.Uint64(v.data[i*8:]) }

// Int64 returns element i of a vector of i64.
func (v Vector) Int64(i int) int64 { return int64(v.Uint64(i)) }

// Float64 returns element i of a vector of f64.
func (v Vector) Float64(i int) float64 { return math.Float64frombits(v.Uint64(i)) }

// Failf records an error of element i with the given reason, unless there is one already. A
// negative i means the vector as a whole.
func (v Vector) Failf(reason error, i int, format string, args ...any) {
	if v.r != nil && v.r.fault == nil {
		v.r.fail(reason, v.pos+max(i, 0)*v.width, element(v.name, i), format, args...)
	}
}

// Charge subtracts the vector's bytes from the budget, before the caller converts its elements. If
// they exceed it, it records an error and returns false.
func (v Vector) Charge() bool { return v.n == 0 || v.r.charge(v.pos, len(v.data), v.name) }

// Slice copies a vector into a slice. get is the method expression for its element type, such as
// [Vector.Int32]. The result is nil for an empty vector.
func Slice[T any](v Vector, get func(Vector, int) T) []T {
	if v.n == 0 || !v.Charge() {
		return nil
	}
	out := make([]T, v.n)
	for i := range out {
		out[i] = get(v, i)
	}
	return out
}

// One reads the table of a field; it returns the zero T if the field is not stored.
func One[T any](t Table, id int, name string, read func(Table) T) T {
	var out T
	if sub := t.Table(id, name); sub.Exists() {
		out = read(sub)
		t.r.Within(name, -1)
	}
	return out
}

// List reads a vector of tables in order; it returns nil if the field is not stored or empty, and
// after an error.
func List[T any](t Table, id int, name string, read func(Table) T) []T {
	var out []T
	Each(t, id, name, func(sub Table) {
		if out == nil {
			out = make([]T, 0, t.Vector(id, name, 4).n)
		}
		out = append(out, read(sub))
	})
	if !t.OK() {
		return nil
	}
	return out
}

// Each calls read for the tables of a vector in order, until there is an error.
func Each(t Table, id int, name string, read func(Table)) {
	v := t.Vector(id, name, 4)
	if v.n > 0 && v.n > v.r.tables {
		v.Failf(ErrLimit, -1, "%d tables, want at most %d more within the limit and the file's size", v.n, v.r.tables)
		return
	}
	for i := range v.n {
		if sub := v.r.table(v.pos+4*i, v.depth, ""); sub.Exists() {
			read(sub)
		}
		if v.r.fault != nil {
			v.r.Within(name, i)
			return
		}
	}
}
