package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// UnsupportedError names a feature of a JPEG file that is not decoded.
type UnsupportedError struct{ Feature string }

func (e *UnsupportedError) Error() string {
	return "unsupported " + e.Feature + ": save the picture as a baseline or progressive JPEG file of 8 bits, or as PNG"
}

// Markers of JPEG files.
const (
	markerSOF2  = 0xc2 // progressive frame, after baseline and extended
	markerDHT   = 0xc4
	markerRST0  = 0xd0
	markerRST7  = 0xd7
	markerEOI   = 0xd9
	markerSOS   = 0xda
	markerDQT   = 0xdb
	markerDRI   = 0xdd
	markerAPP0  = 0xe0
	markerAPP14 = 0xee
)

// otherFrames are the frames that are not decoded.
var otherFrames = map[byte]string{
	0xc3: "lossless JPEG", 0xc5: "hierarchical JPEG", 0xc6: "hierarchical JPEG", 0xc7: "hierarchical JPEG",
	0xc9: "arithmetic coding of JPEG", 0xca: "arithmetic coding of JPEG", 0xcb: "lossless JPEG",
	0xcd: "hierarchical JPEG", 0xce: "hierarchical JPEG", 0xcf: "hierarchical JPEG",
	0xde: "hierarchical JPEG", 0xf7: "JPEG-LS",
}

// jpegFile reads a JPEG file. It has what the segments before an offset declare.
type jpegFile struct {
	file    []byte
	at      int
	frame   *jpegFrame
	quant   [4]*[64]int32 // in natural order
	huffman [2][4]huffman // of averages and of other coefficients
	restart int           // MCUs between two restart markers, 0 for none
	jfif    bool
	adobe   int // the color transform of Adobe's segment, -1 without one
}

func newJPEG(file []byte) *jpegFile { return &jpegFile{file: file, at: 2, adobe: -1} }

// scan returns the contents of the next scan's segment, nil at the end of the image, and remains behind the segment.
func (d *jpegFile) scan() ([]byte, error) {
	for {
		marker, segment, err := d.segment()
		switch {
		case err != nil:
			return nil, err
		case d.frame == nil && (marker == markerSOS || marker == markerEOI):
			return nil, errNoFrame
		case marker == markerSOS || marker == markerEOI:
			return segment, nil
		}
		if err := d.declare(marker, segment); err != nil {
			return nil, fmt.Errorf("segment %x at byte %d: %w", marker, d.at-len(segment)-4, err)
		}
	}
}

var (
	errNoFrame = errors.New("no frame before the first scan")
	errEnd     = errors.New("the file ends early")
)

// segment returns the next segment. Bytes between segments are skipped, like by other decoders.
func (d *jpegFile) segment() (marker byte, segment []byte, err error) {
	for {
		skip := bytes.IndexByte(d.file[d.at:], 0xff)
		if skip < 0 {
			return 0, nil, errEnd
		}
		for d.at += skip; d.at < len(d.file) && d.file[d.at] == 0xff; d.at++ { // fill bytes
		}
		if d.at == len(d.file) {
			return 0, nil, errEnd
		}
		marker = d.file[d.at]
		d.at++
		if marker == 0 || marker >= markerRST0 && marker <= markerRST7 {
			continue
		}
		if marker == markerEOI {
			return marker, nil, nil
		}
		if len(d.file)-d.at < 2 {
			return 0, nil, errEnd
		}
		n := int(binary.BigEndian.Uint16(d.file[d.at:]))
		if n < 2 || n > len(d.file)-d.at {
			return 0, nil, errEnd
		}
		segment = d.file[d.at+2 : d.at+n]
		d.at += n
		return marker, segment, nil
	}
}

// Lengths of segments; the last byte of Adobe's is the color transform.
const (
	jfifBytes  = 14
	adobeBytes = 12
)

// declare keeps what a segment declares.
func (d *jpegFile) declare(marker byte, b []byte) (err error) {
	if other, ok := otherFrames[marker]; ok {
		return &UnsupportedError{other}
	}
	switch marker {
	case 0xc0, 0xc1, markerSOF2:
		if d.frame != nil {
			return errors.New("a second frame")
		}
		d.frame, err = readFrame(b)
		if err == nil {
			d.frame.progressive = marker == markerSOF2
		}
	case markerDQT:
		return d.readQuant(b)
	case markerDHT:
		return d.readHuffman(b)
	case markerDRI:
		if len(b) != 2 {
			return errLength
		}
		d.restart = int(binary.BigEndian.Uint16(b))
	case markerAPP0:
		d.jfif = d.jfif || len(b) >= jfifBytes && bytes.HasPrefix(b, []byte("JFIF\x00"))
	case markerAPP14:
		if len(b) >= adobeBytes && bytes.HasPrefix(b, []byte("Adobe")) {
			d.adobe = int(b[adobeBytes-1])
		}
	}
	return err
}

var errLength = errors.New("its length is wrong")

