package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Markers of JPEG files.
const (
	markerSOF0 = 0xc0 // baseline frame, then extended and progressive
	markerSOF2 = 0xc2
	markerRST0 = 0xd0
	markerRST7 = 0xd7
	markerEOI  = 0xd9
	markerSOS  = 0xda
)

var errNoFrame = errors.New("jpeg: no frame")

// findFrame parses the segments like the decoder up to the first frame, and returns the
// frame and the offset after it.
func findFrame(file []byte) (*jpegFrame, int, error) {
	for at := 2; ; {
		skip := bytes.IndexByte(file[min(at, len(file)):], 0xff)
		if skip < 0 {
			return nil, 0, errNoFrame
		}
		at += skip + 1
		for at < len(file) && file[at] == 0xff { // fill bytes
			at++
		}
		if at+3 > len(file) {
			return nil, 0, errNoFrame
		}
		marker := file[at]
		at++
		if marker == 0 || marker >= markerRST0 && marker <= markerRST7 {
			continue
		}
		n := int(binary.BigEndian.Uint16(file[at:]))
		if marker == markerEOI || marker == markerSOS || n < 2 || n > len(file)-at {
			return nil, 0, errNoFrame
		}
		if marker >= markerSOF0 && marker <= markerSOF2 {
			frame, err := readFrame(file[at+2 : at+n])
			if err == nil {
				frame.progressive = marker == markerSOF2
			}
			return frame, at + n, err
		}
		at += n
	}
}

// readFrame parses a frame's segment.
func readFrame(b []byte) (*jpegFrame, error) {
	const fixed, each = 6, 3
	if len(b) < fixed || len(b) != fixed+each*int(b[5]) || len(b) == fixed {
		return nil, errNoFrame
	}
	f := &jpegFrame{h: int(binary.BigEndian.Uint16(b[1:])), w: int(binary.BigEndian.Uint16(b[3:]))}
	for c := b[fixed:]; len(c) > 0; c = c[each:] {
		across, down := int64(c[1]>>4), int64(c[1]&15)
		if len(b) == fixed+each { // one component is never subsampled
			across, down = 1, 1
		}
		if across == 0 || down == 0 {
			return nil, errNoFrame
		}
		if len(f.components) == 0 {
			f.mcus = (int64(f.w) + 8*across - 1) / (8 * across) * ((int64(f.h) + 8*down - 1) / (8 * down))
		}
		f.components = append(f.components, jpegComponent{c[0], across * down})
	}
	return f, nil
}

// blocks is the number of 8×8 blocks of all components.
func (f *jpegFrame) blocks() (n int64) {
	for _, c := range f.components {
		n += c.blocks
	}
	return n * f.mcus
}

// nextScan returns the offset after the next start-of-scan marker, len(file) if there is
// none.
func nextScan(file []byte, at int) int {
	if i := bytes.Index(file[at:], []byte{0xff, markerSOS}); i >= 0 {
		return at + i + 2
	}
	return len(file)
}

// visits returns the number of blocks of the scan whose segment starts with b, 0 if the
// decoder rejects it.
func (f *jpegFrame) visits(b []byte) (n int64) {
	const length, selector = 2, 2
	if len(b) < length+1 {
		return 0
	}
	count := int(b[length])
	if count < 1 || count > len(f.components) || int(binary.BigEndian.Uint16(b)) != length+4+2*count || len(b) < length+4+2*count {
		return 0
	}
	for i := range count {
		for _, c := range f.components {
			if c.id == b[length+1+selector*i] {
				n += c.blocks
			}
		}
	}
	return n * f.mcus
}
