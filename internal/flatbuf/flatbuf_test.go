package flatbuf_test

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/etrun-go/etrun/internal/flatbuf"
)

// small returns a buffer of one table: a number (field 0) and a name (field 1).
func small() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 16) // 0: offset of the root
	b = append(b, "TEST"...)
	for _, x := range []uint16{8, 12, 4, 8} { // 8: vtable
		b = binary.LittleEndian.AppendUint16(b, x)
	}
	for _, x := range []uint32{8, 7, 4} { // 16: table: vtable, number, offset of the name
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	b = binary.LittleEndian.AppendUint32(b, 3) // 28: name
	return append(b, "abc\x00"...)
}

func put16(b []byte, at int, x uint16) []byte {
	binary.LittleEndian.PutUint16(b[at:], x)
	return b
}

func put32(b []byte, at int, x uint32) []byte {
	binary.LittleEndian.PutUint32(b[at:], x)
	return b
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "malformed flatbuffer at byte 0, root: 0 bytes, a FlatBuffer has at least 8"},
		{"cut in the identifier", small()[:7], "malformed flatbuffer at byte 0, root: 7 bytes, a FlatBuffer has at least 8"},
		{"root at itself", put32(small(), 0, 0), "malformed flatbuffer at byte 0, root: offset 0, which leads to itself"},
		{"root outside", put32(small(), 0, 33), "malformed flatbuffer at byte 0, root: offset 33 leaves the buffer of 36 bytes"},
		{"root far outside", put32(small(), 0, 0xffff_ffff), "malformed flatbuffer at byte 0, root: offset 4294967295 leaves the buffer of 36 bytes"},
		{"vtable before the buffer", put32(small(), 16, 17), "malformed flatbuffer at byte 16, root: vtable at byte -1, the buffer has 36 bytes"},
		{"vtable behind the buffer", put32(small(), 16, ^uint32(16)), "malformed flatbuffer at byte 16, root: vtable at byte 33, the buffer has 36 bytes"},
		{"vtable too short", put16(small(), 8, 2), "malformed flatbuffer at byte 8, root: vtable of 2 bytes, want an even number from 4 to 28"},
		{"vtable odd", put16(small(), 8, 7), "malformed flatbuffer at byte 8, root: vtable of 7 bytes, want an even number from 4 to 28"},
		{"vtable too long", put16(small(), 8, 30), "malformed flatbuffer at byte 8, root: vtable of 30 bytes, want an even number from 4 to 28"},
		{"field over the table's own head", put16(small(), 12, 3), "malformed flatbuffer at byte 12, number: field of 4 bytes at 3 of a table, want 4 to 16"},
		{"field outside", put16(small(), 12, 17), "malformed flatbuffer at byte 12, number: field of 4 bytes at 17 of a table, want 4 to 16"},
		{"name at itself", put32(small(), 24, 0), "malformed flatbuffer at byte 24, name: offset 0, which leads to itself"},
		{"name outside", put32(small(), 24, 9), "malformed flatbuffer at byte 24, name: offset 9 leaves the buffer of 36 bytes"},
		{"name too long", put32(small(), 28, 5), "malformed flatbuffer at byte 28, name: 5 elements of 1 bytes, 4 bytes left"},
		{"name of 4 GiB", put32(small(), 28, 0xffff_ffff), "malformed flatbuffer at byte 28, name: 4294967295 elements of 1 bytes, 4 bytes left"},
		{"name without zero at the end of the buffer", put32(small(), 28, 4), "malformed flatbuffer at byte 32, name: string of 4 bytes without its terminating zero"},
		{"name without zero", put32(small(), 28, 2), "malformed flatbuffer at byte 32, name: string of 2 bytes without its terminating zero"},
		{"name not UTF-8", put16(small(), 33, 0xfeff), `malformed flatbuffer at byte 32, name: invalid UTF-8 in "a\xff\xfe"`},
	} {
		r := flatbuf.New(c.data, 0, 0)
		root := r.Root()
		number, name := root.Int32(0, "number", 0), root.String(1, "name")
		if err := r.Err(); err == nil || err.Error() != c.want {
			t.Errorf("%s: number %d, name %q\n got %v\nwant %s", c.name, number, name, err, c.want)
		}
		if !errors.Is(r.Err(), flatbuf.ErrMalformed) {
			t.Errorf("%s: reason of %v, want ErrMalformed", c.name, r.Err())
		}
	}
}

