package cortexm

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// product is a convolution, a linear layer or a batch of matrix products: for each output point and
// channel a sum over the taps of the kernel and the channels of a group. The rows of a matrix are
// the points of an image of one row.
//
// Partial sums that are exact in float32 are computed in float32, and accumulated as int32, which
// wraps.
type product struct {
	images
	groups, outChannels int
	xOffset             int32 // added to codes of the input
	weights             weights
	codes               channels

	x, y     []int8
	cols     int // output points per tile
	depth    int // products per partial sum of a tile
	width    int // output channels per tile
	perRow   int // tiles per row of points
	perPoint int // tiles per group of output channels
	start    []int32
	zeros    []float32
	factors  []float32 // per thread: cols · depth
	sums     []float32 // per thread: cols · width
	totals   []int32   // as sums
}

// exact is the bound below which integers, and so partial sums of products, are exact in float32.
const exact = 1 << 24

// tileSize is the approximate number of factors, and of sums, per tile; macsPerRange is the work of
// about 20 µs.
const tileSize, macsPerRange = 1 << 14, 300_000

// k returns the number of products per sum.
func (p *product) k() int { return p.Kernel[1] * p.Kernel[2] * (p.channels / p.groups) }

// begin plans the product that r has read, and computes it.
func (p *product) begin(c *kernels.Ctx, r *reader) error {
	if r.err != nil {
		return r.err
	}
	if p.output.t.Numel() > 0 {
		p.plan(c.Threads())
	}
	return again(c, p)
}

// plan divides the output into tiles for the given number of threads.
func (p *product) plan(threads int) {
	if p.Kernel == ones && p.Stride == ones && p.Pad == [3]int{} && p.In == p.Out && !p.weights.perImage {
		p.In = [3]int{1, 1, p.batch * p.In[1] * p.In[2]} // all points are one row
		p.Out, p.batch = p.In, 1
	}
	p.width = p.outChannels / p.groups
	largest := max(128, p.xOffset, -p.xOffset) * (128 + max(p.weights.offset, -p.weights.offset))
	p.depth = min(p.k(), exact/int(largest))
	p.cols = min(max(min(tileSize/p.depth, tileSize/p.width), 1), p.Out[2])
	p.perRow = (p.Out[2] + p.cols - 1) / p.cols
	const least = 64 // channels
	if n := p.batch * p.Out[1] * p.perRow * p.groups; n < threads && p.width >= 2*least {
		p.width = (p.width/threads + least - 1) / least * least
	}
	p.perPoint = (p.outChannels/p.groups + p.width - 1) / p.width
}

// Repeat computes the same tensors again.
func (p *product) Repeat(c *kernels.Ctx) error {
	if err := p.codes.check(); err != nil {
		return err
	}
	if p.output.t.Numel() == 0 {
		return nil
	}
	p.x, p.y = load[int8](c, &p.input), target[int8](c, &p.output)
	p.weights.load(c, p.groups, p.outChannels, p.k())
	p.setStart(c)
	p.zeros = kernels.Scratch[float32](c, p.width)
	clear(p.zeros)
	n := c.Threads()
	p.factors = kernels.Scratch[float32](c, n*p.cols*p.depth)
	p.sums, p.totals = kernels.Scratch[float32](c, n*p.cols*p.width), kernels.Scratch[int32](c, n*p.cols*p.width)
	tiles := p.batch * p.Out[1] * p.perRow * p.groups * p.perPoint
	c.Parallel(tiles, 1+macsPerRange/(p.cols*p.width*p.k()), p)
	store(c, &p.output, p.y)
	return nil
}

// setStart computes the initial sums: the bias, and the contribution of the input offset.
func (p *product) setStart(c *kernels.Ctx) {
	p.start = kernels.Scratch[int32](c, len(p.weights.sums))
	for i, s := range p.weights.sums {
		p.start[i] = s * p.xOffset
	}
	if p.codes.bias == nil {
		return
	}
	for i, b := range tensor.Data[int32](p.codes.bias) {
		p.start[i] += b
	}
}

// Range computes tiles [lo, hi).
func (p *product) Range(worker, lo, hi int) {
	for t := lo; t < hi; t++ {
		o, rest := t%p.perPoint*p.width, t/p.perPoint
		g, rest := rest%p.groups, rest/p.groups
		col, row := rest%p.perRow*p.cols, rest/p.perRow
		p.tile(worker, row, col, g, o)
	}
}

// tile computes points of a row, starting at col, and channels of group g, starting at o. Rows are
// numbered across all images.
func (p *product) tile(worker, row, col, g, o int) {
	perGroup, k := p.outChannels/p.groups, p.k()
	cols, n := min(p.cols, p.Out[2]-col), min(p.width, perGroup-o)
	factors := p.factors[worker*p.cols*p.depth:][:p.cols*p.depth]
	sums, totals := p.sums[worker*p.cols*p.width:][:cols*n], p.totals[worker*p.cols*p.width:][:cols*n]
	image, from := row/p.Out[1], g*perGroup+o
	if p.weights.perImage {
		from += image * p.outChannels
	}
	for j := range cols {
		copy(totals[j*n:][:n], p.start[from:])
	}
	w := p.weights.floats[(from-o)*k:]
	for k0 := 0; k0 < k; k0 += p.depth {
		depth := min(p.depth, k-k0)
		p.fill(factors, image, row%p.Out[1], col, cols, g, k0, depth)
		simd.MulAddTo(cols, n, depth, factors, depth, 1, w[k0*perGroup+o:], perGroup, p.zeros, 0, sums, n)
		for i, s := range sums {
			totals[i] += int32(s)
		}
	}
	for j := range cols {
		y := p.y[(row*p.Out[2]+col+j)*p.outChannels+g*perGroup+o:]
		p.codes.store(y, totals[j*n:][:n], g*perGroup+o)
	}
}

// fill gathers depth factors, starting at k0, of each of cols points: rows of factors.
func (p *product) fill(factors []float32, image, row, col, cols, g, k0, depth int) {
	inGroup := p.channels / p.groups
	x := p.x[image*p.In[1]*p.In[2]*p.channels:]
	for j := range cols {
		dst := factors[j*depth:][:depth]
		for k := k0; len(dst) > 0; {
			t, channel := k/inGroup, k%inGroup
			n := min(inGroup-channel, len(dst))
			if at, ok := p.reads(row, col+j, t); ok {
				floats(dst[:n], x[at*p.channels+g*inGroup+channel:], 0)
			} else {
				simd.Fill(dst[:n], float32(-p.xOffset)) // the zero point
			}
			dst, k = dst[n:], k+n
		}
	}
}

// reads returns the input point of tap t of output point (row, col).
func (p *product) reads(row, col, t int) (point int, ok bool) {
	y, inY := p.source(1, row, t/p.Kernel[2])
	x, inX := p.source(2, col, t%p.Kernel[2])
	return y*p.In[2] + x, inX && inY
}

// floats converts int8 values with an offset to float32.
func floats(dst []float32, src []int8, offset int32) {
	n := simd.Int8ToFloat(dst, tensor.BytesOf(src[:len(dst)]))
	for i := n; i < len(dst); i++ {
		dst[i] = float32(src[i])
	}
	if offset != 0 {
		simd.ScaleShift(dst, dst, 1, float32(offset))
	}
}
