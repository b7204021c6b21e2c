package pte

import (
	"encoding/binary"

	"github.com/etrun-go/etrun/internal/flatbuf"
)

// The header of a .ptd file is at the same offset as that of a .pte file, and is always present.
const (
	dataMagic     = "FH01"
	dataHeader    = 40
	atBodyOffset  = 16 // flatbuffer_offset
	atBodySize    = 24 // flatbuffer_size
	atDataSegBase = 32 // segment_base_offset
	atDataSegSize = 40 // segment_data_size
)

// ParseData reads and verifies a .ptd file of named data. The DataMap shares data's
// memory, which must not change while it is in use. Errors are *[FormatError].
func ParseData(data []byte, limits Limits) (*DataMap, error) {
	if err := checkIdentifier(data, FormatPTD); err != nil {
		return nil, err
	}
	end, base, err := readDataHeader(data)
	if err != nil {
		return nil, err
	}
	r := flatbuf.New(data[:end], 0, limits.withDefaults().Tables)
	d := &dataReader{segments: segments{file: data, base: base}, out: DataMap{Entries: map[string]DataEntry{}}}
	d.flatTensor(r.Root())
	if err := r.Err(); err != nil {
		return nil, formatError(err)
	}
	return &d.out, nil
}

// readDataHeader returns the end of the FlatBuffer and the base of the segments.
func readDataHeader(file []byte) (end, base uint64, err error) {
	size := uint64(len(file))
	if size < headerAt+dataHeader {
		return 0, 0, faultf(ErrFormat, headerAt, "header", "file of %d bytes, truncated in its header of %d", size, dataHeader)
	}
	if magic := file[headerAt:atHeaderLen]; string(magic) != dataMagic {
		return 0, 0, faultf(ErrFormat, headerAt, "header", "header magic %q, want %q", magic, dataMagic)
	}
	if n := binary.LittleEndian.Uint32(file[atHeaderLen:]); n < dataHeader {
		return 0, 0, faultf(ErrFormat, atHeaderLen, "header.length", "header length %d, want at least %d", n, dataHeader)
	}
	off, n := binary.LittleEndian.Uint64(file[atBodyOffset:]), binary.LittleEndian.Uint64(file[atBodySize:])
	if off > size || n > size-off {
		return 0, 0, faultf(ErrFormat, atBodySize, "header.flatbuffer_size", "FlatBuffer of %d bytes at %d, the file has %d bytes: truncated", n, off, size)
	}
	base = binary.LittleEndian.Uint64(file[atDataSegBase:])
	data := binary.LittleEndian.Uint64(file[atDataSegSize:])
	return off + n, base, checkSegments(size, off+n, base, atDataSegBase, data, atDataSegSize)
}

// dataReader reads table FlatTensor.
type dataReader struct {
	segments
	out DataMap
}

func (d *dataReader) flatTensor(t flatbuf.Table) {
	readVersion(t)
	t.Need(1, "segments")
	t.Need(2, "named_data")
	d.read(t, 1)
	flatbuf.Each(t, 2, "named_data", d.entry)
}

// entry reads a NamedData.
func (d *dataReader) entry(t flatbuf.Table) {
	key := newKey(t, d.out.Entries)
	e := DataEntry{Data: d.at(t, 1, "segment_index"), Layout: flatbuf.One(t, 2, "tensor_layout", layout)}
	if e.Layout != nil && t.OK() {
		n := tensorBytes(e.Layout.DType, e.Layout.Sizes)
		if n > int64(len(e.Data)) {
			t.Failf(ErrFormat, 1, "segment_index", "segment of %d bytes, the tensor %s has %d", len(e.Data), quote(key), n)
			return
		}
		e.Data = e.Data[:n:n]
	}
	d.out.Entries[key] = e
}

// layout reads a TensorLayout.
func layout(t flatbuf.Table) *Layout {
	out := &Layout{DType: dtype(t)}
	out.Sizes, out.DimOrder = shape(t, 1, 2, makeInts)
	return out
}

func makeInts(n int) []int { return make([]int, n) }
