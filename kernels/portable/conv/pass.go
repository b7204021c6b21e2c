package conv

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// pass is one convolution: its geometry, its dense operands (batch, channels,
// spatial) and how it is cut into tiles. An instruction keeps it between executes.
type pass[T tensor.Compute] struct {
	shape
	x, w, bias, y []T // bias may be nil
	mul           simd.MulAddFunc[T]
	mBlock        int // output channels of a tile
	pBlock        int // points of a tile
	mBlocks       int // tiles of a group
	pBlocks       int
	scratch       []T // perWorker elements for each worker
	perWorker     int

	keptWeights, keptBias operand.Kept[T]
	depthwise             bands[T]
}

// blockPoints and blockRows are the size of a block of columns: it stays in the
// second-level cache, and its rows are an odd number of cache lines apart, so that
// a strip of it spreads over all sets of the first.
const blockPoints, blockRows = 112, 256

// macsPerRange is the work of about 20 µs, the least to give to a thread.
const macsPerRange = 300_000

// run computes y. It has at least one element.
func (p *pass[T]) run(c *kernels.Ctx) {
	p.mul = simd.MulAddOf[T]()
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

// cut splits the output into tiles and reserves perWorker elements for each worker.
// Output channels are split only where points alone would leave threads idle.
func (p *pass[T]) cut(c *kernels.Ctx, perWorker int) {
	perGroup, points := p.outChannels/p.groups, volume(p.out)
	const least = 24 // channels that still make good use of a block of columns
	p.pBlock, p.mBlock = min(blockPoints, points), perGroup
	p.pBlocks = (points + p.pBlock - 1) / p.pBlock
	threads := c.Threads()
	for threads > 1 && p.batch*p.groups*p.pBlocks*(perGroup/p.mBlock) < 2*threads && p.mBlock >= 2*least {
		p.mBlock = (p.mBlock/2 + 5) / 6 * 6
	}
	p.mBlocks = (perGroup + p.mBlock - 1) / p.mBlock
	p.perWorker = perWorker
	p.scratch = kernels.Scratch[T](c, threads*perWorker)
}

// startRows gives rows of y, ld apart, their bias.
func startRows[T any](y []T, ld, n int, bias []T, rows int) {
	for i := range rows {
		row := y[i*ld:][:n]
		if bias == nil {
			clear(row)
			continue
		}
		for j := range row {
			row[j] = bias[i]
		}
	}
}

// biasFrom is the bias from channel m on, or nil.
func (p *pass[T]) biasFrom(m int) []T {
	if p.bias == nil {
		return nil
	}
	return p.bias[m:]
}
