package simd

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
