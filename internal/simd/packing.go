package simd

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"
)

// Weights are packed column by column into words of four bytes, which is what a column has of each group of
// rows; the words of a panel's columns are then transposed. All instruction sets have a loop for that.

// PackedLayout identifies the layouts of packed weights on this processor. They are the same wherever it is the same.
func PackedLayout() string {
	return fmt.Sprint(level, " ", DotBytes(), " ", Interleaves() || matrixProducts())
}

// DotSize returns the size in bytes of [DotWeights]: of their panels and Sums.
func DotSize(cols, segments, k int) int {
	w := DotWeights{Segments: segments, K: k, Cols: cols}
	return w.Panels() * (w.panel() + 4*DotCols)
}

// NewDot returns weights that [DotWeights.Pack] sets. They retain data, of [DotSize] bytes, aligned to 4 bytes.
// segments and k are at least 1.
func NewDot(data []uint8, cols, segments, k int) *DotWeights {
	w := &DotWeights{Segments: segments, K: k, Cols: cols}
	panels, sums := w.Panels()*w.panel(), w.Panels()*DotCols
	data = data[:panels+4*sums]
	w.panels = unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(data))), panels)
	w.Sums = unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(data[panels:]))), sums)
	return w
}

// Pack sets the columns of panels [lo, hi). column returns the segments·k elements of column j, in buffer, which
// has as many, or elsewhere. Goroutines may pack different panels at once.
func (w *DotWeights) Pack(lo, hi int, column func(buffer []int8, j int) []int8) {
	words, own := w.Segments*w.groups()*DotBytes(), packBuffers.Get().(*packBuffer)
	defer packBuffers.Put(own)
	columns, buffer := own.columns(DotCols*words), own.column(w.Segments*w.K)
	for p := lo; p < hi; p++ {
		panel := w.panels[p*w.panel():][:w.panel()]
		for i := range DotCols {
			to, j := columns[i*words:][:words], p*DotCols+i
			if j >= w.Cols {
				clear(to)
				w.Sums[j] = 0
				continue
			}
			elements := column(buffer, j)[:len(buffer)]
			w.words(to, elements)
			w.Sums[j] = sumBytes(elements)
			binary.LittleEndian.PutUint32(bytesOf(panel[4*i:]), 128*uint32(w.Sums[j]))
		}
		transposeColumns(wordsOf(bytesOf(panel[dotHead:])), columns, words, words)
		if matrixProducts() {
			w.pairGroups(wordsOf(bytesOf(panel[dotHead:])))
		}
	}
}

// pairGroups puts the words of a column next to each other, of two groups of rows of a segment at a time.
func (w *DotWeights) pairGroups(panel []uint32) {
	for range w.Segments {
		for range w.groups() / 2 {
			first, second := [DotCols]uint32(panel), [DotCols]uint32(panel[DotCols:])
			for j := range DotCols {
				panel[2*j], panel[2*j+1] = first[j], second[j]
			}
			panel = panel[2*DotCols:]
		}
		panel = panel[w.groups()%2*DotCols:]
	}
}

// packBuffer is the memory of a call of Pack: the words of a panel's columns, and the elements of one.
type packBuffer struct {
	words    []uint32
	elements []int8
}

// packBuffers are reused: filters are packed in many parts.
var packBuffers = sync.Pool{New: func() any { return new(packBuffer) }}

func (b *packBuffer) columns(n int) []uint32 {
	b.words = slices.Grow(b.words[:0], n)
	return b.words[:n]
}

func (b *packBuffer) column(n int) []int8 {
	b.elements = slices.Grow(b.elements[:0], n)
	return b.elements[:n]
}

// words stores a column's elements, segment by segment in whole groups. dst has zeros where no element is stored.
func (w *DotWeights) words(dst []uint32, elements []int8) {
	if DotBytes() == 2 {
		w.wideWords(dst, elements)
		return
	}
	if w.K%dotGroup != 0 {
		clear(dst)
	}
	to := bytesOf(dst)
	for s := range w.Segments {
		copy(to[s*w.groups()*dotGroup:], bytesOf(elements[s*w.K:][:w.K]))
	}
}

// wideWords stores elements of two bytes.
func (w *DotWeights) wideWords(dst []uint32, elements []int8) {
	clear(dst)
	each := 2 * w.groups()
	for s := range w.Segments {
		to, from := dst[s*each:][:each], elements[s*w.K:][:w.K]
		for len(from) >= 2 {
			to[0] = uint32(uint16(from[0])) | uint32(from[1])<<16
			to, from = to[1:], from[2:]
		}
		if len(from) > 0 {
			to[0] = uint32(uint16(from[0]))
		}
	}
}

