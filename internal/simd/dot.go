package simd

import (
	"encoding/binary"
	"math"
)

// Products of 8-bit elements have weights in panels of DotCols columns, whose rows are
// taken dotGroup at a time.
const (
	DotCols  = 16
	dotGroup = 4
	// dotHead is the bytes in front of a panel's weights: 128 times their sum, column by
	// column, which is what signed activations take in place of unsigned ones.
	dotHead = 4 * DotCols
)

// DotWeights are the weights of products of 8-bit elements: a matrix of Segments·K rows,
// which find their activations segment by segment, and Cols columns. Goroutines may use
// them at once.
type DotWeights struct {
	Segments, K, Cols int
	Sums              []int32 // of the columns, in whole panels

	panels []int8
}

// Panels is how many panels there are; the last one may have columns without weights.
func (w *DotWeights) Panels() int { return (w.Cols + DotCols - 1) / DotCols }

// Bytes is the memory that the weights take.
func (w *DotWeights) Bytes() int { return len(w.panels) + 4*len(w.Sums) }

// groups is the number of groups of rows of a segment.
func (w *DotWeights) groups() int { return (w.K + dotGroup - 1) / dotGroup }

// panel is the bytes of a panel.
func (w *DotWeights) panel() int { return dotHead + w.Segments*w.groups()*dotGroup*DotCols*DotBytes() }

// DotBytes returns the bytes of a weight in a panel of [DotWeights]: two where vectors multiply pairs of 16-bit elements.
func DotBytes() int {
	if dotRows() < dotGroup {
		return 2
	}
	return 1
}

// Multiply computes the columns of panels lo to hi of a product:
//
//	c[i*ldc+j] = Σ_s Σ_p u(a[rows[i]+off[s]+p]) · w[s,p,16·lo+j]    i < len(rows), s < Segments, p < K
//
// u(x) is x or, for signed activations, x + 128: less that much of Sums the sum is of x. It
// wraps around. c has whole panels. It reads up to three elements behind a segment, and
// panics where a ends before them, or c or off are too short.
func (w *DotWeights) Multiply(c []int32, ldc int, a []uint8, rows, off []int, lo, hi int, signed bool) {
	if len(rows) == 0 || lo >= hi {
		return
	}
	off = off[:w.Segments:len(off)]
	checkReach(a, rows, off, w.groups()*dotGroup)
	_, _ = c[(len(rows)-1)*ldc+(hi-lo)*DotCols-1], w.panels[hi*w.panel()-1]
	if !vector {
		w.multiplyGo(c, ldc, a, rows, off, lo, hi, signed)
		return
	}
	w.multiply(c, ldc, a, rows, off, lo, hi, flip(signed))
}

// flip is what signed bytes differ by from themselves plus 128, four at a time.
func flip(signed bool) uint32 {
	if signed {
		return 0x80808080
	}
	return 0
}

// checkReach panics where a row plus an offset and n elements reach beyond a, or before it.
func checkReach(a []uint8, rows, off []int, n int) {
	first, last := rows[0], rows[0]
	for _, r := range rows {
		first, last = min(first, r), max(last, r)
	}
	least, most := 0, 0
	if len(off) > 0 {
		least, most = off[0], off[0]
	}
	for _, o := range off {
		least, most = min(least, o), max(most, o)
	}
	_ = a[first+least:]
	_ = a[: last+most+n : len(a)]
}

func (w *DotWeights) multiplyGo(c []int32, ldc int, a []uint8, rows, off []int, lo, hi int, signed bool) {
	x := byte(flip(signed))
	for panel := lo; panel < hi; panel++ {
		b := w.panels[panel*w.panel()+dotHead:]
		for i, row := range rows {
			sums, at := (*[DotCols]int32)(c[i*ldc+(panel-lo)*DotCols:]), 0
			clear(sums[:])
			for _, o := range off {
				for p, v := range a[row+o:][:w.K] {
					u, group := int32(v^x), b[at+p/dotGroup*dotGroup*DotCols+p%dotGroup:]
					for j := range sums {
						sums[j] += u * int32(group[j*dotGroup])
					}
				}
				at += w.groups() * dotGroup * DotCols
			}
		}
	}
}

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

// beside returns how many panels are side by side with panel p, see [nibblesAcross], and which of them it is.
func (w *Nibbles) beside(p int) (wide, from int) {
	from = p % nibblesAcross()
	return min(nibblesAcross(), w.Panels()-p+from), from
}

// groupAt returns the first weights of a group of panel p and its scales. The next weights are step bytes behind.
func (w *Nibbles) groupAt(p, g int) (elements, scales []uint8, step int) {
	wide, from := w.beside(p)
	group := w.panels[(p-from)*w.panel()+g*wide*w.group():][:wide*w.group()]
	step = 4 * DotCols * wide
	return group[4*DotCols*from:], group[w.blocks()*step+2*DotCols*from:][:2*DotCols], step
}

// Zero returns the zero point of the activations that [Nibbles.Multiply] sums, from that of the ones that it is given.
func (w *Nibbles) Zero(zero int32, signed bool) int32 {
	if signed {
		zero += 128
	}
	if neon {
		zero -= 128
	}
	return zero
}

// Multiply computes the columns of panels lo to hi of a product whose groups are scaled:
//
//	c[i*ldc+j] = Σ_g scale[g,16·lo+j] · float32(Σ_p v(a[rows[i]+g·K+p]) · w[g,p,16·lo+j])
//
// for i < len(rows), g < Groups and p < K, in the order of g. v(x) is x plus what [Nibbles.Zero] adds to a zero point: less
// that zero point times Sums the sum is of x less its zero point. c has whole panels. It reads up to seven elements behind a
// row, and panics where a ends before them, or c is too short.
func (w *Nibbles) Multiply(c []float32, ldc int, a []uint8, rows []int, lo, hi int, signed bool) {
	if len(rows) == 0 || lo >= hi {
		return
	}
	checkReach(a, rows, nil, (w.Groups-1)*w.K+w.blocks()*nibbleGroup)
	_, _ = c[(len(rows)-1)*ldc+(hi-lo)*DotCols-1], w.panels[hi*w.panel()-1]
	if !vector {
		w.multiplyGo(c, ldc, a, rows, lo, hi, signed)
		return
	}
	w.multiply(c, ldc, a, rows, lo, hi, flip(signed))
}

func (w *Nibbles) multiplyGo(c []float32, ldc int, a []uint8, rows []int, lo, hi int, signed bool) {
	x := byte(flip(signed))
	for panel := lo; panel < hi; panel++ {
		for i, row := range rows {
			out := (*[DotCols]float32)(c[i*ldc+(panel-lo)*DotCols:])
			clear(out[:])
			for g := range w.Groups {
				w.addGroup(out, panel, g, a[row+g*w.K:][:w.K], x)
			}
		}
	}
}

// addGroup adds a group's scaled sums to a panel's columns.
func (w *Nibbles) addGroup(out *[DotCols]float32, panel, g int, a []uint8, flip byte) {
	elements, scales, step := w.groupAt(panel, g)
	for j := range out {
		sum := int32(0)
		for p, v := range a {
			pair := elements[p/nibbleGroup*step+4*j+p%4]
			sum += int32(v^flip) * int32(int8(pair>>(4*(p/4%2))<<4))
		}
		out[j] += float32(float32(sum) * bfloat(scales[2*j:]))
	}
}

func bfloat(b []uint8) float32 {
	return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
}
