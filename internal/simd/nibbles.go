package simd

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// nibbleGroup is how many rows a panel of 4-bit weights holds together.
const nibbleGroup = 8

// Nibbles are 4-bit weights: a matrix of Groups·K rows and Cols columns, whose sums of a
// group have a scale a column, a bfloat16 number of at least 2⁻¹²². Goroutines may use them at once.
type Nibbles struct {
	Groups, K, Cols int
	Sums            []float32 // of the scaled weights of the columns, in whole panels

	panels []uint8
}

// MaxNibbleRows bounds the rows of a group: sums of 16 times the weights fit in 32 bits.
const MaxNibbleRows = 1 << 15

// Panels is how many panels there are; the last one may have columns without weights.
func (w *Nibbles) Panels() int { return (w.Cols + DotCols - 1) / DotCols }

// Bytes is the memory that the weights take.
func (w *Nibbles) Bytes() int { return len(w.panels) + 4*len(w.Sums) }

// blocks is how many times nibbleGroup rows a group has.
func (w *Nibbles) blocks() int { return (w.K + nibbleGroup - 1) / nibbleGroup }

// group is the bytes of a group of a panel: weights, and scales, 1/16 of them, in 16 bits.
func (w *Nibbles) group() int { return w.blocks()*4*DotCols + 2*DotCols }
func (w *Nibbles) panel() int { return w.Groups * w.group() }

// adjacent returns how many panels are side by side with panel p, see [nibblesAcross], and which of them it is.
func (w *Nibbles) adjacent(p int) (wide, from int) {
	from = p % nibblesAcross()
	return min(nibblesAcross(), w.Panels()-p+from), from
}

// groupAt returns the first weights of a group of panel p and its scales. The next weights are step bytes behind.
func (w *Nibbles) groupAt(p, g int) (elements, scales []uint8, step int) {
	wide, from := w.adjacent(p)
	group := w.panels[(p-from)*w.panel()+g*wide*w.group():][:wide*w.group()]
	step = 4 * DotCols * wide
	return group[4*DotCols*from:], group[w.blocks()*step+2*DotCols*from:][:2*DotCols], step
}

// Zero returns the zero point of activations that [Nibbles.PackRows] has packed, from that of the signed ones.
func (w *Nibbles) Zero(zero int32) int32 { return zero + nibbleOffset() }

// nibbleOffset is what packing adds to activations: all tiles but those of NEON multiply unsigned ones.
func nibbleOffset() int32 {
	if neon {
		return 0
	}
	return 128
}

// RowBytes is the size of a packed row of activations.
func (w *Nibbles) RowBytes() int { return w.Groups * w.blocks() * nibbleGroup }

// PackRows copies m rows of Groups·K signed activations to dst, of m·[Nibbles.RowBytes] bytes, in the order in which tiles of
// rows read them: eight elements of each row of a tile in turn, with zeros behind a group's last ones. It adds what [Nibbles.Zero]
// adds to a zero point. It returns the packed rows: dst, or a itself if that is in this order already. It panics where dst or a
// are too short.
func (w *Nibbles) PackRows(dst, a []uint8, m int) []uint8 {
	size, k := w.RowBytes(), w.Groups*w.K
	if k == size && m == 1 && nibbleOffset() == 0 {
		return a
	}
	dst, a = dst[:m*size:len(dst)], a[:m*k:len(a)]
	packed := dst
	for n := 0; m > 0; m -= n {
		n = firstNibbleRows(m)
		w.packTile(dst[:n*size], a[:n*k], n)
		dst, a = dst[n*size:], a[n*k:]
	}
	return packed
}

// packTile packs the rows of a tile of n rows.
func (w *Nibbles) packTile(dst, a []uint8, n int) {
	k := w.Groups * w.K
	for r := 0; r < n; {
		to := dst[r*nibbleGroup:]
		switch {
		case w.K%nibbleGroup != 0:
			w.packOddRow(to, a[r*k:][:k], n*nibbleGroup)
			r++
		case n-r >= 4:
			packFour(eights(to), eights(a[r*k:][:4*k]), k/nibbleGroup, n)
			r += 4
		default:
			packOne(eights(to), eights(a[r*k:][:k]), n)
			r++
		}
	}
}

