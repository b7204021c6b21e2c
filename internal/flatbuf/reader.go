// Package flatbuf reads FlatBuffers that nobody vouches for. Reading is verifying:
// every offset, vtable, vector, string and nesting depth is compared with the bytes
// there are before it is followed.
//
// A [Reader] keeps its first fault and from then on gives zero values, so the code
// that reads a table is a plain list of its fields and asks once, at the end, for
// [Reader.Err]. Paths of faults are put together only while a faulty read unwinds:
// a read without fault pays nothing for them.
//
// Tables and strings may be shared in a FlatBuffer, so a small file could describe
// something vast. A reader therefore visits no more tables than the file has room
// for, and no more than [shareFactor] times its bytes in strings and vectors:
// the cost and the memory of reading are linear in the size of the file.
//
// Alignment is not checked: nothing here depends on it.
package flatbuf

import (
	"encoding/binary"
	"fmt"
)

const (
	// HeaderSize is the size of the root offset and the file identifier.
	HeaderSize = 8
	// maxDepth bounds the nesting of tables, as flatc's verifier does.
	maxDepth = 64
	// minTable is the least a table and the reference to it take.
	minTable = 8
	// shareFactor is how often, on average, a byte of strings and vectors may be visited.
	shareFactor = 4
	// slack is the budget that even the smallest file has.
	slack = 4096
)

// Reader reads one FlatBuffer and keeps the first fault found.
type Reader struct {
	data   []byte
	base   int64 // place of data in the file
	tables int   // tables left to visit
	bytes  int   // bytes of strings and vectors left to visit
	fault  *Error
}

// New returns a reader of data, which lies at byte base of its file: faults are
// placed relative to the file. At most maxTables tables are visited; 0 leaves that
// to the size of data alone.
func New(data []byte, base int64, maxTables int) *Reader {
	tables := len(data)/minTable + slack/minTable
	if maxTables > 0 {
		tables = min(tables, maxTables)
	}
	return &Reader{data: data, base: base, tables: tables, bytes: shareFactor*len(data) + slack}
}

// Identifier is the file identifier, bytes 4 to 7; "" where data is too short.
func Identifier(data []byte) string {
	if len(data) < HeaderSize {
		return ""
	}
	return string(data[4:HeaderSize])
}

// Root is the root table.
func (r *Reader) Root() Table {
	if len(r.data) < HeaderSize {
		r.fail(ErrMalformed, 0, "root", "%d bytes, a FlatBuffer has at least %d", len(r.data), HeaderSize)
		return Table{}
	}
	return r.table(0, 0, "root")
}

// Err is the first fault, an *[Error], or nil.
func (r *Reader) Err() error {
	if r.fault == nil {
		return nil
	}
	return r.fault
}

// OK reports that nothing was wrong so far.
func (r *Reader) OK() bool { return r.fault == nil }

// Within puts an element before the path of the fault, if there is one: name, and
// [i] unless i is negative. Code that descends calls it on the way back.
func (r *Reader) Within(name string, i int) {
	if r.fault != nil {
		r.fault.Path = join(element(name, i), r.fault.Path)
	}
}

func (r *Reader) fail(reason error, pos int, path, format string, args ...any) {
	if r.fault == nil {
		r.fault = &Error{Reason: reason, Offset: r.base + int64(pos), Path: path, Msg: fmt.Sprintf(format, args...)}
	}
}

func (r *Reader) u16(pos int) int    { return int(binary.LittleEndian.Uint16(r.data[pos:])) }
func (r *Reader) u32(pos int) uint32 { return binary.LittleEndian.Uint32(r.data[pos:]) }
func (r *Reader) u64(pos int) uint64 { return binary.LittleEndian.Uint64(r.data[pos:]) }

// follow returns where the offset at pos leads: a place with at least 4 bytes.
// The caller has checked that the offset itself lies inside the data.
func (r *Reader) follow(pos int, path string) (int, bool) {
	off := uint64(r.u32(pos))
	if off == 0 {
		r.fail(ErrMalformed, pos, path, "offset 0, which leads to itself")
		return 0, false
	}
	if uint64(pos)+off+4 > uint64(len(r.data)) {
		r.fail(ErrMalformed, pos, path, "offset %d leaves the buffer of %d bytes", off, len(r.data))
		return 0, false
	}
	return pos + int(off), true
}

// charge takes n bytes of a string or vector off the budget.
func (r *Reader) charge(pos, n int, path string) bool {
	if n > r.bytes {
		r.fail(ErrLimit, pos, path, "strings and vectors of over %d times the file's size", shareFactor)
		return false
	}
	r.bytes -= n
	return true
}
