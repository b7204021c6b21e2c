package pool

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// planar pools contiguous planes, a tile of output rows at a time: it combines the input rows that each output row reads to
// one, and then the columns of that. Columns one or two apart are vectors of adjacent elements, in padded rows, whose even and
// odd columns are separated. Others become so by a transposition: then rows are lanes. Taps outside of the input are left
// out of rows, and of columns in lanes.
type planar[T tensor.Compute] struct {
	pooling
	mean   bool   // else the largest element, NaN if there is one
	empty  T      // the result of windows without elements, and what padding holds
	shares [3][]T // of means: what the length of each window along a dimension counts for in its divisor
	even   T      // the divisor of all windows, 0 where they differ
	x, y   []T    // input and output

	rows, count int  // output rows of a tile: of whole planes, or of count tiles of one plane
	across      bool // a tile has so many planes that a row of all of them is combined at a time
	transpose   bool
	lanes       int // of a tile's rows that become those: a multiple of 8, or 1 where nothing has to be transposed
	left, pitch int // padding in front of a row of combined rows, and the distance of those
	size        int // of a matrix
	lists       int // the most input rows that an output row reads

	matrices []T   // two of rows for each worker
	divisors []T   // of a tile, for each worker
	lines    []int // offsets of the input rows that an output row reads, for each worker
	columns  []int // of the columns of a window, from the first one on
}

// planarSize is the preferred number of elements of a tile, tileWork the largest one that a call of a vector loop reads unless
// a single row has more. leastLanes is the number of rows that fills vectors, and maxColumns the largest number of columns of
// a window in padded rows.
const planarSize, tileWork, leastLanes, maxColumns = 1 << 12, 1 << 20, 16, 64

// outRows is the number of output rows of a plane.
func (p *planar[T]) outRows() int { return p.Out[0] * p.Out[1] }

// run pools x into y. It may change the geometry.
func (p *planar[T]) run(c *kernels.Ctx) {
	if !p.adaptive && (p.even != 0 || !p.mean) { // rows of all planes are alike
		p.stack()
	}
	p.columns = p.columns[:0]
	p.transpose = p.adaptive || p.Stride[2] > 2 || p.Kernel[2] > maxColumns || p.Pad[2]+p.Extent(2) > 2*p.In[2]+maxColumns
	if p.transpose {
		p.planLanes(c)
	} else {
		p.planPadded(c)
	}
	threads := c.Threads()
	p.matrices = kernels.Scratch[T](c, 2*threads*p.size)
	if p.mean {
		p.divisors = kernels.Scratch[T](c, threads*p.rows*p.Out[2])
		simd.Fill(p.divisors, p.even)
		invert(p.divisors)
	}
	p.lists = p.longest(0) * p.longest(1)
	p.lines = pack.Grow(p.lines, threads*p.lists)
	c.Parallel(p.units(), cpu.Grain(p.rows*p.rowWork(), tapCost), p)
	p.x, p.y, p.matrices, p.divisors, p.shares = nil, nil, nil, nil, [3][]T{}
}

// planPadded plans tiles of padded rows.
func (p *planar[T]) planPadded(c *kernels.Ctx) {
	s := p.Stride[2]
	p.left = p.Pad[2]
	p.pitch = max(p.left+p.In[2], (p.Out[2]-1)*s+p.Extent(2))
	p.pitch += p.pitch & (s - 1)
	p.divide(c, max(planarSize/p.pitch, 1), 1)
	p.size = p.rows * p.pitch
	for k := range p.Kernel[2] {
		at := k * p.Dilate[2]
		p.columns = append(p.columns, at%s*(p.size/s)+at/s)
	}
}

// planLanes plans tiles whose rows become lanes, or tiles of one row where rows are long.
func (p *planar[T]) planLanes(c *kernels.Ctx) {
	p.left, p.pitch, p.lanes = 0, eights(p.In[2]), 1
	width := max(p.pitch, eights(p.Out[2]))
	if width <= maxTile/leastLanes {
		p.divide(c, max(planarSize/p.In[2], leastLanes), 8)
		p.lanes = eights(p.rows)
	} else {
		p.divide(c, 1, 1)
	}
	p.size = p.lanes * width
	for k := range p.longest(2) {
		p.columns = append(p.columns, k*p.Dilate[2]*p.lanes)
	}
}

