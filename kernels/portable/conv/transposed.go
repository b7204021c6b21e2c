package conv

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// Output points a stride apart read adjacent input points with the same taps: a transposed convolution is a
// convolution for each phase of the stride, whose results are interleaved. Tap k of phase f reads input point q+s for
// output point q·stride+f, where k·dilation + s·stride = f + padding.

// phaseElements is the approximate number of results of all phases that are computed at a time.
const phaseElements = 1 << 14

// upsampled is a transposed convolution. Its ranges are blocks of output channels by tiles of rows of one phase.
type upsampled[T tensor.Compute] struct{ *pass[T] }

func (p *pass[T]) runTransposed(c *kernels.Ctx) {
	perGroup, width := p.outChannels/p.groups, p.phases(2)*p.windows(2)
	p.mBlock = min(max(phaseElements/4/width, 8), perGroup)
	p.tileRows = min(max(phaseElements/(width*p.mBlock), 1), p.windows(1))
	p.tileCount = (p.windows(1) + p.tileRows - 1) / p.tileRows
	p.mBlocks = (perGroup + p.mBlock - 1) / p.mBlock
	p.reserve(c, p.mBlock*p.tileRows*width)
	p.packed = p.pack(c)
	macs := max(p.mBlock*p.tileRows*width*(p.inChannels/p.groups)*window.Volume(p.Kernel)/(p.phases(1)*p.phases(2)), 1)
	c.Parallel(p.batch*p.groups*p.mBlocks*p.Out[0]*p.phases(1)*p.tileCount, 1+macsPerRange/macs, upsampled[T]{p})
	p.packed = nil
}

// phases returns the number of phases of dimension d of the output, windows the number of points of the first one.
func (s *shape) phases(d int) int  { return min(s.Stride[d], s.Out[d]) }
func (s *shape) windows(d int) int { return (s.Out[d] + s.Stride[d] - 1) / s.Stride[d] }

// pack reorders the weights [in, out, taps] of each group to [taps, out, in].
func (p *pass[T]) pack(c *kernels.Ctx) []T {
	if d := p.cachedPacked.Get(p.weight); d != nil && p.packedGroups == p.groups {
		return d
	}
	p.packedGroups = p.groups
	d := p.cachedPacked.New(c, p.weight, len(p.w))
	perGroup, inGroup, taps := p.outChannels/p.groups, p.inChannels/p.groups, window.Volume(p.Kernel)
	size := perGroup * inGroup * taps
	poll := c.Poller()
	for i, v := range p.w {
		poll.Done(1)
		t, m, k := i%taps, i/taps%perGroup, i%size/taps/perGroup
		d[i/size*size+(t*perGroup+m)*inGroup+k] = v
	}
	return d
}

// Range computes units [lo, hi).
func (p upsampled[T]) Range(worker, lo, hi int) {
	for u := lo; u < hi; u++ {
		tile, rest := u%p.tileCount, u/p.tileCount
		f, rest := rest%p.phases(1), rest/p.phases(1)
		d, rest := rest%p.Out[0], rest/p.Out[0]
		m, rest := rest%p.mBlocks*p.mBlock, rest/p.mBlocks
		n, g := rest/p.groups, rest%p.groups
		q := tile * p.tileRows
		rows := min(p.tileRows, (p.Out[1]-f+p.Stride[1]-1)/p.Stride[1]-q)
		if rows <= 0 {
			continue
		}
		b := upsampledTile{d: d, f: f, q: q, rows: rows, m: m, channels: min(p.mBlock, p.outChannels/p.groups-m), n: n, g: g}
		p.tile(p.worker(worker), &b)
	}
}

// upsampledTile is a tile of output channels from m of group g in image n, and of rows from q of phase f of the
// height, at depth d.
type upsampledTile struct{ d, f, q, rows, m, channels, n, g int }

