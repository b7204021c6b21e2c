package conv

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// runForward computes a convolution as a product: weights [out, taps] by columns
// [taps, points], block by block.
func (p *pass[T]) runForward(c *kernels.Ctx) {
	p.cut(c, blockPoints*blockRows)
	macs := p.mBlock * p.pBlock * max(p.inChannels/p.groups*volume(p.kernel), 1)
	c.Parallel(p.batch*p.groups*p.pBlocks*p.mBlocks, 1+macsPerRange/macs, forward[T]{p})
}

type forward[T tensor.Compute] struct{ *pass[T] }

func (p forward[T]) Range(worker, lo, hi int) {
	for t := lo; t < hi; t++ {
		m, rest := t%p.mBlocks, t/p.mBlocks
		point, rest := rest%p.pBlocks, rest/p.pBlocks
		p.tile(p.worker(worker), rest/p.groups, rest%p.groups, m*p.mBlock, point*p.pBlock)
	}
}

// tile computes output channels from m0 of group g and points from p0 of image n.
func (p forward[T]) tile(block []T, n, g, m0, p0 int) {
	perGroup, inGroup, taps := p.outChannels/p.groups, p.inChannels/p.groups, volume(p.kernel)
	points, inPoints := volume(p.out), volume(p.in)
	rows, cols := min(p.mBlock, perGroup-m0), min(p.pBlock, points-p0)
	m := g*perGroup + m0
	y := p.y[(n*p.outChannels+m)*points+p0:]
	startRows(y, points, cols, p.biasFrom(m), rows)
	k := inGroup * taps
	w := p.w[m*k:]
	x := p.x[(n*p.inChannels+g*inGroup)*inPoints:]
	for k0 := 0; k0 < k; k0 += blockRows {
		k1 := min(k0+blockRows, k)
		b, ld := p.columns(block, x, rows, k0, k1, p0, p0+cols)
		p.mul(rows, cols, k1-k0, w[k0:], k, 1, b, ld, y, points)
	}
}

// columns is a block of columns and its row stride: of x itself where points map to
// points and few rows of weights pass over it.
func (p forward[T]) columns(block, x []T, rows, k0, k1, p0, p1 int) ([]T, int) {
	if !p.pointwise() {
		columns(&p.shape, block, blockPoints, x, k0, k1, p0, p1)
		return block, blockPoints
	}
	points := volume(p.in)
	x = x[k0*points+p0:]
	const copyFrom = 16 // rows that make up for a copy
	if rows < copyFrom {
		return x, points
	}
	simd.CopyRows(block, x, k1-k0, p1-p0, blockPoints, points)
	return block, blockPoints
}

// pointwise reports that each output point reads one input point, its own.
func (s *shape) pointwise() bool {
	one, zero := [3]int{1, 1, 1}, [3]int{}
	return s.kernel == one && s.stride == one && s.pad == zero
}
