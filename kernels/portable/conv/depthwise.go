package conv

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// tileEnd is the multiple to which tiles are rounded up, so that vectors cover them completely: sums continue beyond
// the planes and the last row, and the results there are not stored.
const tileEnd = 8

// tileElements is the approximate number of elements of a tile and its planes: half of a first-level cache of
// float32.
const tileElements = 4096

// maxPlanes bounds the elements of a tile's planes; a sparser kernel than that runs
// as any other convolution.
const maxPlanes = 1 << 20

// manyOutputs is the number of output channels of a group from which a matrix product is faster.
const manyOutputs = 16

// planTiles plans the tiles if each group has one input channel, one plane, and few output channels.
func (p *pass[T]) planTiles() bool {
	if p.inChannels != p.groups || p.outChannels >= manyOutputs*p.groups || p.Kernel[0] != 1 || p.In[0] != 1 || p.Pad[0] != 0 {
		return false
	}
	b := &p.depthwise
	sh, sw := p.Stride[1], p.Stride[2]
	reachH, reachW := p.Dilate[1]*(p.Kernel[1]-1), p.Dilate[2]*(p.Kernel[2]-1)
	b.phases = [2]int{min(sh, reachH+1), min(sw, reachW+1)}
	b.width = p.Out[2] + reachW/sw
	if max(reachH, reachW, b.width, b.phases[0], b.phases[1]) > maxPlanes {
		return false
	}
	perRow := b.width * (b.phases[0]*b.phases[1] + 1)
	b.rows = min(max(tileElements/perRow, 1), p.Out[1])
	b.height = b.rows + reachH/sh
	return perRow <= maxPlanes && b.height*perRow <= maxPlanes
}

func (p *pass[T]) runDepthwise(c *kernels.Ctx) {
	perChannel := p.outChannels / p.groups * window.Volume(p.Out) * window.Volume(p.Kernel)
	if p, ok := any(p).(*pass[float32]); ok && p.planFilter() {
		c.Parallel(p.batch*p.inChannels, 1+macsPerRange/perChannel, filtered{p})
		return
	}
	b := &p.depthwise
	b.taps = simd.TapsOf[T]()
	p.offsets(b)
	p.reserve(c, b.height*b.width*b.phases[0]*b.phases[1]+b.rows*b.width+tileEnd)
	c.Parallel(p.batch*p.inChannels, 1+macsPerRange/perChannel, depthwise[T]{p})
}

// planFilter plans a filter without tiles if the stride and the processor allow it.
func (p *pass[T]) planFilter() bool {
	f := &p.filter
	f.Rows, f.Cols, f.InRows, f.InCols = p.Out[1], p.Out[2], p.In[1], p.In[2]
	f.KernelRows, f.KernelCols, f.DilateRows, f.DilateCols = p.Kernel[1], p.Kernel[2], p.Dilate[1], p.Dilate[2]
	f.Top, f.Left, f.Stride = p.Pad[1], p.Pad[2], p.Stride[1]
	return p.Stride[1] == p.Stride[2] && f.Plan()
}

type filtered struct{ *pass[float32] }

// Range computes the output channels of input planes [lo, hi).
func (p filtered) Range(_, lo, hi int) {
	multiplier, taps, in, out := p.outChannels/p.groups, window.Volume(p.Kernel), window.Volume(p.In), window.Volume(p.Out)
	for m := lo * multiplier; m < hi*multiplier; m++ {
		channel, bias := m%p.outChannels, float32(0)
		if p.bias != nil {
			bias = p.bias[channel]
		}
		p.apply(p.y[m*out:][:out], p.x[m/multiplier*in:][:in], p.w[channel*taps:][:taps], bias)
	}
}

// filterMACs is the number of MACs of a plane from which it is filtered in parts: a few milliseconds.
const filterMACs = 1 << 26

// apply filters a plane.
func (p filtered) apply(y, x, w []float32, bias float32) {
	f := p.filter
	parts := 1 + f.Rows*f.Cols/(1+filterMACs/len(w))
	for rows, left := (f.Rows+parts-1)/parts, f.Rows; left > 0; left -= rows {
		p.c.Poll()
		f.Rows = min(rows, left)
		f.Apply(y, x, w, bias)
		y = y[f.Rows*f.Cols:]
		f.Top -= f.Rows * f.Stride
	}
}

// offsets computes the start of each tap in the phase planes.
func (p *pass[T]) offsets(b *rowTiles[T]) {
	b.offsets = b.offsets[:0]
	for ky := range p.Kernel[1] {
		for kx := range p.Kernel[2] {
			y, x := ky*p.Dilate[1], kx*p.Dilate[2]
			plane := y%p.Stride[1]*b.phases[1] + x%p.Stride[2]
			b.offsets = append(b.offsets, (plane*b.height+y/p.Stride[1])*b.width+x/p.Stride[2])
		}
	}
}

type depthwise[T tensor.Compute] struct{ *pass[T] }

// Range computes the output channels of input planes [lo, hi).
func (p depthwise[T]) Range(worker, lo, hi int) {
	b := &p.depthwise
	planes := p.worker(worker)
	sums := planes[len(planes)-b.rows*b.width-tileEnd:]
	clear(planes) // the padding beside rows stays as it is
	for t := lo; t < hi; t++ {
		for r := 0; r < p.Out[1]; r += b.rows {
			p.c.Poll()
			p.load(planes, p.x[t*window.Volume(p.In):][:window.Volume(p.In)], r)
			p.tile(planes, sums, t, r, min(b.rows, p.Out[1]-r))
		}
	}
}

// load fills the phase planes for the output rows from r.
func (p depthwise[T]) load(planes, x []T, r int) {
	b := &p.depthwise
	size := b.height * b.width
	for ph := range b.phases[0] {
		y := r*p.Stride[1] + ph - p.Pad[1]
		top, bottom := window.Inside(b.height, p.In[1], y, p.Stride[1])
		for pw := range b.phases[1] {
			at := pw - p.Pad[2]
			lo, hi := window.Inside(b.width, p.In[2], at, p.Stride[2])
			plane := planes[(ph*b.phases[1]+pw)*size:][:size]
			clear(plane[:top*b.width])
			clear(plane[bottom*b.width:])
			if top < bottom && lo < hi {
				from := x[(y+top*p.Stride[1])*p.In[2]+at+lo*p.Stride[2]:]
				copyGrid(plane[top*b.width+lo:], b.width, from, p.In[2]*p.Stride[1], p.Stride[2], bottom-top, hi-lo)
			}
		}
	}
}

// tile computes output rows [r, r+rows) of all output channels of input plane t. Sums continue through the ends of
// rows; the results there are not stored.
func (p depthwise[T]) tile(planes, sums []T, t, r, rows int) {
	b := &p.depthwise
	multiplier, taps := p.outChannels/p.groups, window.Volume(p.Kernel)
	sums = sums[:((rows-1)*b.width+p.Out[2]+tileEnd-1)&^(tileEnd-1)]
	for m := t * multiplier; m < (t+1)*multiplier; m++ {
		channel := m % p.outChannels
		startRows(sums, 0, len(sums), p.biasFrom(channel), 1)
		b.taps(sums, planes, b.offsets, p.w[channel*taps:][:taps])
		simd.CopyRows(p.y[m*window.Volume(p.Out)+r*p.Out[2]:], sums, rows, p.Out[2], p.Out[2], b.width)
	}
}
