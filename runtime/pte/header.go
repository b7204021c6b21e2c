package pte

import "encoding/binary"

// The extended header lies behind the root offset and the file identifier. Its
// first fields are the same in both formats that have one.
const (
	headerAt     = 8
	headerMagic  = "eh00"
	headerMin    = 24 // up to and with segment_base_offset: written before ExecuTorch 1.0
	headerFull   = 32 // with segment_data_size
	atHeaderLen  = 12
	atProgSize   = 16
	atSegBase    = 24
	atSegDataLen = 32
)

// readHeader reads the extended header of a .pte, nil where the file has none, and
// compares it with the size of the file.
func readHeader(file []byte) (*Header, error) {
	if len(file) < atHeaderLen || string(file[headerAt:atHeaderLen]) != headerMagic {
		return nil, nil
	}
	if len(file) < headerAt+headerMin {
		return nil, faultf(ErrFormat, headerAt, "header", "file of %d bytes, truncated in its header of at least %d", len(file), headerMin)
	}
	h := &Header{
		Length:      binary.LittleEndian.Uint32(file[atHeaderLen:]),
		ProgramSize: binary.LittleEndian.Uint64(file[atProgSize:]),
		SegmentBase: binary.LittleEndian.Uint64(file[atSegBase:]),
	}
	if h.Length < headerMin {
		return nil, faultf(ErrFormat, atHeaderLen, "header.length", "header length %d, want at least %d", h.Length, headerMin)
	}
	if h.Length >= headerFull {
		if len(file) < headerAt+headerFull {
			return nil, faultf(ErrFormat, atSegDataLen, "header", "file of %d bytes, truncated in its header of %d", len(file), h.Length)
		}
		h.SegmentDataSize = binary.LittleEndian.Uint64(file[atSegDataLen:])
	}
	return h, h.check(uint64(len(file)))
}

// check compares the declared extents with the size of the file.
func (h *Header) check(size uint64) error {
	switch {
	case h.ProgramSize > size:
		return faultf(ErrFormat, atProgSize, "header.program_size", "program size %d, the file has %d bytes: truncated", h.ProgramSize, size)
	case h.SegmentBase > size:
		return faultf(ErrFormat, atSegBase, "header.segment_base_offset", "segment base %d, the file has %d bytes: truncated", h.SegmentBase, size)
	case h.SegmentBase != 0 && h.SegmentBase < h.ProgramSize:
		return faultf(ErrFormat, atSegBase, "header.segment_base_offset", "segment base %d, inside the program's %d bytes", h.SegmentBase, h.ProgramSize)
	case h.SegmentDataSize > size-h.SegmentBase:
		return faultf(ErrFormat, atSegDataLen, "header.segment_data_size", "segment data size %d at %d, the file has %d bytes: truncated", h.SegmentDataSize, h.SegmentBase, size)
	}
	return nil
}
