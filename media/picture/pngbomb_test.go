package picture

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/adler32"
	"hash/crc32"
	"math/bits"
)

// pngBomb is a PNG file with a small size and many pixels.
type pngBomb struct {
	w, h             int
	depth, color     byte
	interlace        byte
	filter           byte
	blocks           int // empty blocks of compressed data before the rest
	more             int // rows more than declared
	transparentColor bool
}

func chunk(kind string, contents []byte) []byte {
	out := append(binary.BigEndian.AppendUint32(nil, uint32(len(contents))), kind...)
	out = append(out, contents...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

func (b pngBomb) build() []byte {
	be := binary.BigEndian
	out := []byte(pngMagic)
	head := be.AppendUint32(be.AppendUint32(nil, uint32(b.w)), uint32(b.h))
	out = append(out, chunk("IHDR", append(head, b.depth, b.color, 0, 0, b.interlace))...)
	if b.color == 3 {
		out = append(out, chunk("PLTE", []byte{1, 2, 3, 4, 5, 6})...)
	}
	if b.transparentColor {
		out = append(out, chunk("tRNS", make([]byte, map[byte]int{0: 2, 2: 6, 3: 2}[b.color]))...)
	}
	out = append(out, chunk("IDAT", b.data())...)
	return append(out, chunk("IEND", nil)...)
}

// adam7 lists the first column and row of each pass, and its steps.
var adam7 = [][4]int{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}

func (b pngBomb) data() []byte {
	passes := [][4]int{{0, 0, 1, 1}}
	if b.interlace == 1 {
		passes = adam7
	}
	bits := int(b.depth) * map[byte]int{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[b.color]
	var raw, packed bytes.Buffer
	for _, p := range passes {
		w, h := (b.w-p[0]+p[2]-1)/p[2], (b.h-p[1]+p[3]-1)/p[3]
		if w > 0 && h > 0 {
			raw.Write(bytes.Repeat(append([]byte{b.filter}, make([]byte, (w*bits+7)/8)...), h+b.more))
		}
	}
	z, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err == nil {
		_, err = z.Write(raw.Bytes())
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err)
	}
	out := append([]byte{0x78, 0x01}, emptyBlocks(b.blocks)...)
	out = append(out, packed.Bytes()...)
	return binary.BigEndian.AppendUint32(out, adler32.Checksum(raw.Bytes()))
}

// emptyBlocks returns n times 4 blocks, 45 bytes, whose codes have one symbol: the end of the
// block.
func emptyBlocks(n int) []byte {
	var w bitWriter // for bits in the other order
	number := func(v, bits int) {
		for i := range bits {
			w.write(string(rune('0' + v>>i&1)))
		}
	}
	for range 4 {
		number(0, 1)   // not the last
		number(2, 2)   // dynamic codes
		number(0, 5+5) // 257 literals, 1 distance
		number(14, 4)  // 18 lengths of code lengths
		for i := range 18 {
			number(map[int]int{2: 1, 17: 1}[i], 3) // 18 and 1, of one bit each
		}
		number(1, 1)
		number(127, 7) // 138 zeros
		number(1, 1)
		number(107, 7) // 118 zeros
		number(0, 1)   // literal 256
		number(0, 1)   // the distance
		number(0, 1)   // the end
	}
	w.flush()
	for i, v := range w.out {
		w.out[i] = bits.Reverse8(v)
	}
	return bytes.Repeat(w.out, n)
}

func pngBombs() (list []pngBomb) {
	for _, size := range [][2]int{{1, 1}, {500, 400}, {1, 1 << 17}, {1 << 17, 1}} {
		for _, kind := range [][2]byte{{1, 0}, {8, 0}, {16, 0}, {8, 2}, {16, 2}, {1, 3}, {8, 3}, {8, 4}, {16, 4}, {8, 6}, {16, 6}} {
			for _, interlace := range []byte{0, 1} {
				list = append(list, pngBomb{w: size[0], h: size[1], depth: kind[0], color: kind[1], interlace: interlace, filter: 4})
				if kind[1] < 4 {
					list = append(list, pngBomb{w: size[0], h: size[1], depth: kind[0], color: kind[1], interlace: interlace, filter: 3, transparentColor: true})
				}
			}
		}
	}
	return append(list, pngBomb{w: 10, h: 10, depth: 8, color: 2, blocks: 100_000}, pngBomb{w: 10, h: 10, depth: 8, color: 2, more: 100_000})
}