func TestBase(t *testing.T) {
	r := flatbuf.New(put32(small(), 24, 0), 1000, 0)
	r.Root().String(1, "name")
	if e, ok := errors.AsType[*flatbuf.Error](r.Err()); !ok || e.Offset != 1024 {
		t.Errorf("%v, want an offset of 1024", r.Err())
	}
}

// TestFirstFault continues reading after an error.
func TestFirstFault(t *testing.T) {
	r := flatbuf.New(put16(small(), 12, 3), 0, 0)
	root := r.Root()
	root.Int32(0, "number", 0)
	root.Failf(flatbuf.ErrLimit, 1, "name", "a later fault")
	if got := root.String(1, "name"); got != "" {
		t.Errorf("name %q behind a fault, want none", got)
	}
	if e, ok := errors.AsType[*flatbuf.Error](r.Err()); !ok || e.Path != "number" {
		t.Errorf("%v, want the fault of number", r.Err())
	}
}

// everything returns a table with a field of each type, and a nested table with the defaults of all
// fields.
func everything() []byte {
	b := flatbuffers.NewBuilder(0)
	sub := func(x int32) flatbuffers.UOffsetT {
		b.StartObject(1)
		b.PrependInt32Slot(0, x, 0)
		return b.EndObject()
	}
	name := b.CreateString("día")
	raw := b.CreateByteVector([]byte{1, 2, 3})
	list := b.CreateVectorOfTables([]flatbuffers.UOffsetT{sub(10), sub(20)})
	b.StartVector(8, 2, 8)
	b.PrependFloat64(math.Inf(-1))
	b.PrependFloat64(0.5)
	doubles := b.EndVector(2)
	member := sub(30)
	b.StartObject(20)
	b.PrependUint8Slot(0, 200, 0)
	b.PrependInt8Slot(1, -100, 0)
	b.PrependBoolSlot(2, true, false)
	b.PrependUint16Slot(3, 60000, 0)
	b.PrependInt16Slot(4, -30000, 0)
	b.PrependUint32Slot(5, 1<<31, 0)
	b.PrependInt32Slot(6, -1<<31, 0)
	b.PrependUint64Slot(7, 1<<63, 0)
	b.PrependInt64Slot(8, -1<<63, 0)
	b.PrependFloat32Slot(9, 1.5, 0)
	b.PrependFloat64Slot(10, -2.5, 0)
	b.PrependUOffsetTSlot(11, name, 0)
	b.PrependUOffsetTSlot(12, raw, 0)
	b.PrependUOffsetTSlot(13, list, 0)
	b.PrependUOffsetTSlot(14, doubles, 0)
	b.PrependUint8Slot(15, 3, 0)
	b.PrependUOffsetTSlot(16, member, 0)
	b.Finish(b.EndObject())
	return b.FinishedBytes()
}

