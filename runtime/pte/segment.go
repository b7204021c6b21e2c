package pte

import (
	"github.com/etrun-go/etrun/internal/flatbuf"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// segments are the byte ranges after the FlatBuffer (table DataSegment).
type segments struct {
	file []byte
	base uint64 // offset of the segments in the file; 0 if there are none
	list [][]byte
}

// read reads the list of segments, field id of the root.
func (s *segments) read(root flatbuf.Table, id int) {
	s.list = flatbuf.List(root, id, "segments", s.segment)
}

// segment reads a DataSegment and returns its bytes in the file. The slice's capacity includes the
// following bytes of the file, as far as vector code may read beyond an operand.
func (s *segments) segment(t flatbuf.Table) []byte {
	off, size := t.Uint64(0, "offset", 0), t.Uint64(1, "size", 0)
	left := uint64(len(s.file)) - s.base
	switch {
	case size == 0:
		return nil
	case s.base == 0:
		t.Failf(ErrFormat, 1, "size", "segment of %d bytes in a file whose header gives no segment base", size)
	case off > left:
		t.Failf(ErrFormat, 0, "offset", "segment offset %d, the file has %d bytes from the segment base %d", off, left, s.base)
	case size > left-off:
		t.Failf(ErrFormat, 1, "size", "segment size %d at offset %d, the file has %d bytes from the segment base %d", size, off, left, s.base)
	default:
		from := s.base + off
		return s.file[from : from+size : min(from+size+tensor.Padding, uint64(len(s.file)))]
	}
	return nil
}

// at returns the segment whose index is a u32 field.
func (s *segments) at(t flatbuf.Table, id int, name string) []byte {
	i := t.Uint32(id, name, 0)
	if uint64(i) >= uint64(len(s.list)) {
		t.Failf(ErrFormat, id, name, "segment %d, the file has %d", i, len(s.list))
		return nil
	}
	return s.list[i]
}

// subsegments are the numbered parts of a segment (table SubsegmentOffsets). Number 0 is a
// placeholder.
type subsegments struct {
	data    []byte
	offsets flatbuf.Vector
}

// Len returns the number of parts including the placeholder, 0 if there are none.
func (s subsegments) Len() int { return s.offsets.Len() }

func (s *segments) subsegments(t flatbuf.Table) subsegments {
	offsets := t.Vector(1, "offsets", 8)
	if offsets.Len() < 2 {
		return subsegments{}
	}
	return subsegments{data: s.at(t, 0, "segment_index"), offsets: offsets}
}

// cut returns the n bytes of the part that a tensor's data_buffer_idx refers to.
func (s subsegments) cut(t flatbuf.Table, idx uint32, n int64) []byte {
	if uint64(idx) >= uint64(s.Len()) {
		t.Failf(ErrFormat, bufferIdx, "data_buffer_idx", "data buffer %d, the segment has %d", idx, s.Len())
		return nil
	}
	off, size := s.offsets.Uint64(int(idx)), uint64(len(s.data))
	if off > size || uint64(n) > size-off {
		t.Failf(ErrFormat, bufferIdx, "data_buffer_idx", "data buffer %d, %d bytes at offset %d of a segment of %d", idx, n, off, size)
		return nil
	}
	return s.data[off : off+uint64(n) : off+uint64(n)]
}

// bufferIdx is the field id of Tensor.data_buffer_idx.
const bufferIdx = 5
