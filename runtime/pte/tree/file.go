package tree

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/etrun-go/etrun/internal/flatbuf"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/runtime/pte"
)

// File is a file as a tree of tables, and the bytes after it.
type File struct {
	Format pte.Format
	Root   *Node
	Tail   []byte // the segments, from their base to the end of the file; those of a decoded file are its bytes
	// Segments are further bytes behind Tail.
	Segments Pieces
	Header   int // length of the extended header: 0 for none, 24 or 32 in a .pte file, 40 in a .ptd file
	Align    int // alignment of the segments' base, at least SegmentAlign
	// Unknown lists stored fields that the schemas here do not have: writing the file omits them.
	Unknown []string
}

// container describes how a format contains its FlatBuffer.
type container struct {
	identifier, root, magic string
	header                  int // header length of a file with segments
}

var containers = map[pte.Format]container{
	pte.FormatPTE:  {"ET12", "Program", "eh00", 32},
	pte.FormatPTD:  {"FT01", "FlatTensor", "FH01", 40},
	pte.FormatBPTE: {"BP08", "BundledProgram", "", 0},
}

// SegmentAlign is the alignment of the segments' base and of each segment.
const SegmentAlign = 128

// maxBaseAlign is the largest alignment of the base that is preserved.
const maxBaseAlign = 1 << 16

const (
	headerAt    = 8   // offset of the extended header, after root offset and identifier
	maxHeader   = 256 // maximum length of a header, as readers skip unknown parts
	headerAlign = 16  // alignment of the inserted header, to preserve that of the following bytes
)

// Decode converts a file of any format to a tree, which shares the memory of data. It fails for files that package pte rejects.
func Decode(data []byte) (*File, error) {
	f := &File{Format: pte.Sniff(data)}
	c, ok := containers[f.Format]
	if !ok {
		return nil, fmt.Errorf("unknown file identifier %q", flatbuf.Identifier(data))
	}
	if err := wellFormed(data, f.Format); err != nil {
		return nil, err
	}
	body := data
	if c.magic != "" && bytes.HasPrefix(data[headerAt:], []byte(c.magic)) {
		var base uint64
		f.Header, body, base = cutHeader(data, f.Format)
		if base > 0 {
			f.Tail = slices.Clip(data[base:])
			f.Align = int(min(base&-base, maxBaseAlign))
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

// cutHeader reads the extended header of a well-formed file and returns its length, the FlatBuffer,
// and the base of the segments.
func cutHeader(data []byte, format pte.Format) (length int, body []byte, base uint64) {
	length = int(binary.LittleEndian.Uint32(data[headerAt+4:]))
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(data[headerAt+8+8*i:]) }
	if format == pte.FormatPTD {
		return length, data[:field(0)+field(1)], field(2)
	}
	return length, data[:field(0)], field(1)
}

// Bytes returns the encoded file.
func (f *File) Bytes() []byte { return f.Pieces().Bytes() }

// Pieces returns the encoded file. Its segments share the memory of Tail and Segments.
func (f *File) Pieces() Pieces {
	c := containers[f.Format]
	body := encode(f.Root, c.identifier)
	if f.Header == 0 {
		return Pieces{body}
	}
	inserted, tail := pack.Align(min(f.Header, maxHeader), headerAlign), f.tail()
	out := make([]byte, 0, inserted+len(body)+max(f.Align, SegmentAlign))
	out = append(append(out, body[:headerAt]...), make([]byte, inserted)...)
	out = append(out, body[headerAt:]...)
	binary.LittleEndian.PutUint32(out, binary.LittleEndian.Uint32(out)+uint32(inserted))
	end, base := len(out), 0
	if tail > 0 {
		out = Pad(out, max(f.Align, SegmentAlign))
		base = len(out)
	}
	copy(out[headerAt:], c.magic)
	binary.LittleEndian.PutUint32(out[headerAt+4:], uint32(f.Header))
	for i, v := range f.headerFields(end, inserted, base) {
		binary.LittleEndian.PutUint64(out[headerAt+8+8*i:], uint64(v))
	}
	return append(Pieces{out, f.Tail}, f.Segments...)
}

// headerFields returns the header's 8-byte fields.
func (f *File) headerFields(end, inserted, base int) []int {
	switch {
	case f.Format == pte.FormatPTD:
		return []int{headerAt + inserted, end - headerAt - inserted, base, f.tail()}
	case f.Header < 32: // written before segment_data_size
		return []int{end, base}
	}
	return []int{end, base, f.tail()}
}

// tail is the number of bytes behind the tables.
func (f *File) tail() int { return len(f.Tail) + f.Segments.Size() }

// Pieces are bytes in several parts, so that large ones are not copied before they are written.
type Pieces [][]byte

// Size returns the number of bytes.
func (p Pieces) Size() (n int) {
	for _, b := range p {
		n += len(b)
	}
	return n
}

// Bytes returns a copy in one part.
func (p Pieces) Bytes() []byte { return slices.Concat(p...) }

// WriteTo implements io.WriterTo.
func (p Pieces) WriteTo(w io.Writer) (n int64, err error) {
	for _, b := range p {
		k, err := w.Write(b)
		if n += int64(k); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Pad appends zeros up to a multiple of align.
func Pad(b []byte, align int) []byte {
	return append(b, make([]byte, (align-len(b)%align)%align)...)
}