// readQuant reads tables of 64 factors, in zigzag order.
func (d *jpegFile) readQuant(b []byte) error {
	for len(b) > 0 {
		size, at := 1+int(b[0]>>4), b[0]&15
		if size > 2 || int(at) >= len(d.quant) || len(b) < 1+64*size {
			return errLength
		}
		table := new([64]int32)
		for i, natural := range zigzag {
			if size == 1 {
				table[natural] = int32(b[1+i])
			} else {
				table[natural] = int32(binary.BigEndian.Uint16(b[1+2*i:]))
			}
		}
		d.quant[at], b = table, b[1+64*size:]
	}
	return nil
}

// zigzag has the natural index of each coefficient of a file.
var zigzag = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
}

// readHuffman reads tables of codes.
func (d *jpegFile) readHuffman(b []byte) error {
	const counts = 16
	for len(b) > 0 {
		if len(b) < 1+counts {
			return errLength
		}
		class, at, n := b[0]>>4, b[0]&15, 0
		for _, c := range b[1 : 1+counts] {
			n += int(c)
		}
		if class > 1 || int(at) >= len(d.huffman[0]) || n > 256 || len(b) < 1+counts+n {
			return errLength
		}
		if err := d.huffman[class][at].build(b[1:1+counts], b[1+counts:1+counts+n]); err != nil {
			return err
		}
		b = b[1+counts+n:]
	}
	return nil
}

// jpegFrame is the geometry declared by a JPEG file.
type jpegFrame struct {
	progressive  bool
	w, h         int
	mcusX, mcusY int
	components   []*jpegComponent
}

// jpegComponent has the blocks of one component, as many as all MCUs have.
type jpegComponent struct {
	id           byte
	across, down int // blocks per MCU
	quant        int // index of its table
	plane        plane
	table        *[64]int32 // of its first scan
	coefficients [][64]int16
	missing      [10]int8 // bits of the first coefficients that no progressive scan has had; -1 is all
}

// readFrame parses a frame's segment.
func readFrame(b []byte) (*jpegFrame, error) {
	const fixed, each = 6, 3
	if len(b) < fixed || len(b) != fixed+each*int(b[5]) {
		return nil, errLength
	}
	if b[0] != 8 {
		return nil, &UnsupportedError{fmt.Sprintf("JPEG of %d bits", b[0])}
	}
	f := &jpegFrame{h: int(binary.BigEndian.Uint16(b[1:])), w: int(binary.BigEndian.Uint16(b[3:]))}
	if n := b[5]; n != 1 && n != 3 && n != 4 {
		return nil, &UnsupportedError{fmt.Sprintf("JPEG of %d components", n)}
	}
	if f.h == 0 || f.w == 0 {
		return nil, &UnsupportedError{fmt.Sprintf("size of %d×%d pixels", f.w, f.h)}
	}
	for c := b[fixed:]; len(c) > 0; c = c[each:] {
		f.components = append(f.components, &jpegComponent{id: c[0], across: int(c[1] >> 4), down: int(c[1] & 15), quant: int(c[2])})
	}
	return f, f.divide()
}

// divide computes what follows from the sampling factors.
func (f *jpegFrame) divide() error {
	const most = 4
	across, down := 0, 0
	for i, c := range f.components {
		if len(f.components) == 1 { // one component is never subsampled
			c.across, c.down = 1, 1
		}
		if c.across < 1 || c.down < 1 || c.across > most || c.down > most || c.quant >= most || f.find(c.id) != i {
			return fmt.Errorf("component %d of %d×%d blocks and table %d", c.id, c.across, c.down, c.quant)
		}
		across, down = max(across, c.across), max(down, c.down)
	}
	f.mcusX, f.mcusY = ceilDiv(f.w, 8*across), ceilDiv(f.h, 8*down)
	for _, c := range f.components {
		if across%c.across != 0 || down%c.down != 0 {
			return &UnsupportedError{fmt.Sprintf("sampling of JPEG: %d×%d blocks beside %d×%d", c.across, c.down, across, down)}
		}
		c.plane = plane{across: across / c.across, down: down / c.down, stride: 8 * f.mcusX * c.across}
		c.plane.w, c.plane.h = ceilDiv(f.w*c.across, across), ceilDiv(f.h*c.down, down)
	}
	return nil
}

// find returns the first component with an id, -1 without one.
func (f *jpegFrame) find(id byte) int {
	for i, c := range f.components {
		if c.id == id {
			return i
		}
	}
	return -1
}

func ceilDiv(n, by int) int { return (n + by - 1) / by }

// blocks is the number of 8×8 blocks of the component.
func (f *jpegFrame) blocks(c *jpegComponent) int64 {
	return int64(c.across) * int64(c.down) * int64(f.mcusX) * int64(f.mcusY)
}

// allBlocks is the number of 8×8 blocks of all components.
func (f *jpegFrame) allBlocks() (n int64) {
	for _, c := range f.components {
		n += f.blocks(c)
	}
	return n
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
		if c := f.find(b[length+1+selector*i]); c >= 0 {
			n += f.blocks(f.components[c])
		}
	}
	return n
}