// tile computes the phases of a tile's width and interleaves them.
func (p upsampled[T]) tile(sums []T, b *upsampledTile) {
	width, phases := p.windows(2), p.phases(2)
	size := b.rows * width
	first := b.g*p.outChannels/p.groups + b.m
	for f := range phases {
		from := sums[f*b.channels*size:][:b.channels*size]
		if startRows(from, size, size, p.biasFrom(first), b.channels); p.inChannels > 0 {
			p.phase(from, b, f)
		}
	}
	points, pitch := window.Volume(p.Out), p.Stride[1]*p.Out[2]
	for m := range b.channels {
		y := p.y[(b.n*p.outChannels+first+m)*points+(b.d*p.Out[1]+b.q*p.Stride[1]+b.f)*p.Out[2]:]
		interleave(y, sums[m*size:], b.rows, width, p.Out[2], pitch, phases, b.channels*size)
	}
}

// interleave interleaves rows of phases, which are apart elements from one phase to the next. Rows have width
// elements, of which the last may be missing in later phases; a row of y has n.
func interleave[T tensor.Compute](y, src []T, rows, width, n, pitch, phases, apart int) {
	if phases == 2 {
		simd.Zip2Rows(y, src, src[apart:], rows, n/2, pitch, width)
		for r := 0; r < rows && n%2 > 0; r++ {
			y[r*pitch+n-1] = src[r*width+width-1]
		}
		return
	}
	for f := range phases {
		src := src[f*apart:]
		if phases == 1 {
			simd.CopyRows(y, src, rows, n, pitch, width)
			continue
		}
		for r := range rows {
			to, from := y[r*pitch:][:n], src[r*width:]
			for i := f; i < n; i += phases {
				to[i] = from[i/phases]
			}
		}
	}
}

// phase adds the products of the taps of phase f of the width.
func (p upsampled[T]) phase(sums []T, b *upsampledTile, f int) {
	for k := range p.Kernel[0] {
		z, ok := p.shift(0, b.d%p.Stride[0], k)
		if z += b.d / p.Stride[0]; !ok || z < 0 || z >= p.In[0] {
			continue
		}
		for i := range p.Kernel[1] {
			y, ok := p.shift(1, b.f, i)
			if top, bottom := window.Inside(b.rows, p.In[1], b.q+y, 1); ok && top < bottom {
				p.taps(sums, b, f, (k*p.Kernel[1]+i)*p.Kernel[2], z*p.In[1]+b.q+y, top, bottom)
			}
		}
	}
}

// shift returns the distance from output point q of phase f to the input point that tap k reads along dimension d. ok
// is false if the tap does not belong to the phase.
func (s *shape) shift(d, f, k int) (shift int, ok bool) {
	at := f + s.Pad[d] - k*s.Dilate[d]
	return at / s.Stride[d], at%s.Stride[d] == 0
}

// taps adds the products of the taps from t, those of a row of the kernel, for rows [top, bottom) of the tile, which
// read input rows from row.
func (p upsampled[T]) taps(sums []T, b *upsampledTile, f, t, row, top, bottom int) {
	perGroup, inGroup, points := p.outChannels/p.groups, p.inChannels/p.groups, window.Volume(p.In)
	width, size := p.windows(2), b.rows*p.windows(2)
	w := p.packed[b.g*perGroup*inGroup*window.Volume(p.Kernel):]
	x := p.x[(b.n*p.inChannels+b.g*inGroup)*points:]
	for k := range p.Kernel[2] {
		shift, ok := p.shift(2, f, k)
		lo, hi := window.Inside((p.Out[2]-f+p.Stride[2]-1)/p.Stride[2], p.In[2], shift, 1)
		if !ok || lo == hi {
			continue
		}
		a, rows, n := w[((t+k)*perGroup+b.m)*inGroup:], bottom-top, hi-lo
		if n == width && n == p.In[2] { // rows lie side by side
			rows, n = 1, n*rows
		}
		p.c.Poll()
		for r := top; r < top+rows; r++ {
			c := sums[r*width+lo:]
			p.mul(b.channels, n, inGroup, a, inGroup, 1, x[(row+r)*p.In[2]+lo+shift:], points, c, size, c, size)
		}
	}
}
