package conv

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// pass is one convolution: its geometry, its dense operands (batch, channels,
// spatial) and how it is cut into tiles. An instruction keeps it between executes.
type pass[T tensor.Compute] struct {
	shape
	x, w, bias, y []T // bias may be nil
	mul           simd.MulAddToFunc[T]
	zeros         []T // a row of them
	mBlock        int // output channels of a tile
	mBlocks       int // tiles of a group
	points        grid
	scratch       []T // perWorker elements for each worker
	perWorker     int

	keptWeights, keptBias operand.Kept[T]
	depthwise             bands[T]
	filter                simd.Filter
	taps                  []read // for each worker, what its first table taps read
	table                 int
	pBlock                int // input points at a time, of a transposed convolution
}

// grid is how output points are cut into rects.
type grid struct {
	rows, cols           int // of a rect
	rowBlocks, colBlocks int // rects along the height and the width
	count                int // all of them, over the depth too
}

// A block of columns has up to blockRows taps and blockPoints points and stays in the
// second-level cache. Its rows are an odd number of cache lines apart, so that a
// strip of it spreads over all sets of the first.
const blockRows, blockPoints, blockPitch = 256, 128, 144

// macsPerRange is the work of about 20 µs, the least to give to a thread.
const macsPerRange = 600_000

// run computes y. It has at least one element.
func (p *pass[T]) run(c *kernels.Ctx) {
	p.mul = simd.MulAddToOf[T]()
	if p.zeros == nil {
		p.zeros = make([]T, blockPoints)
	}
	switch {
	case p.transposed:
		p.runTransposed(c)
	case p.planBands():
		p.runDepthwise(c)
	default:
		p.runForward(c)
	}
	p.x, p.w, p.bias, p.y, p.scratch = nil, nil, nil, nil, nil
}

// worker is the scratch memory of a worker.
func (p *pass[T]) worker(i int) []T { return p.scratch[i*p.perWorker:][:p.perWorker] }

// reserve gives each worker n elements of scratch memory.
func (p *pass[T]) reserve(c *kernels.Ctx, n int) {
	p.perWorker = n
	p.scratch = kernels.Scratch[T](c, c.Threads()*n)
}

// cut splits the output into tiles, points first. Output channels are split only
// where points alone would leave threads idle and there is work for them.
func (p *pass[T]) cut(threads int) {
	g, width := &p.points, p.out[2]
	g.rows, g.colBlocks = 1, (width+blockPoints-1)/blockPoints
	if g.colBlocks == 1 {
		g.rows = min(blockPoints/width, p.out[1])
	}
	g.cols = min(((width+g.colBlocks-1)/g.colBlocks+15)&^15, width)
	g.rowBlocks = (p.out[1] + g.rows - 1) / g.rows
	g.count = p.out[0] * g.rowBlocks * g.colBlocks
	perGroup := p.outChannels / p.groups
	const least = 24 // channels that still make good use of a block of columns
	p.mBlock = perGroup
	if volume(p.out)*perGroup*max(p.inChannels/p.groups*volume(p.kernel), 1) < 2*macsPerRange {
		threads = 1
	}
	for threads > 1 && p.batch*p.groups*g.count*(perGroup/p.mBlock) < 2*threads && p.mBlock >= 2*least {
		p.mBlock = (p.mBlock/2 + 7) &^ 7
	}
	p.mBlocks = (perGroup + p.mBlock - 1) / p.mBlock
}

// rect is the i-th block of output points.
func (p *pass[T]) rect(i int) rect {
	g := &p.points
	w, h := i%g.colBlocks*g.cols, i/g.colBlocks%g.rowBlocks*g.rows
	return rect{d: i / g.colBlocks / g.rowBlocks, h: h, w: w, rows: min(g.rows, p.out[1]-h), cols: min(g.cols, p.out[2]-w)}
}

// startRows gives rows of y, ld apart, their bias.
func startRows[T any](y []T, ld, n int, bias []T, rows int) {
	for i := range rows {
		row := y[i*ld:][:n]
		if bias == nil {
			clear(row)
			continue
		}
		simd.Fill(row, bias[i])
	}
}

// biasFrom is the bias from channel m on, or nil.
func (p *pass[T]) biasFrom(m int) []T {
	if p.bias == nil {
		return nil
	}
	return p.bias[m:]
}
