// Package exif reads one tag of pictures' metadata: the orientation, which cameras store instead of turning the pixels.
package exif

import (
	"bytes"
	"encoding/binary"
)

// Orientation is the value of the EXIF tag: how stored pixels are turned and mirrored for display. 1 is upright.
type Orientation uint8

// Upright is the orientation of pictures without the tag.
const Upright Orientation = 1

// parts are the steps of an orientation: exchange x and y, then mirror.
var parts = [9]struct{ transpose, mirrorX, mirrorY bool }{
	2: {mirrorX: true}, 3: {mirrorX: true, mirrorY: true}, 4: {mirrorY: true},
	5: {transpose: true}, 6: {transpose: true, mirrorX: true},
	7: {transpose: true, mirrorX: true, mirrorY: true}, 8: {transpose: true, mirrorY: true},
}

// Size returns the size of the upright picture for stored pixels of w columns and h rows.
func (o Orientation) Size(w, h int) (int, int) {
	if parts[o].transpose {
		return h, w
	}
	return w, h
}

// Place returns the column and row, in the upright picture, of column x and row y of w×h stored pixels.
func (o Orientation) Place(w, h, x, y int) (int, int) {
	p := parts[o]
	if p.transpose {
		w, h, x, y = h, w, y, x
	}
	if p.mirrorX {
		x = w - 1 - x
	}
	if p.mirrorY {
		y = h - 1 - y
	}
	return x, y
}

const (
	pngMagic  = "\x89PNG\r\n\x1a\n"
	jpegMagic = "\xff\xd8"
	exifMagic = "Exif\x00\x00" // before the tags in a JPEG file
)

// Of returns the orientation of a JPEG or PNG file, Upright if it has none or if the tag is malformed. It allocates
// nothing, and its time is linear in the size of the file.
func Of(file []byte) Orientation {
	switch {
	case bytes.HasPrefix(file, []byte(jpegMagic)):
		return ofJPEG(file[len(jpegMagic):])
	case bytes.HasPrefix(file, []byte(pngMagic)):
		return ofPNG(file[len(pngMagic):])
	}
	return Upright
}

// ofJPEG searches the segments before the first scan for an APP1 segment with EXIF tags.
func ofJPEG(b []byte) Orientation {
	const fill, marker, app1, scan, end, header = 0xff, 0xff, 0xe1, 0xda, 0xd9, 4
	for len(b) >= header && b[0] == marker {
		kind, n := b[1], int(binary.BigEndian.Uint16(b[2:]))
		if kind == fill {
			b = b[1:]
			continue
		}
		if kind == scan || kind == end || n < 2 || n > len(b)-2 {
			break
		}
		if tags, ok := bytes.CutPrefix(b[header:n+2], []byte(exifMagic)); ok && kind == app1 {
			return ofTags(tags)
		}
		b = b[n+2:]
	}
	return Upright
}

// ofPNG searches the chunks for eXIf.
func ofPNG(b []byte) Orientation {
	const header, checksum = 8, 4
	for len(b) >= header {
		n := binary.BigEndian.Uint32(b)
		kind := b[4:header]
		b = b[header:]
		if uint64(n)+checksum > uint64(len(b)) {
			break
		}
		if string(kind) == "eXIf" {
			return ofTags(b[:n])
		}
		b = b[n+checksum:]
	}
	return Upright
}

// ofTags reads the first directory of tags in TIFF's format.
func ofTags(b []byte) Orientation {
	const header, entry, orientation = 8, 12, 0x0112
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case len(b) < header:
		return Upright
	case string(b[:4]) == "MM\x00*":
		order = binary.BigEndian
	case string(b[:4]) != "II*\x00":
		return Upright
	}
	at := uint64(order.Uint32(b[4:]))
	if at < header || at+2 > uint64(len(b)) {
		return Upright
	}
	entries := b[at+2:]
	for range order.Uint16(b[at:]) {
		if len(entries) < entry {
			break
		}
		if order.Uint16(entries) == orientation {
			return valueOf(order, entries[2:entry])
		}
		entries = entries[entry:]
	}
	return Upright
}

// valueOf reads type, count and value of the tag: one SHORT, or a LONG, which some programs write.
func valueOf(order binary.ByteOrder, b []byte) Orientation {
	const short, long = 3, 4
	value := uint32(0)
	switch kind := order.Uint16(b); {
	case order.Uint32(b[2:]) != 1:
	case kind == short:
		value = uint32(order.Uint16(b[6:]))
	case kind == long:
		value = order.Uint32(b[6:])
	}
	if value < 1 || value >= uint32(len(parts)) {
		return Upright
	}
	return Orientation(value)
}
