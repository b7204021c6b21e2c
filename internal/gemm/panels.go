// Package gemm (no compatibility promise) multiplies matrices: [Product] divides a batch of
// products into tiles for threads, with a second matrix that is in memory or generated in blocks;
// [Panels] is a second matrix that is packed once and used many times; [MulTransposed] multiplies
// by a transposed matrix.
package gemm

import (
	"math"

	"github.com/etrun-go/etrun/internal/simd"
)

// Panels is a K×N matrix of float32, packed for products: panels of [simd.PanelCols] columns, one
// after the other, each dense. The last panel has the remaining columns, rounded up to a quarter of
// a panel; columns beyond N are unused. If few columns remain beyond whole halves, they may be
// interleaved, as [simd.MulAddInterleaved] reads them, behind the panels.
type Panels struct {
	K, N  int
	run   int  // rows of a run, a divisor of K; runs start at a step of their own in interleaved columns
	wide  int  // columns in panels
	mixed bool // there are interleaved columns
	data  []float32
}

const (
	cols          = simd.PanelCols
	half, quarter = cols / 2, cols / 4
)

// Size returns the number of elements of a packed k×n matrix whose rows are in runs; see [Pack]. It
// panics if k is not a multiple of run.
func Size(k, n, run int) int {
	m := layout(k, n, run)
	return m.size()
}

// minRun is the minimum number of rows of a run that is not whole steps of interleaved columns.
const minRun = 8

// layout returns a matrix without elements.
func layout(k, n, run int) Panels {
	m := Panels{K: k, N: n, run: max(run, 1), wide: (n + quarter - 1) / quarter * quarter}
	if k%m.run > 0 {
		panic("gemm: runs of a length that does not divide the number of rows")
	}
	rest := n % half
	divided := m.run%part > 0 && (m.run < minRun || m.run < k && k > Depth)
	if m.mixed = simd.Interleaves() && k > 0 && rest > 0 && rest <= simd.MaxInterleaved && !divided; m.mixed {
		m.wide = n - rest
	}
	return m
}

func (m *Panels) size() int { return m.K*m.wide + m.interleaved(m.K) }

// interleaved returns the number of interleaved elements of the first k rows, which are whole runs, or
// a multiple of [Part] rows of one.
func (m *Panels) interleaved(k int) int {
	if !m.mixed {
		return 0
	}
	return simd.InterleavedSize(k/m.run, m.run) + simd.InterleavedSize(1, k%m.run)
}

// Place returns a k×n matrix of one run in data, of [Size] elements, which [Panels.Repack] sets.
func Place(data []float32, k, n int) Panels {
	m := layout(k, n, k)
	m.data = data
	return m
}

// Pack packs a k×n matrix: element (p, j) is src[p·row+j·col]. row or col must be 1. Products of parts
// of the rows are of whole runs of the given number of rows, or of multiples of [Part] rows of one.
// It panics if src is too short, or if k is not a multiple of run.
func Pack(src []float32, k, n, run, row, col int) *Panels {
	return packIn(make([]float32, Size(k, n, run)), src, k, n, run, row, col)
}

// packIn is Pack into the first [Size] elements of data, which the matrix retains.
func packIn(data, src []float32, k, n, run, row, col int) *Panels {
	m := New(data, k, n, run)
	m.Repack(src, row, col)
	return m
}

// New returns a matrix in the first [Size] elements of data, which it retains; see [Pack]. [Panels.Repack] and
// [Panels.RepackPart] set it.
func New(data []float32, k, n, run int) *Panels {
	m := layout(k, n, run)
	m.data = data[:m.size()]
	return &m
}

// Size returns the number of elements of the packed matrix.
func (m *Panels) Size() int { return len(m.data) }

// Repack replaces the elements; see [Pack].
func (m *Panels) Repack(src []float32, row, col int) { m.RepackPart(src, row, col, 0, m.Panels()) }

// RepackPart replaces the elements of panels [from, to). Goroutines may replace different ones at once.
func (m *Panels) RepackPart(src []float32, row, col, from, to int) {
	for j := from * cols; j < min(to*cols, m.N, m.wide); j += cols {
		panel, pitch := m.panel(j)
		n := min(cols, m.N-j, m.wide-j)
		if col == 1 {
			simd.CopyRows(panel, src[j:], m.K, n, pitch, row)
		} else {
			transpose(panel, src[j*col:], n, m.K, pitch, col)
		}
	}
	if m.mixed && to == m.Panels() {
		simd.PackInterleaved(m.data[m.K*m.wide:], src[m.wide*col:], m.N-m.wide, m.K/m.run, m.run, row, col)
	}
}

// transpose copies n rows of k elements as columns.
func transpose(dst, src []float32, n, k, pitch, row int) {
	whole, depth := n&^7, k&^7
	simd.Transpose(dst, src, whole, depth, pitch, row)
	for j := range n {
		p := depth
		if j >= whole {
			p = 0
		}
		for ; p < k; p++ {
			dst[p*pitch+j] = src[j*row+p]
		}
	}
}

// panel returns the panel that starts at column j, and its row stride.
func (m *Panels) panel(j int) (data []float32, pitch int) {
	pitch = min(cols, m.wide-j)
	return m.data[j*m.K:][:m.K*pitch], pitch
}

