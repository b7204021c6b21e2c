package conv

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// maxColumns bounds the elements of one channel's block, for very large kernels.
const maxColumns = 1 << 20

// runTransposed computes a transposed convolution: weightsᵀ [out·taps, in] by input
// [in, points] gives what each input point adds to its neighbourhood in the output.
func (p *pass[T]) runTransposed(c *kernels.Ctx) {
	perGroup, taps := p.outChannels/p.groups, window.Volume(p.Kernel)
	points := window.Volume(p.In)
	p.pBlock = max(min(blockPoints, points, maxColumns/taps), 1)
	p.mBlock = min(max(blockRows/taps, 1), perGroup) // output channels at a time
	if threads := c.Threads(); threads > 1 {
		p.mBlock = min(p.mBlock, (perGroup+threads-1)/threads)
	}
	p.mBlocks = (perGroup + p.mBlock - 1) / p.mBlock
	p.reserve(c, p.mBlock*taps*p.pBlock)
	macs := p.mBlock * taps * max(points*(p.inChannels/p.groups), 1)
	c.Parallel(p.batch*p.groups*p.mBlocks, 1+macsPerRange/macs, transposed[T]{p})
}

type transposed[T tensor.Compute] struct{ *pass[T] }

func (p transposed[T]) Range(worker, lo, hi int) {
	for t := lo; t < hi; t++ {
		m, rest := t%p.mBlocks, t/p.mBlocks
		p.planes(p.worker(worker), rest/p.groups, rest%p.groups, m*p.mBlock)
	}
}

// planes computes output channels from m0 of group g of image n.
func (p transposed[T]) planes(block []T, n, g, m0 int) {
	perGroup, inGroup, taps := p.outChannels/p.groups, p.inChannels/p.groups, window.Volume(p.Kernel)
	points, outPoints := window.Volume(p.In), window.Volume(p.Out)
	m := g*perGroup + m0
	channels := min(p.mBlock, perGroup-m0)
	y := p.y[(n*p.outChannels+m)*outPoints:][:channels*outPoints]
	startRows(y, outPoints, outPoints, p.biasFrom(m), channels)
	w := p.w[min(g*inGroup*perGroup*taps+m0*taps, len(p.w)):]
	x := p.x[min((n*p.inChannels+g*inGroup)*points, len(p.x)):]
	for p0 := 0; p0 < points && inGroup > 0; p0 += p.pBlock {
		cols := min(p.pBlock, points-p0)
		p.mul(channels*taps, cols, inGroup, w, 1, perGroup*taps, x[p0:], points, p.zeros, 0, block, cols)
		for r := range channels * taps {
			p.add(y[r/taps*outPoints:][:outPoints], block[r*cols:][:cols], r%taps, p0)
		}
	}
}

// add adds what the input points from point on contribute through one tap.
func (p transposed[T]) add(plane, src []T, t, point int) {
	at := tap(&p.shape, t)
	w, h := point%p.In[2], point/p.In[2]
	d := h / p.In[1]
	h %= p.In[1]
	for len(src) > 0 {
		n := min(p.In[2]-w, len(src))
		z, y := d*p.Stride[0]+at[0], h*p.Stride[1]+at[1]
		if z >= 0 && z < p.Out[0] && y >= 0 && y < p.Out[1] {
			addSegment(plane[(z*p.Out[1]+y)*p.Out[2]:][:p.Out[2]], src[:n], w*p.Stride[2]+at[2], p.Stride[2])
		}
		src, w = src[n:], 0
		if h++; h == p.In[1] {
			h, d = 0, d+1
		}
	}
}

// addSegment is row[x+i·step] += src[i] where that is inside row.
func addSegment[T tensor.Compute](row, src []T, x, step int) {
	lo, hi := window.Inside(len(src), len(row), x, step)
	if lo == hi {
		return
	}
	row = row[x+lo*step:]
	for i, v := range src[lo:hi] {
		row[i*step] += v
	}
}
