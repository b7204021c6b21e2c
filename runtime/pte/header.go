package pte

import "encoding/binary"

// The extended header of a .pte file follows the root offset and the file identifier.
const (
	headerAt     = 8
	headerMagic  = "eh00"
	headerMin    = 24 // up to and including segment_base_offset: written before ExecuTorch 1.0
	headerFull   = 32 // including segment_data_size
	atHeaderLen  = 12
	atProgSize   = 16
	atSegBase    = 24
	atSegDataLen = 32
)

// readHeader reads and checks the extended header of a .pte file; it returns nil if the file has
// none.
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

// check checks the declared extents against the size of the file.
func (h *Header) check(size uint64) error {
	if h.ProgramSize > size {
		return faultf(ErrFormat, atProgSize, "header.program_size", "program size %d, the file has %d bytes: truncated", h.ProgramSize, size)
	}
	return checkSegments(size, h.ProgramSize, h.SegmentBase, atSegBase, h.SegmentDataSize, atSegDataLen)
}

// checkSegments checks a header's segment_base_offset and segment_data_size, at the given offsets,
// against the size of the file and the end of its FlatBuffer.
func checkSegments(size, end, base uint64, atBase int64, data uint64, atData int64) error {
	const basePath, dataPath = "header.segment_base_offset", "header.segment_data_size"
	switch {
	case base > size:
		return faultf(ErrFormat, atBase, basePath, "segment base %d, the file has %d bytes: truncated", base, size)
	case base != 0 && base < end:
		return faultf(ErrFormat, atBase, basePath, "segment base %d, inside the FlatBuffer's %d bytes", base, end)
	case base == 0 && data != 0:
		return faultf(ErrFormat, atData, dataPath, "segment data size %d without a segment base", data)
	case data > size-base:
		return faultf(ErrFormat, atData, dataPath, "segment data size %d at %d, the file has %d bytes: truncated", data, base, size)
	}
	return nil
}