// Panels returns the number of panels.
func (m *Panels) Panels() int { return (m.N + cols - 1) / cols }

// Depth is how many rows of a panel are used at a time: they stay in the first-level cache during a
// pass over rows of a.
const Depth = 384

// Mul multiplies rows of a by the columns of panels [from, to), adds bias to each row and clamps
// the sums to [lo, hi]; NaN is preserved:
//
//	c[i*ldc+j] = clamp(bias[j] + Σ_p a[i*lda+p]·m[p,j])    i < rows
//
// c and bias are indexed by the columns of the whole matrix; bias has N elements. It panics if a
// slice is too short.
func (m *Panels) Mul(rows int, a []float32, lda int, bias, c []float32, ldc int, lo, hi float32, from, to int) {
	if rows == 1 && m.K > 0 {
		from = m.mulRow(a, bias, c, lo, hi, from, to)
	}
	start, lds, inf := bias, 0, float32(math.Inf(1))
	for p := 0; p == 0 || p < m.K; p += Depth {
		k, low, high := min(Depth, m.K-p), -inf, inf
		if p+k == m.K {
			low, high = lo, hi
		}
		m.MulAdd(rows, p, k, a[min(p, len(a)):], lda, start, lds, c, ldc, low, high, from, to)
		start, lds = c, ldc
	}
}

// mulRow multiplies one row by whole panels as long as that is fast, and returns the next panel.
func (m *Panels) mulRow(a, bias, c []float32, lo, hi float32, from, to int) int {
	whole := min(to, m.N/cols)
	if whole <= from {
		return from
	}
	at := from * cols
	return from + simd.RowPanels(whole-from, m.K, a, m.data[at*m.K:], m.K*cols, bias[at:], c[at:], lo, hi)
}

// part is the number of rows of a run that parts of it must be multiples of, if they do not end it.
const part = simd.MaxInterleaved

// MulAdd is a part of [Panels.Mul]: it multiplies rows of a by rows [p, p+k) of panels [from, to),
// adds the sums to rows of start and clamps the results:
//
//	c[i*ldc+j] = clamp(start[i*lds+j] + Σ_q a[i*lda+q]·m[p+q,j])    i < rows, q < k
//
// start may be c, with the same stride; an lds of 0 adds one row to all.
func (m *Panels) MulAdd(rows, p, k int, a []float32, lda int, start []float32, lds int, c []float32, ldc int,
	lo, hi float32, from, to int) {
	m.MulAddRuns(rows, p, 1, k, a, lda, k, start, lds, c, ldc, lo, hi, from, to)
}

// MulAddRuns is MulAdd for rows of a that are several runs of k elements, which start stride elements
// apart. With more than one, k must be the number of rows of the matrix's runs. One may be several
// of the matrix's runs.
func (m *Panels) MulAddRuns(rows, p, runs, k int, a []float32, lda, stride int, start []float32, lds int, c []float32, ldc int,
	lo, hi float32, from, to int) {
	if runs == 1 && k > m.run && m.mixed && m.run%part > 0 {
		runs, k, stride = k/m.run, m.run, m.run
	}
	for q := from; q < to; q++ {
		j := q * cols
		if n := min(cols, m.N-j, m.wide-j); n > 0 {
			panel, pitch := m.panel(j)
			simd.MulAddRuns(rows, n, runs, k, a, lda, stride, panel[p*pitch:], pitch, start[j:], lds, c[j:], ldc, lo, hi, len(panel))
		}
	}
	if j := m.wide; to == m.Panels() && from < to && m.mixed {
		b := m.data[m.K*j+m.interleaved(p):]
		simd.MulAddInterleaved(rows, m.N-j, runs, k, a, lda, stride, b, start[j:], lds, c[j:], ldc, lo, hi)
	}
}

// FewRows is the number of rows up to which packing the matrix that they are multiplied by does not
// pay off; BenchmarkRowDots of package simd compares both ways.
const FewRows = 8

// TransposedWork returns how many elements of work [MulTransposed] needs for sums of k products.
func TransposedWork(k int) int { return min(k, Depth) * cols }

// MulTransposed multiplies rows of a by rows of b:
//
//	c[i*ldc+j] = Σ_p a[i*lda+p]·b[j*ldb+p]    i < m, j < n, p < k
//
// Rows of b are transposed into work, a part of a panel at a time. It panics if a slice or work is
// too short; up to FewRows rows need no work.
func MulTransposed(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, work []float32) {
	if m <= FewRows {
		simd.RowDots(m, n, k, a, lda, b, ldb, c, ldc)
		return
	}
	for j := 0; j < n; j += cols {
		w, start, lds := min(cols, n-j), zeros[:], 0
		for p := 0; p == 0 || p < k; p += Depth {
			part := min(Depth, k-p)
			transpose(work, b[j*ldb+p:], w, part, cols, ldb)
			simd.MulAddTo(m, w, part, a[p:], lda, 1, work, cols, start, lds, c[j:], ldc)
			start, lds = c[j:], ldc
		}
	}
}

var zeros [cols]float32
