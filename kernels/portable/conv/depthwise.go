package conv

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// bands is the plan of a convolution whose groups have one input channel each. A
// band of input rows is copied with its padding, sorted into one plane for each
// phase of the stride, so that every tap of the kernel is a shift of one of the
// planes and a band of output rows is a sum of shifted slices.
type bands[T tensor.Compute] struct {
	taps    func(y, x []T, off []int, w []T)
	rows    int // output rows of a band
	width   int // of a row of a phase plane
	height  int // rows of a phase plane
	phases  [2]int
	offsets []int // where each tap starts in the planes
}

// bandEnd is what bands are rounded up to, so that vectors cover them whole: sums run
// on behind the planes and the last row, and what they yield there is not stored.
const bandEnd = 8

// bandElements is about how many elements a band and its planes take: half of a
// first-level cache of float32.
const bandElements = 4096

// maxPlanes bounds the elements of a band's planes; a sparser kernel than that runs
// as any other convolution.
const maxPlanes = 1 << 20

// planBands plans the bands where each group has one input channel and one plane.
func (p *pass[T]) planBands() bool {
	if p.inChannels != p.groups || p.kernel[0] != 1 || p.in[0] != 1 || p.pad[0] != 0 {
		return false
	}
	b := &p.depthwise
	sh, sw := p.stride[1], p.stride[2]
	reachH, reachW := p.dilate[1]*(p.kernel[1]-1), p.dilate[2]*(p.kernel[2]-1)
	b.phases = [2]int{min(sh, reachH+1), min(sw, reachW+1)}
	b.width = p.out[2] + reachW/sw
	if max(reachH, reachW, b.width, b.phases[0], b.phases[1]) > maxPlanes {
		return false
	}
	perRow := b.width * (b.phases[0]*b.phases[1] + 1)
	b.rows = min(max(bandElements/perRow, 1), p.out[1])
	b.height = b.rows + reachH/sh
	return perRow <= maxPlanes && b.height*perRow <= maxPlanes
}

func (p *pass[T]) runDepthwise(c *kernels.Ctx) {
	perChannel := p.outChannels / p.groups * volume(p.out) * volume(p.kernel)
	if p, ok := any(p).(*pass[float32]); ok && p.planFilter() {
		c.Parallel(p.batch*p.inChannels, 1+macsPerRange/perChannel, filtered{p})
		return
	}
	b := &p.depthwise
	b.taps = simd.TapsOf[T]()
	p.offsets(b)
	p.reserve(c, b.height*b.width*b.phases[0]*b.phases[1]+b.rows*b.width+bandEnd)
	c.Parallel(p.batch*p.inChannels, 1+macsPerRange/perChannel, depthwise[T]{p})
}

// planFilter plans a filter that needs no bands, where the stride and the processor
// allow it.
func (p *pass[T]) planFilter() bool {
	f := &p.filter
	f.Rows, f.Cols, f.InRows, f.InCols = p.out[1], p.out[2], p.in[1], p.in[2]
	f.KernelRows, f.KernelCols, f.DilateRows, f.DilateCols = p.kernel[1], p.kernel[2], p.dilate[1], p.dilate[2]
	f.Top, f.Left, f.Stride = p.pad[1], p.pad[2], p.stride[1]
	return p.stride[1] == p.stride[2] && f.Plan()
}

type filtered struct{ *pass[float32] }

// Range computes the output channels of input planes [lo, hi).
func (p filtered) Range(_, lo, hi int) {
	multiplier, taps, in, out := p.outChannels/p.groups, volume(p.kernel), volume(p.in), volume(p.out)
	for m := lo * multiplier; m < hi*multiplier; m++ {
		channel, bias := m%p.outChannels, float32(0)
		if p.bias != nil {
			bias = p.bias[channel]
		}
		p.filter.Apply(p.y[m*out:][:out], p.x[m/multiplier*in:][:in], p.w[channel*taps:][:taps], bias)
	}
}

// offsets computes where each tap starts in the phase planes.
func (p *pass[T]) offsets(b *bands[T]) {
	b.offsets = b.offsets[:0]
	for ky := range p.kernel[1] {
		for kx := range p.kernel[2] {
			y, x := ky*p.dilate[1], kx*p.dilate[2]
			plane := y%p.stride[1]*b.phases[1] + x%p.stride[2]
			b.offsets = append(b.offsets, (plane*b.height+y/p.stride[1])*b.width+x/p.stride[2])
		}
	}
}

type depthwise[T tensor.Compute] struct{ *pass[T] }

// Range computes the output channels of input planes [lo, hi).
func (p depthwise[T]) Range(worker, lo, hi int) {
	b := &p.depthwise
	planes := p.worker(worker)
	sums := planes[len(planes)-b.rows*b.width-bandEnd:]
	clear(planes) // the padding beside rows stays as it is
	for t := lo; t < hi; t++ {
		for r := 0; r < p.out[1]; r += b.rows {
			p.load(planes, p.x[t*volume(p.in):][:volume(p.in)], r)
			p.band(planes, sums, t, r, min(b.rows, p.out[1]-r))
		}
	}
}

// load fills the phase planes for output rows from r on.
func (p depthwise[T]) load(planes, x []T, r int) {
	b := &p.depthwise
	size := b.height * b.width
	for ph := range b.phases[0] {
		y := r*p.stride[1] + ph - p.pad[1]
		top, bottom := inside(b.height, p.in[1], y, p.stride[1])
		for pw := range b.phases[1] {
			at := pw - p.pad[2]
			lo, hi := inside(b.width, p.in[2], at, p.stride[2])
			plane := planes[(ph*b.phases[1]+pw)*size:][:size]
			clear(plane[:top*b.width])
			clear(plane[bottom*b.width:])
			if top < bottom && lo < hi {
				from := x[(y+top*p.stride[1])*p.in[2]+at+lo*p.stride[2]:]
				copyGrid(plane[top*b.width+lo:], b.width, from, p.in[2]*p.stride[1], p.stride[2], bottom-top, hi-lo)
			}
		}
	}
}

// band computes output rows [r, r+rows) of all output channels of input plane t.
// Sums run through the ends of rows; what they yield there is not stored.
func (p depthwise[T]) band(planes, sums []T, t, r, rows int) {
	b := &p.depthwise
	multiplier, taps := p.outChannels/p.groups, volume(p.kernel)
	sums = sums[:((rows-1)*b.width+p.out[2]+bandEnd-1)&^(bandEnd-1)]
	for m := t * multiplier; m < (t+1)*multiplier; m++ {
		channel := m % p.outChannels
		startRows(sums, 0, len(sums), p.biasFrom(channel), 1)
		b.taps(sums, planes, b.offsets, p.w[channel*taps:][:taps])
		simd.CopyRows(p.y[m*volume(p.out)+r*p.out[2]:], sums, rows, p.out[2], p.out[2], b.width)
	}
}