// rowWork is the number of elements that an output row is computed from.
func (p *planar[T]) rowWork() int { return p.Out[2] * p.longest(0) * p.longest(1) * p.longest(2) }

// divide divides the output into tiles of about so many rows, or fewer if that leaves threads idle. Those of a part of a plane
// have a multiple of unit.
func (p *planar[T]) divide(c *kernels.Ctx, rows, unit int) {
	out := p.outRows()
	all := p.planes * out
	if threads := c.Threads(); threads > 1 {
		rows = min(rows, max((all+threads-1)/threads, cpu.Grain(p.rowWork(), tapCost)))
	}
	if p.rows, p.count = min(rows, all), 1; p.rows >= out {
		p.rows -= p.rows % out
	} else {
		n := (out + rows - 1) / rows
		p.rows = min(((out+n-1)/n+unit-1)/unit*unit, out)
		p.count = (out + p.rows - 1) / p.rows
	}
	p.across = p.rows/out > out/4
}

// units returns the number of tiles.
func (p *planar[T]) units() int {
	if p.count > 1 {
		return p.planes * p.count
	}
	return (p.planes*p.outRows() + p.rows - 1) / p.rows
}

// tileRows returns the first row of a tile and their number.
func (p *planar[T]) tileRows(i int) (row, n int) {
	out := p.outRows()
	if p.count > 1 {
		row = i % p.count * p.rows
		return i/p.count*out + row, min(p.rows, out-row)
	}
	return i * p.rows, min(p.rows, p.planes*out-i*p.rows)
}

// eights rounds up to a multiple of 8, as transpositions want.
func eights(n int) int { return (n + 7) &^ 7 }

// Range pools tiles [lo, hi).
func (p *planar[T]) Range(worker, lo, hi int) {
	m, lines := p.matrices[2*worker*p.size:][:2*p.size], p.lines[worker*p.lists:][:p.lists]
	a, b := m[:p.size], m[p.size:]
	if !p.transpose && p.pitch > p.In[2] {
		simd.Fill(a, p.empty)
	}
	var by divisors[T]
	if p.divisors != nil {
		by.list = p.divisors[worker*p.rows*p.Out[2]:][:p.rows*p.Out[2]]
	}
	for i := lo; i < hi; i++ {
		row, n := p.tileRows(i)
		y := p.y[row*p.Out[2]:][:n*p.Out[2]]
		p.combineRows(lines, a[p.left:], row, n)
		if p.transpose {
			p.combineLanes(y, a, b, n)
		} else {
			p.combinePadded(y, a, b, n)
		}
		if p.mean {
			p.divideTile(&by, y, row, n)
		}
	}
}

// combinePadded combines the columns of n rows a in place, or separated into even and odd ones in b.
func (p *planar[T]) combinePadded(y, a, b []T, n int) {
	s, half := p.Stride[2], p.size/2
	if s == 2 {
		m := n * p.pitch / 2
		simd.Stride2Rows(b, a, 1, m, 0, 0)
		simd.Stride2Rows(b[half:], a[1:], 1, m, 0, 0)
		a = b
	}
	p.combine(y, a, p.columns, n, p.Out[2], p.Out[2], p.pitch/s)
}

// combineLanes combines the columns of n rows a as lanes, in b, and uses a again.
func (p *planar[T]) combineLanes(y, a, b []T, n int) {
	lanes, cols, width := p.lanes, p.Out[2], eights(p.Out[2])
	if lanes == 1 {
		a, b = y, a
	} else {
		simd.Transpose(b, a, lanes, p.pitch, lanes, p.pitch)
	}
	for j := 0; j < cols; {
		p.c.Poll()
		first, taps := p.span(2, j)
		alike := p.alike(2, j, taps, taps*lanes)
		p.combine(a[j*lanes:], b[min(first*lanes, len(b)):], p.columns[:taps], alike, lanes, lanes, p.Stride[2]*lanes)
		j += alike
	}
	if lanes > 1 {
		simd.Transpose(b, a, width, lanes, width, lanes)
		simd.CopyRows(y, b, n, cols, cols, width)
	}
}

