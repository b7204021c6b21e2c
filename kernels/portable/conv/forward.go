package conv

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// runForward computes a convolution as products, one for each image and group: weights
// [out, taps] by columns [taps, points].
func (p *pass[T]) runForward(c *kernels.Ctx) {
	g := &p.product
	g.Batch, g.M, g.N = p.batch*p.groups, p.outChannels/p.groups, window.Volume(p.Out)
	g.K = p.inChannels / p.groups * window.Volume(p.Kernel)
	g.A, g.ARow, g.ACol, g.AEach, g.AMatrices = p.w, g.K, 1, g.M*g.K, p.groups
	g.RowBias, g.C = p.bias, p.y
	if g.B, g.BRow, g.BEach, g.Columns = p.x, g.N, g.K*g.N, nil; !p.pointwise() {
		p.split()
		taps := window.Volume(p.Kernel)
		p.table = min(taps, tapTable)
		p.taps = slices.Grow(p.taps[:0], c.Threads()*p.table)[:c.Threads()*p.table]
		p.tapsOf = slices.Grow(p.tapsOf[:0], c.Threads())[:c.Threads()]
		for i := range p.tapsOf {
			p.tapsOf[i] = -1
		}
		g.Columns, g.Blocks = (*columns[T])(p), p.points.count
	}
	g.Scratch = kernels.Scratch[T](c, g.Plan(c.Threads()))
	c.Parallel(g.Tiles, g.Grain, g)
	g.A, g.B, g.C, g.RowBias, g.Scratch = nil, nil, nil, nil, nil
}

// pointwise reports whether each output point reads exactly one input point, at the same position.
func (s *shape) pointwise() bool {
	one, zero := [3]int{1, 1, 1}, [3]int{}
	return s.Kernel == one && s.Stride == one && s.Pad == zero
}

// split divides the output points into rects of about as many points as a block of columns.
func (p *pass[T]) split() {
	g, width := &p.points, p.Out[2]
	g.rows, g.colBlocks = 1, (width+blockPoints-1)/blockPoints
	if g.colBlocks == 1 {
		g.rows = min(blockPoints/width, p.Out[1])
	}
	g.cols = min(((width+g.colBlocks-1)/g.colBlocks+15)&^15, width)
	g.rowBlocks = (p.Out[1] + g.rows - 1) / g.rows
	g.count = p.Out[0] * g.rowBlocks * g.colBlocks
}

// rect returns the i-th rect.
func (p *pass[T]) rect(i int) rect {
	g := &p.points
	w, h := i%g.colBlocks*g.cols, i/g.colBlocks%g.rowBlocks*g.rows
	return rect{d: i / g.colBlocks / g.rowBlocks, h: h, w: w, rows: min(g.rows, p.Out[1]-h), cols: min(g.cols, p.Out[2]-w)}
}

// columns are the elements that the taps of the kernel read for the output points: a row for each tap of the input
// channels of a group, channel by channel.
type columns[T tensor.Compute] pass[T]

// Span implements [gemm.Columns]: the points of rect i.
func (s *columns[T]) Span(i int) (j, n int) {
	r := (*pass[T])(s).rect(i)
	return s.from(&r), r.rows * r.cols
}

// tapTable is the maximum number of taps whose reads a worker caches; those of a larger kernel are recomputed.
const tapTable = 1024

// Pack writes taps [p, p+k) of rect i.
func (s *columns[T]) Pack(dst []T, ld, worker, product, i, p, k int) {
	r := (*pass[T])(s).rect(i)
	taps := s.taps[worker*s.table:][:s.table]
	if s.tapsOf[worker] != i {
		for t := range taps {
			taps[t] = s.reads(tap(&s.shape, t), &r)
		}
		s.tapsOf[worker] = i
	}
	n, points := window.Volume(s.Kernel), window.Volume(s.In)
	x := s.x[product*(s.inChannels/s.groups)*points:]
	channel, t := p/n, p%n
	for q := range k {
		var d read
		if t < len(taps) {
			d = taps[t]
		} else {
			d = s.reads(tap(&s.shape, t), &r)
		}
		fill(&s.shape, dst[q*ld:][:r.rows*r.cols], r.cols, x[channel*points:][:points], &d)
		if t++; t == n {
			channel, t = channel+1, 0
		}
	}
}