func TestRead(t *testing.T) {
	r := flatbuf.New(everything(), 0, 0)
	x := r.Root()
	number := func(t flatbuf.Table) int32 { return t.Int32(0, "x", 0) }
	tag, member := x.Union(15, "u")
	list := flatbuf.List(x, 13, "list", number)
	for i, ok := range []bool{
		x.Uint8(0, "", 0) == 200, x.Int8(1, "", 0) == -100, x.Bool(2, "", false), x.Uint16(3, "", 0) == 60000, x.Int16(4, "", 0) == -30000,
		x.Uint32(5, "", 0) == 1<<31, x.Int32(6, "", 0) == -1<<31, x.Uint64(7, "", 0) == 1<<63, x.Int64(8, "", 0) == -1<<63,
		x.Float32(9, "", 0) == 1.5, x.Float64(10, "", 0) == -2.5, x.String(11, "") == "día", slices.Equal(x.Bytes(12, ""), []byte{1, 2, 3}),
		slices.Equal(list, []int32{10, 20}),
		slices.Equal(flatbuf.Slice(x.Vector(14, "", 8), flatbuf.Vector.Float64), []float64{0.5, math.Inf(-1)}),
		tag == 3, number(member) == 30,
	} {
		if !ok {
			t.Errorf("field %d: another value than was written", i)
		}
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}

// TestDefaults reads fields that are not stored, and an absent table.
func TestDefaults(t *testing.T) {
	r := flatbuf.New(everything(), 0, 0)
	for name, x := range map[string]flatbuf.Table{"stored table": r.Root(), "absent table": {}} {
		tag, member := x.Union(18, "")
		for i, ok := range []bool{
			x.Uint8(17, "", 9) == 9, x.Int8(17, "", -9) == -9, x.Bool(17, "", true), x.Uint16(17, "", 9) == 9, x.Int16(17, "", -9) == -9,
			x.Uint32(17, "", 9) == 9, x.Int32(17, "", -9) == -9, x.Uint64(17, "", 9) == 9, x.Int64(17, "", -9) == -9,
			math.IsInf(float64(x.Float32(17, "", float32(math.Inf(-1)))), -1), x.Float64(17, "", 9) == 9,
			x.String(17, "") == "", x.Bytes(17, "") == nil, x.Vector(17, "", 4).Len() == 0, !x.Has(17), !x.Has(1000),
			flatbuf.List(x, 17, "", func(flatbuf.Table) int { return 1 }) == nil,
			flatbuf.One(x, 17, "", func(flatbuf.Table) int { return 1 }) == 0,
			!x.Table(17, "").Exists(), tag == 0, !member.Exists(),
		} {
			if !ok {
				t.Errorf("%s, read %d: not the default", name, i)
			}
		}
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}

func TestPaths(t *testing.T) {
	for _, c := range []struct {
		want string
		read func(flatbuf.Table)
	}{
		{"list[1].x", func(x flatbuf.Table) {
			flatbuf.List(x, 13, "list", func(t flatbuf.Table) int {
				if t.Int32(0, "x", 0) == 20 {
					t.Failf(flatbuf.ErrMalformed, 0, "x", "wrong")
				}
				return 0
			})
		}},
		{"member.x", func(x flatbuf.Table) {
			flatbuf.One(x, 16, "member", func(t flatbuf.Table) int {
				t.Failf(flatbuf.ErrMalformed, 0, "x", "wrong")
				return 0
			})
		}},
		{"doubles[1]", func(x flatbuf.Table) { x.Vector(14, "doubles", 8).Failf(flatbuf.ErrMalformed, 1, "wrong") }},
		{"doubles", func(x flatbuf.Table) { x.Vector(14, "doubles", 8).Failf(flatbuf.ErrMalformed, -1, "wrong") }},
		{"absent", func(x flatbuf.Table) { x.Need(17, "absent") }},
		{"u_type", func(x flatbuf.Table) { x.Union(16, "u") }},
	} {
		r := flatbuf.New(everything(), 0, 0)
		c.read(r.Root())
		if e, ok := errors.AsType[*flatbuf.Error](r.Err()); !ok || e.Path != c.want {
			t.Errorf("%v, want path %s", r.Err(), c.want)
		}
	}
}

// nested returns a chain of tables, each the field 0 of the previous one.
func nested(n int) []byte {
	b := flatbuffers.NewBuilder(0)
	var inner flatbuffers.UOffsetT
	for range n {
		b.StartObject(1)
		b.PrependUOffsetTSlot(0, inner, 0)
		inner = b.EndObject()
	}
	b.Finish(inner)
	return b.FinishedBytes()
}

func TestDepth(t *testing.T) {
	for n, fine := range map[int]bool{64: true, 65: false} {
		r := flatbuf.New(nested(n), 0, 0)
		for x := r.Root(); x.Exists(); x = x.Table(0, "in") {
		}
		if err := r.Err(); (err == nil) != fine || !fine && !errors.Is(err, flatbuf.ErrLimit) {
			t.Errorf("%d tables deep: %v", n, err)
		}
	}
}

// fan returns a root with n references to a table with n references to one leaf, whose field 1 is a
// string of n bytes.
func fan(n int) []byte {
	b := flatbuffers.NewBuilder(0)
	name := b.CreateString(strings.Repeat("x", n))
	table := func(list flatbuffers.UOffsetT) flatbuffers.UOffsetT {
		b.StartObject(2)
		b.PrependUOffsetTSlot(0, list, 0)
		b.PrependUOffsetTSlot(1, name, 0)
		return b.EndObject()
	}
	at := table(0)
	for range 2 {
		list := make([]flatbuffers.UOffsetT, n)
		for i := range list {
			list[i] = at
		}
		at = table(b.CreateVectorOfTables(list))
	}
	b.Finish(at)
	return b.FinishedBytes()
}

// TestSharing follows shared references: the work is proportional to the size of the file.
func TestSharing(t *testing.T) {
	const n = 3000
	data := fan(n)
	for name, strings := range map[string]bool{"tables": false, "strings": true} {
		r, visits := flatbuf.New(data, 0, 0), 0
		var read func(x flatbuf.Table) struct{}
		read = func(x flatbuf.Table) struct{} {
			visits++
			if strings {
				x.String(1, "name")
			}
			flatbuf.List(x, 0, "list", read)
			return struct{}{}
		}
		read(r.Root())
		if err := r.Err(); !errors.Is(err, flatbuf.ErrLimit) || visits > len(data) {
			t.Errorf("%s: %d visits in %d bytes, %v, want ErrLimit", name, visits, len(data), err)
		}
	}
}

func TestMaxTables(t *testing.T) {
	for most, fine := range map[int]bool{4: true, 3: false} {
		r := flatbuf.New(everything(), 0, most)
		flatbuf.List(r.Root(), 13, "list", func(t flatbuf.Table) int32 { return t.Int32(0, "x", 0) })
		r.Root()
		if err := r.Err(); (err == nil) != fine || !fine && !errors.Is(err, flatbuf.ErrLimit) {
			t.Errorf("at most %d tables, %v", most, err)
		}
	}
}

// TestAllocs reads scalars and tables: without an error nothing is allocated.
func TestAllocs(t *testing.T) {
	data := everything()
	r := flatbuf.New(data, 0, 0)
	x := r.Root()
	got := testing.AllocsPerRun(100, func() {
		v := x.Vector(14, "doubles", 8)
		_, member := x.Union(15, "u")
		if x.Int64(8, "i", 0) == 0 || v.Float64(0) == 0 || member.Int32(0, "x", 0) == 0 || x.Bytes(12, "raw") == nil {
			t.Error("zero values")
		}
	})
	if got != 0 || r.Err() != nil {
		t.Errorf("%v allocations, %v, want none", got, r.Err())
	}
}

// FuzzReader follows everything that looks like a reference.
func FuzzReader(f *testing.F) {
	f.Add(small())
	f.Add(everything())
	f.Add(nested(70))
	f.Add(fan(50))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, visits := flatbuf.New(data, 0, 0), 0
		explore(r.Root(), &visits)
		if visits > len(data)+1024 {
			t.Errorf("%d tables visited in %d bytes", visits, len(data))
		}
		if e, ok := errors.AsType[*flatbuf.Error](r.Err()); ok && (e.Offset < 0 || e.Offset > int64(len(data)) || e.Msg == "" || e.Path == "") {
			t.Errorf("%+v: no place inside the %d bytes", e, len(data))
		}
	})
}

func explore(x flatbuf.Table, visits *int) {
	*visits++
	for id := range 4 {
		x.Float64(id+4, "double", 0)
		x.String(id+8, "string")
		flatbuf.Slice(x.Vector(id+12, "vector", 4), flatbuf.Vector.Int32)
		if tag, member := x.Union(2*id+16, "union"); tag > 0 {
			explore(member, visits)
		}
		flatbuf.Each(x, id, "list", func(sub flatbuf.Table) { explore(sub, visits) })
	}
}