// transposeColumns writes n words of each of DotCols columns, row by row. Columns are step words apart.
func transposeColumns(dst, columns []uint32, n, step int) {
	done := n &^ 7
	Transpose(dst, columns, DotCols, done, DotCols, step)
	for i := done; i < n; i++ {
		for j := range DotCols {
			dst[i*DotCols+j] = columns[j*step+i]
		}
	}
}

// sumBytes returns the sum of x, which wraps around. It adds 8 elements at a time, in lanes of 16 bits that have
// room for 128 such sums.
func sumBytes(x []int8) int32 {
	const low, signs, most = 0x00ff00ff00ff00ff, 0x8080808080808080, 128
	b, sum := bytesOf(x), int32(0)
	for len(b) >= 8 {
		n := min(len(b)/8, most)
		lanes := uint64(0)
		for i := 0; i < 8*n; i += 8 {
			v := binary.LittleEndian.Uint64(b[i:]) ^ signs // elements plus 128
			lanes += v&low + v>>8&low
		}
		sum += int32(lanes&0xffff+lanes>>16&0xffff+lanes>>32&0xffff+lanes>>48) - 128*8*int32(n)
		b = b[8*n:]
	}
	for _, v := range b {
		sum += int32(int8(v))
	}
	return sum
}

// NibblesSize returns the size in bytes of [Nibbles]: of their panels and Sums.
func NibblesSize(cols, groups, k int) int {
	w := Nibbles{Groups: groups, K: k, Cols: cols}
	return w.Panels() * (w.panel() + 4*DotCols)
}

// NewNibbles returns weights that [Nibbles.Pack] sets. They retain data, of [NibblesSize] bytes, aligned to 4
// bytes. k is 1 to MaxNibbleRows.
func NewNibbles(data []uint8, cols, groups, k int) *Nibbles {
	w := &Nibbles{Groups: groups, K: k, Cols: cols}
	panels, sums := w.Panels()*w.panel(), w.Panels()*DotCols
	data = data[:panels+4*sums]
	w.panels = data[:panels]
	w.Sums = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(data[panels:]))), sums)
	return w
}

// Pack sets the columns of panels [lo, hi) from rows of src, one for each column: groups·k elements plus 8, two in
// a byte, the first in its lower half. A row begins at a byte. scales are those of the groups of each column, the upper halves of
// float32 numbers, see [Nibbles]; nil if all are 1. Goroutines may pack different panels at once.
func (w *Nibbles) Pack(lo, hi int, src []uint8, scales []uint16) {
	row := (w.Groups*w.K + 1) / 2
	for p := lo; p < hi; p++ {
		cols := min(DotCols, w.Cols-p*DotCols)
		of, own := scales, src[p*DotCols*row:][:cols*row]
		if of != nil {
			of = of[p*DotCols*w.Groups:][:cols*w.Groups]
		}
		if cols == DotCols && w.K%nibbleGroup == 0 {
			w.packPanel(p, own, of)
		} else {
			for i := range cols {
				w.Sums[p*DotCols+i] = w.packColumn(p, i, own[i*row:][:row], of)
			}
		}
		for i := cols; i < DotCols; i++ {
			w.clearColumn(p, i)
		}
		if matrixProducts() {
			for g := range w.Groups {
				elements, _, _ := w.groupAt(p, g)
				pairColumns(wordsOf(elements)[:w.blocks()*DotCols])
			}
		}
	}
}

// packColumn sets column i of a panel, whose scales are given, and returns the sum of its scaled weights.
func (w *Nibbles) packColumn(p, i int, row []uint8, scales []uint16) float32 {
	sum := 0.0
	for g := range w.Groups {
		elements, to, step := w.groupAt(p, g)
		total := w.column(wordsOf(elements[4*i:]), step/4, row, g)
		sum += setScale(to[2*i:], scales, i*w.Groups+g, total)
	}
	return float32(sum)
}

// setScale stores 1/16 of scales[i], or of 1 if there are none, and returns a sum of weights times the scale.
func setScale(to []uint8, scales []uint16, i int, sum int32) float64 {
	scale := uint16(0x3f80)
	if scales != nil {
		scale = scales[i]
	}
	bits := math.Float32bits(math.Float32frombits(uint32(scale)<<16)/16) >> 16
	binary.LittleEndian.PutUint16(to, uint16(bits))
	return float64(16*sum) * float64(math.Float32frombits(bits<<16))
}

