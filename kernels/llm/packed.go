package llm

import (
	"encoding/binary"
	"fmt"
	"math"
)

// packed is a weight [N, K] in torchao's universal packing of low-bit weights for
// 8-bit activations (weight_packing.h): a header of sixteen int32, then for every 8
// columns of the output and every group of K the codes, 16 of each column at a time,
// 8 float32 scales and 8 int32 sums of codes. All is little-endian.
type packed struct {
	n, k, group int
	bits        int // 4 or 8
}

const (
	packedHeader = 64
	packedMagic  = 6712
	// The packing is written for a tile of 8 columns by 16 elements, in two halves.
	packedColumns = 8
	packedRun     = 16
	packedTile    = packedColumns * packedRun
)

// headerWords returns the required header: magic, universal packing, bits, no zero points, no bias, and the tile.
func (p packed) headerWords() [8]int32 {
	return [8]int32{packedMagic, 1, int32(p.bits), 0, 0, packedColumns, packedRun, 2}
}

// groupBytes is the size of one group of eight columns.
func (p packed) groupBytes() int {
	return p.group*packedColumns*p.bits/8 + packedColumns*8
}

// size is the number of bytes with the header.
func (p packed) size() int {
	blocks := (p.n + packedColumns - 1) / packedColumns
	return packedHeader + blocks*(p.k/p.group)*p.groupBytes()
}

// check compares header and length with those of the weight's sizes.
func (p packed) check(b []byte) error {
	if len(b) < p.size() {
		return fmt.Errorf("%d bytes, %d for [%d %d]", len(b), p.size(), p.n, p.k)
	}
	for i, want := range p.headerWords() {
		if got := int32(binary.LittleEndian.Uint32(b[4*i:])); got != want {
			return fmt.Errorf("word %d of the header %d, %d for this packing", i, got, want)
		}
	}
	return nil
}

// columns dequantizes the columns of block i, at most eight, to rows of K elements each.
func (p packed) columns(dst []float32, b []byte, i int) {
	groups := p.k / p.group
	b = b[packedHeader+i*groups*p.groupBytes():]
	tile := packedTile * p.bits / 8
	var codes [packedTile]int8
	for g := range groups {
		scales := b[p.group/packedRun*tile:]
		for at := g * p.group; at < (g+1)*p.group; at += packedRun {
			unpackTile(&codes, b[:tile], p.bits)
			b = b[tile:]
			for c := range packedColumns {
				scale := math.Float32frombits(binary.LittleEndian.Uint32(scales[4*c:]))
				for half := range 2 { // eight elements of every column, then the other eight
					row := dst[c*p.k+at+half*8:][:8]
					for j, v := range codes[half*packedTile/2+c*8:][:8] {
						row[j] = float32(v) * scale
					}
				}
			}
		}
		b = b[packedColumns*8:]
	}
}

// unpackTile reads the codes of a tile. Codes of 4 bits are 16 apart in a byte, the first in the low half, with an
// offset of 8.
func unpackTile(codes *[packedTile]int8, b []byte, bits int) {
	if bits == 8 {
		for i, v := range b {
			codes[i] = int8(v)
		}
		return
	}
	for i, v := range b {
		at := i/16*32 + i%16
		codes[at], codes[at+16] = int8(v&15)-8, int8(v>>4)-8
	}
}