// eights are the elements of a, a multiple of eight, eight in a word. Their address need not be one.
func eights(a []uint8) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(a))), len(a)/nibbleGroup)
}

// packedFlip adds [nibbleOffset] to eight activations by XOR: it flips the highest bit of each byte, or none.
func packedFlip() uint64 { return uint64(nibbleOffset()) * 0x0101010101010101 }

// packOne copies a row, whose words get step words apart.
func packOne(dst, a []uint64, step int) {
	flip := packedFlip()
	if step == 1 {
		dst = dst[:len(a)]
		for i, v := range a {
			dst[i] = v ^ flip
		}
		return
	}
	for i, v := range a {
		dst[i*step] = v ^ flip
	}
}

// packFour copies four rows of n words: the rows' first words get next to each other, and their next ones step words behind.
func packFour(dst, a []uint64, n, step int) {
	flip := packedFlip()
	first, second, third, fourth := a[:n], a[n:][:n], a[2*n:][:n], a[3*n:][:n]
	for i, v := range first {
		to := (*[4]uint64)(dst[i*step:])
		to[0], to[1], to[2], to[3] = v^flip, second[i]^flip, third[i]^flip, fourth[i]^flip
	}
}

// packOddRow is packOne for groups that are no multiple of eight rows. step is in bytes.
func (w *Nibbles) packOddRow(dst, a []uint8, step int) {
	for at := 0; len(a) > 0; a = a[w.K:] {
		for group := a[:w.K]; len(group) > 0; at += step {
			last := [nibbleGroup]uint8{}
			group = group[copy(last[:], group):]
			binary.LittleEndian.PutUint64(dst[at:], binary.LittleEndian.Uint64(last[:])^packedFlip())
		}
	}
}

// Multiply computes the columns of panels lo to hi of a product whose groups are scaled:
//
//	c[i*ldc+j] = Σ_g scale[g,16·lo+j] · float32(Σ_p v(a[i,g·K+p]) · w[g,p,16·lo+j])
//
// for i < m, g < Groups and p < K, in the order of g: a row's sums have the same bits whatever other rows there are. v(x) is x plus
// what [Nibbles.Zero] adds to a zero point: less that zero point times Sums the sum is of x less its zero point. a are rows of one
// call of [Nibbles.PackRows], in whole tiles: from a multiple of 8 rows on, up to another one or to the last row. c has
// whole panels. It panics where a or c are too short, or panels are not there.
func (w *Nibbles) Multiply(c []float32, ldc int, a []uint8, m, lo, hi int) {
	if m == 0 || lo >= hi {
		return
	}
	_, _ = a[m*w.RowBytes()-1], c[(m-1)*ldc+(hi-lo)*DotCols-1]
	_, _ = w.panels[lo*w.panel()], w.panels[hi*w.panel()-1]
	for i := range m {
		clear(c[i*ldc:][:(hi-lo)*DotCols])
	}
	switch {
	case !vector:
		w.multiplyGo(c, ldc, a, m, lo, hi)
	case vnni():
		w.multiplyAdjacent(c, ldc, a, m, lo, hi)
	default:
		w.multiply(c, ldc, a, m, lo, hi)
	}
}

func (w *Nibbles) multiplyGo(c []float32, ldc int, a []uint8, m, lo, hi int) {
	for panel := lo; panel < hi; panel++ {
		for i := range m {
			out := (*[DotCols]float32)(c[i*ldc+(panel-lo)*DotCols:])
			for g := range w.Groups {
				w.addGroup(out, panel, g, a[i*w.RowBytes()+g*w.blocks()*nibbleGroup:][:w.K])
			}
		}
	}
}

// addGroup adds a group's scaled sums to a panel's columns.
func (w *Nibbles) addGroup(out *[DotCols]float32, panel, g int, a []uint8) {
	elements, scales, step := w.groupAt(panel, g)
	for j := range out {
		sum := int32(0)
		for p, v := range a {
			pair := elements[p/nibbleGroup*step+4*j+p%4]
			sum += int32(v) * int32(int8(pair>>(4*(p/4%2))<<4))
		}
		out[j] += float32(float32(sum) * bfloat(scales[2*j:]))
	}
}

func bfloat(b []uint8) float32 {
	return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
}
