package exif

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"
)

// tags returns a directory of two tags, the second one the orientation, and a second directory, of a thumbnail that is
// turned otherwise.
func tags(order binary.AppendByteOrder, kind uint16, value uint32) []byte {
	b := []byte("MM")
	if order.String() == binary.LittleEndian.String() {
		b = []byte("II")
	}
	b = order.AppendUint16(b, 42)
	b = order.AppendUint32(b, 8)
	for i, next := range []int{8 + 2 + 2*12 + 4, 0} {
		b = order.AppendUint16(b, 2)
		b = entry(b, order, 0x0100, 3, 7)
		if i == 0 {
			b = entry(b, order, 0x0112, kind, value)
		} else {
			b = entry(b, order, 0x0112, 3, 5)
		}
		b = order.AppendUint32(b, uint32(next))
	}
	return b
}

// entry appends a tag of one value.
func entry(b []byte, order binary.AppendByteOrder, tag, kind uint16, value uint32) []byte {
	b = order.AppendUint16(b, tag)
	b = order.AppendUint16(b, kind)
	b = order.AppendUint32(b, 1)
	if kind == 4 {
		return order.AppendUint32(b, value)
	}
	return append(order.AppendUint16(b, uint16(value)), 0, 0)
}

func segment(kind byte, data []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{0xff, kind}, uint16(len(data)+2)), data...)
}

func jpegOf(tags []byte) []byte {
	return slices.Concat([]byte(jpegMagic), segment(0xe0, []byte("JFIF\x00")), []byte{0xff},
		segment(0xe1, []byte("http://ns.adobe.com/xap/1.0/\x00")), segment(0xe1, append([]byte(exifMagic), tags...)), segment(0xda, []byte{1, 2}))
}

func chunk(kind string, data []byte) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), kind...)
	b = append(b, data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

func pngOf(tags []byte) []byte {
	return slices.Concat([]byte(pngMagic), chunk("IHDR", make([]byte, 13)), chunk("IDAT", []byte{1}), chunk("eXIf", tags), chunk("IEND", nil))
}

func TestOf(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for o := uint32(1); o <= 8; o++ {
			for _, file := range [][]byte{jpegOf(tags(order, 3, o)), pngOf(tags(order, 3, o)), jpegOf(tags(order, 4, o))} {
				if got := Of(file); got != Orientation(o) {
					t.Errorf("%v, %q…: got %d, want %d", order, file[:4], got, o)
				}
			}
		}
		for name, bad := range map[string][]byte{"0": tags(order, 3, 0), "9": tags(order, 3, 9), "large": tags(order, 4, 6<<16+1),
			"ascii": tags(order, 2, 6)} {
			if got := Of(jpegOf(bad)); got != Upright {
				t.Errorf("%v, %s: got %d", order, name, got)
			}
		}
	}
	after := append([]byte(jpegMagic), segment(0xda, []byte{1})...)
	if got := Of(append(after, segment(0xe1, append([]byte(exifMagic), tags(binary.BigEndian, 3, 6)...))...)); got != Upright {
		t.Errorf("behind the first scan: got %d", got)
	}
}

// TestDamaged cuts files and changes each of their bytes: the result is an orientation.
func TestDamaged(t *testing.T) {
	for _, file := range [][]byte{jpegOf(tags(binary.LittleEndian, 3, 6)), pngOf(tags(binary.BigEndian, 3, 8))} {
		for i := range file {
			check(t, file[:i])
			for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
				b := bytes.Clone(file)
				b[i] = v
				check(t, b)
			}
		}
	}
}

func check(t *testing.T, file []byte) {
	if o := Of(file); o < 1 || o > 8 {
		t.Fatalf("% x: orientation %d", file, o)
	}
}

// TestPlace compares with the definition: which edges of the upright picture the first row and column are.
func TestPlace(t *testing.T) {
	const w, h = 3, 2
	for o, want := range map[Orientation][]string{
		1: {"abc", "def"}, 2: {"cba", "fed"}, 3: {"fed", "cba"}, 4: {"def", "abc"},
		5: {"ad", "be", "cf"}, 6: {"da", "eb", "fc"}, 7: {"fc", "eb", "da"}, 8: {"cf", "be", "ad"},
	} {
		outW, outH := o.Size(w, h)
		got := make([][]byte, outH)
		for y := range got {
			got[y] = make([]byte, outW)
		}
		for i, c := range []byte("abcdef") {
			x, y := o.Place(w, h, i%w, i/w)
			got[y][x] = c
		}
		for y := range got {
			if y >= len(want) || string(got[y]) != want[y] {
				t.Errorf("orientation %d: got %q, want %q", o, got, want)
				break
			}
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add(jpegOf(tags(binary.LittleEndian, 3, 6)))
	f.Add(pngOf(tags(binary.BigEndian, 3, 3)))
	f.Fuzz(func(t *testing.T, file []byte) { check(t, file) })
}
