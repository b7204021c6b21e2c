package conv

import (
	"slices"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// runForward computes a convolution as a product: weights [out, taps] by columns
// [taps, points], block by block.
func (p *pass[T]) runForward(c *kernels.Ctx) {
	if p.pointwise() { // then rows do not matter
		p.in, p.out = [3]int{1, 1, volume(p.in)}, [3]int{1, 1, volume(p.out)}
	}
	p.cut(c.Threads())
	p.reserve(c, blockPitch*blockRows)
	taps := volume(p.kernel)
	p.table = min(taps, tapTable)
	p.taps = slices.Grow(p.taps[:0], c.Threads()*p.table)[:c.Threads()*p.table]
	macs := p.mBlock * p.points.rows * p.points.cols * max(p.inChannels/p.groups*taps, 1)
	c.Parallel(p.batch*p.groups*p.points.count*p.mBlocks, 1+macsPerRange/macs, forward[T]{p})
}

// tapTable is for how many taps a worker keeps what they read; those of a larger
// kernel are worked out each time.
const tapTable = 1024

type forward[T tensor.Compute] struct{ *pass[T] }

// Range computes tiles [lo, hi).
func (p forward[T]) Range(worker, lo, hi int) {
	taps := p.taps[worker*p.table:][:p.table]
	for t := lo; t < hi; t++ {
		m, rest := t%p.mBlocks, t/p.mBlocks
		r, rest := p.rect(rest%p.points.count), rest/p.points.count
		if !p.pointwise() {
			for i := range taps {
				taps[i] = p.reads(tap(&p.shape, i), &r)
			}
		}
		p.tile(p.worker(worker), taps, &r, rest/p.groups, rest%p.groups, m*p.mBlock)
	}
}

// tile computes output channels from m0 of group g and the points of r in image n.
func (p forward[T]) tile(block []T, taps []read, r *rect, n, g, m0 int) {
	perGroup, inGroup := p.outChannels/p.groups, p.inChannels/p.groups
	points, inPoints := volume(p.out), volume(p.in)
	rows, cols, m := min(p.mBlock, perGroup-m0), r.rows*r.cols, g*perGroup+m0
	y := p.y[(n*p.outChannels+m)*points+p.from(r):]
	k := inGroup * volume(p.kernel)
	from, ldf := p.zeros, 0
	if p.bias != nil || k == 0 {
		startRows(y, points, cols, p.biasFrom(m), rows)
		from, ldf = y, points
	}
	w := p.w[m*k:]
	x := p.x[(n*p.inChannels+g*inGroup)*inPoints:]
	for k0 := 0; k0 < k; k0 += blockRows {
		k1 := min(k0+blockRows, k)
		b, ld := p.columns(block, taps, x, r, rows, k0, k1)
		p.mul(rows, cols, k1-k0, w[k0:], k, 1, b, ld, from, ldf, y, points)
		from, ldf = y, points
	}
}

// columns is a block of columns and its row stride: rows [k0, k1) are taps of input
// channels, channel by channel; of x itself where points map to points and few rows
// of weights pass over it.
func (p forward[T]) columns(block []T, taps []read, x []T, r *rect, rows, k0, k1 int) ([]T, int) {
	points := volume(p.in)
	if p.pointwise() {
		x = x[k0*points+r.w:]
		const copyFrom = 16 // rows that make up for a copy
		if rows < copyFrom {
			return x, points
		}
		simd.CopyRows(block, x, k1-k0, r.cols, blockPitch, points)
		return block, blockPitch
	}
	n := volume(p.kernel)
	channel, t := k0/n, k0%n
	for k := range k1 - k0 {
		var d read
		if t < len(taps) {
			d = taps[t]
		} else {
			d = p.reads(tap(&p.shape, t), r)
		}
		fill(&p.shape, block[k*blockPitch:][:r.rows*r.cols], r.cols, x[channel*points:][:points], &d)
		if t++; t == n {
			channel, t = channel+1, 0
		}
	}
	return block, blockPitch
}

// pointwise reports that each output point reads one input point, its own.
func (s *shape) pointwise() bool {
	one, zero := [3]int{1, 1, 1}, [3]int{}
	return s.kernel == one && s.stride == one && s.pad == zero
}
