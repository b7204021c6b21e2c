package tree

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/etrun-go/etrun/internal/flatbuf"
	"github.com/etrun-go/etrun/runtime/pte"
)

// File is a file as its tree of tables and the bytes behind it.
type File struct {
	Format pte.Format
	Root   *Node
	Tail   []byte // segments, from their base to the end of the file
	Header int    // length of the extended header: 0 for none, 24 or 32 in a .pte, 40 in a .ptd
	Align  int    // of the segments' base, at least SegmentAlign
	// Unknown names fields that are stored and that no schema here has: writing the file
	// leaves them out.
	Unknown []string
}

// container says how a format holds its FlatBuffer.
type container struct {
	identifier, root, magic string
	header                  int // of a file with segments
}

var containers = map[pte.Format]container{
	pte.FormatPTE:  {"ET12", "Program", "eh00", 32},
	pte.FormatPTD:  {"FT01", "FlatTensor", "FH01", 40},
	pte.FormatBPTE: {"BP08", "BundledProgram", "", 0},
}

// SegmentAlign is that of the segments' base, and between segments.
const SegmentAlign = 128

// mostBase bounds the alignment of the base that is kept.
const mostBase = 1 << 16

const (
	headerAt    = 8   // of the extended header, behind root offset and identifier
	mostHeader  = 256 // room for a header, whatever length it claims: readers skip what they do not know
	headerAlign = 16  // what the inserted header is padded to, to keep the alignment behind it
)

// Decode reads a file of any of the formats into its tree. A file that the readers
// of package pte refuse has none.
func Decode(data []byte) (*File, error) {
	f := &File{Format: pte.Sniff(data)}
	c, ok := containers[f.Format]
	if !ok {
		return nil, fmt.Errorf("file identifier %q", flatbuf.Identifier(data))
	}
	if err := wellFormed(data, f.Format); err != nil {
		return nil, err
	}
	body := data
	if c.magic != "" && bytes.HasPrefix(data[headerAt:], []byte(c.magic)) {
		var base uint64
		f.Header, body, base = cutHeader(data, f.Format)
		if base > 0 {
			f.Tail = bytes.Clone(data[base:])
			f.Align = int(min(base&-base, mostBase))
		}
	}
	r := flatbuf.New(body, 0, 0)
	d := &decoder{unknown: make(map[string]bool)}
	f.Root = d.table(c.root, r.Root())
	f.Unknown = slices.Sorted(maps.Keys(d.unknown))
	return f, r.Err()
}

func wellFormed(data []byte, format pte.Format) (err error) {
	switch format {
	case pte.FormatPTE:
		_, err = pte.Parse(data, pte.Limits{})
	case pte.FormatPTD:
		_, err = pte.ParseData(data, pte.Limits{})
	case pte.FormatBPTE:
		_, err = pte.ParseBundle(data, pte.Limits{})
	}
	return err
}

// cutHeader reads the extended header of a well-formed file: its length, the
// FlatBuffer, and the base of the segments.
func cutHeader(data []byte, format pte.Format) (length int, body []byte, base uint64) {
	length = int(binary.LittleEndian.Uint32(data[headerAt+4:]))
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(data[headerAt+8+8*i:]) }
	if format == pte.FormatPTD {
		return length, data[:field(0)+field(1)], field(2)
	}
	return length, data[:field(0)], field(1)
}

// Bytes writes the file.
func (f *File) Bytes() []byte {
	c := containers[f.Format]
	body := encode(f.Root, c.identifier)
	if f.Header == 0 {
		return body
	}
	inserted := (min(f.Header, mostHeader) + headerAlign - 1) / headerAlign * headerAlign
	out := append(bytes.Clone(body[:headerAt]), make([]byte, inserted)...)
	out = append(out, body[headerAt:]...)
	binary.LittleEndian.PutUint32(out, binary.LittleEndian.Uint32(out)+uint32(inserted))
	end := len(out)
	base := 0
	if len(f.Tail) > 0 {
		out = Pad(out, max(f.Align, SegmentAlign))
		base = len(out)
		out = append(out, f.Tail...)
	}
	copy(out[headerAt:], c.magic)
	binary.LittleEndian.PutUint32(out[headerAt+4:], uint32(f.Header))
	for i, v := range f.headerFields(end, inserted, base) {
		binary.LittleEndian.PutUint64(out[headerAt+8+8*i:], uint64(v))
	}
	return out
}

// headerFields are the header's fields of 8 bytes.
func (f *File) headerFields(end, inserted, base int) []int {
	switch {
	case f.Format == pte.FormatPTD:
		return []int{headerAt + inserted, end - headerAt - inserted, base, len(f.Tail)}
	case f.Header < 32: // written before segment_data_size
		return []int{end, base}
	}
	return []int{end, base, len(f.Tail)}
}

// Pad appends zeros up to a multiple of align.
func Pad(b []byte, align int) []byte {
	return append(b, make([]byte, (align-len(b)%align)%align)...)
}