// combineRows combines the input rows of n output rows from row on, to rows that are pitch apart.
func (p *planar[T]) combineRows(list []int, dst []T, row, n int) {
	points, end := window.Volume(p.In), n
	if p.across {
		end = p.outRows()
	}
	for r := 0; r < end; {
		p.c.Poll()
		plane, d, h := p.point(row + r)
		lines, tall := p.listLines(list, d, h)
		x, y := p.x[plane*points:], dst[r*p.pitch:]
		if p.across {
			p.combine(y, x, lines, n/end, p.In[2], end*p.pitch, points)
			r++
			continue
		}
		alike := min(p.alike(1, h, tall, len(lines)*p.In[2]), n-r)
		p.combine(y, x, lines, alike, p.In[2], p.pitch, p.Stride[1]*p.In[2])
		r += alike
	}
}

// listLines lists the offsets in a plane of the input rows that an output row reads, and returns the height of its windows.
func (p *planar[T]) listLines(list []int, d, h int) (lines []int, tall int) {
	z, deep := p.span(0, d)
	y, tall := p.span(1, h)
	lines = list[:0]
	for k := range deep {
		for i := range tall {
			lines = append(lines, p.place(z+k*p.Dilate[0], y+i*p.Dilate[1], 0))
		}
	}
	return lines, tall
}

// combine combines the taps of rows of n elements, which are ys apart in y and xs in x.
func (p *planar[T]) combine(y, x []T, off []int, rows, n, ys, xs int) {
	if ys == n && xs == n { // adjacent
		rows, n = 1, rows*n
	}
	switch {
	case len(off) == 0:
		for i := range rows {
			simd.Fill(y[i*ys:][:n], p.empty)
		}
	case p.mean:
		simd.SumTaps(y, x, off, rows, n, ys, xs)
	default:
		simd.MaxTaps(y, x, off, rows, n, ys, xs)
	}
}

// divisors are those of output rows [row, end) of a plane, for float32 their reciprocals.
type divisors[T tensor.Compute] struct {
	list     []T
	row, end int
}

// divideTile divides the sums of n output rows from row on: of planes, or of a part of one.
func (p *planar[T]) divideTile(by *divisors[T], y []T, row, n int) {
	row %= p.outRows()
	if n = min(n, p.outRows()); p.even == 0 && (row != by.row || row+n != by.end) {
		p.fillDivisors(by.list[:n*p.Out[2]], row)
		by.row, by.end = row, row+n
	}
	for size := n * p.Out[2]; len(y) > 0; y = y[size:] {
		divide(y[:size], by.list)
	}
}

// fillDivisors computes the divisors of output rows from row of a plane on.
func (p *planar[T]) fillDivisors(dst []T, row int) {
	var last T
	for i := range len(dst) / p.Out[2] {
		_, d, h := p.point(row + i)
		row, tall := dst[i*p.Out[2]:][:p.Out[2]], p.shares[0][d]*p.shares[1][h]
		if i > 0 && tall == last {
			copy(row, dst[(i-1)*p.Out[2]:])
			continue
		}
		for j, wide := range p.shares[2] {
			row[j] = tall * wide
		}
		last = tall
	}
	invert(dst)
}

// invert replaces divisors by what divide expects: for float32 their reciprocals.
func invert[T tensor.Compute](by []T) {
	if f, ok := any(by).([]float32); ok {
		simd.Reciprocal(f, f)
	}
}

// divide divides by divisors, for float32 by multiplication with their reciprocals.
func divide[T tensor.Compute](y, by []T) {
	if y, ok := any(y).([]float32); ok {
		simd.Mul(y, y, any(by).([]float32)[:len(y)])
		return
	}
	for i := range y {
		y[i] /= by[i]
	}
}