// packedWords is how many words, of eight elements each, of all columns are packed before the next ones: they stay in the cache.
const packedWords = 128

// packPanel sets a panel of DotCols columns whose groups are multiples of eight rows.
func (w *Nibbles) packPanel(p int, src []uint8, scales []uint16) {
	var rows [packedWords * DotCols]uint32
	var totals [DotCols]int32
	var sums [DotCols]float64
	words, blocks := w.Groups*w.blocks(), w.blocks()
	columns := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(src))), DotCols*words)
	for at := 0; at < words; at += packedWords {
		chunk := min(packedWords, words-at)
		transposeColumns(rows[:], columns[at:], chunk, words)
		for i := 0; i < chunk; {
			g, b := (at+i)/blocks, (at+i)%blocks
			n := min(blocks-b, chunk-i)
			elements, to, step := w.groupAt(p, g)
			storeWords(n, elements[b*step:], step, rows[i*DotCols:], &totals)
			if i += n; b+n == blocks {
				w.setScales(to, scales, g, &totals, &sums)
				clear(totals[:])
			}
		}
	}
	for j, sum := range sums {
		w.Sums[p*DotCols+j] = float32(sum)
	}
}

// storeWords stores n words of each column, step bytes apart, and adds their elements, with a zero point of 8, to sums.
func storeWords(n int, dst []uint8, step int, src []uint32, sums *[DotCols]int32) {
	_, _ = dst[(n-1)*step+4*DotCols-1], src[n*DotCols-1]
	if vector {
		packNibbles(n, &dst[0], step, &src[0], &sums[0])
		return
	}
	for i := range n {
		for j, v := range src[i*DotCols:][:DotCols] {
			sums[j] += int32((v&0x0f0f0f0f + v>>4&0x0f0f0f0f) * 0x01010101 >> 24)
			binary.LittleEndian.PutUint32(dst[i*step+4*j:], interleave(v))
		}
	}
}

// setScales is setScale for all columns of a panel.
func (w *Nibbles) setScales(to []uint8, scales []uint16, g int, totals *[DotCols]int32, sums *[DotCols]float64) {
	to = to[:2*DotCols]
	zero := 8 * int32(w.K)
	for j, total := range totals {
		sums[j] += setScale(to[2*j:], scales, g, total-zero)
		g += w.Groups
	}
}

// clearColumn clears a column without weights.
func (w *Nibbles) clearColumn(p, i int) {
	w.Sums[p*DotCols+i] = 0
	for g := range w.Groups {
		elements, scales, step := w.groupAt(p, g)
		clear(scales[2*i:][:2])
		for b := range w.blocks() {
			clear(elements[b*step+4*i:][:4])
		}
	}
}

// pairColumns puts the eight elements of each of four columns, a word each, into halves of bytes: those of the first two into
// lower ones, and of the other two into upper ones.
func pairColumns(words []uint32) {
	const low, high = 0x0f0f0f0f, 0xf0f0f0f0
	for ; len(words) >= 4; words = words[4:] {
		a, b, c, d := words[0], words[1], words[2], words[3]
		words[0], words[1] = a&low|c&low<<4, a>>4&low|c&high
		words[2], words[3] = b&low|d&low<<4, b>>4&low|d&high
	}
}

// interleave changes the order of the eight elements of v from 0 to 7 to 0 4 1 5 2 6 3 7, and their zero point from 8 to 0.
func interleave(v uint32) uint32 {
	t := (v ^ v>>8) & 0x0000ff00
	v ^= t ^ t<<8 // 0 1 4 5 2 3 6 7
	t = (v ^ v>>4) & 0x00f000f0
	return v ^ t ^ t<<4 ^ 0x88888888
}

// column stores the elements of a column's group, step words apart, and returns their sum. The elements i and i+4 of eight
// share a byte of a word.
func (w *Nibbles) column(dst []uint32, step int, row []uint8, group int) (sum int32) {
	for b := range w.blocks() {
		word := uint32(0)
		for i := range min(nibbleGroup, w.K-b*nibbleGroup) {
			at := group*w.K + b*nibbleGroup + i
			v := uint32(row[at/2]>>(4*(at&1))&15) ^ 8
			sum += int32(v<<28) >> 28
			word |= v << (8*(i%4) + 4*(i/4))
		}
		dst[b*step] = word
	}
	return sum
}

// bytesOf and wordsOf return the memory of a slice; that of words must be aligned.
func bytesOf[T int8 | uint32](s []T) []uint8 {
	return unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

func wordsOf(b []uint8) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
