// Package flatbuf reads untrusted FlatBuffers. Reading and verifying are one step: every offset,
// vtable, vector, string and nesting depth is checked against the buffer before it is followed.
//
// A [Reader] stores the first error and then returns zero values, so that code that reads a table
// is a plain list of its fields and calls [Reader.Err] once, at the end. Paths of errors are built
// only while a failed read returns: a successful read pays nothing for them.
//
// FlatBuffers may share tables and strings, so a small file could describe a huge structure. A
// reader therefore visits no more tables than fit the file, and no more than [shareFactor] times
// its size in strings and vectors: time and memory are linear in the size of the file.
//
// Alignment is not checked, because no code here depends on it.
package flatbuf

import (
	"encoding/binary"
	"fmt"
)

const (
	// HeaderSize is the size of the root offset and the file identifier.
	HeaderSize = 8
	// maxDepth is the maximum nesting of tables, as in flatc's verifier.
	maxDepth = 64
	// minTable is the minimum size of a table and the reference to it.
	minTable = 8
	// shareFactor is the average number of times that a byte of strings and vectors may be visited.
	shareFactor = 4
	// slack is the minimum budget of any file.
	slack = 4096
)

// Reader reads one FlatBuffer and stores the first error.
type Reader struct {
	data   []byte
	base   int64 // offset of data in the file
	tables int   // tables left to visit
	bytes  int   // bytes of strings and vectors left to visit
	fault  *Error
}

// New returns a reader of data, which starts at byte base of its file: error offsets are relative
// to the file. At most maxTables tables are visited; 0 means the limit derived from the size of
// data.
func New(data []byte, base int64, maxTables int) *Reader {
	tables := len(data)/minTable + slack/minTable
	if maxTables > 0 {
		tables = min(tables, maxTables)
	}
	return &Reader{data: data, base: base, tables: tables, bytes: shareFactor*len(data) + slack}
}

// Identifier returns the file identifier, bytes 4 to 7; "" if data is too short.
func Identifier(data []byte) string {
	if len(data) < HeaderSize {
		return ""
	}
	return string(data[4:HeaderSize])
}

// Err returns the first error, an *[Error], or nil.
func (r *Reader) Err() error {
	if r.fault == nil {
		return nil
	}
	return r.fault
}

// OK reports whether there has been no error.
func (r *Reader) OK() bool { return r.fault == nil }

// Within prefixes the path of the error, if there is one, with name, and [i] unless i is negative.
// Code that descends calls it on return.
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

// follow returns the target of the offset at pos, which has at least 4 bytes. The caller must have
// checked that the offset itself is inside the data.
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

// charge subtracts n bytes of a string or vector from the budget.
func (r *Reader) charge(pos, n int, path string) bool {
	if n > r.bytes {
		r.fail(ErrLimit, pos, path, "strings and vectors of over %d times the file's size", shareFactor)
		return false
	}
	r.bytes -= n
	return true
}
