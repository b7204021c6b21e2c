package conv

import (
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/nhwc"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// pass is the state of a convolution: its geometry, its dense operands (batch, channels, spatial) and its tiles.
type pass[T tensor.Compute] struct {
	shape
	c             *kernels.Ctx
	x, w, bias, y []T // bias may be nil
	product       gemm.Product[T]
	points        grid
	mul           simd.MulAddToFunc[T]
	mBlock        int // output channels of a tile of a transposed convolution
	mBlocks       int // tiles of a group
	scratch       []T // perWorker elements for each worker
	perWorker     int

	cachedWeights, cachedBias operand.Cached[T]
	depthwise                 rowTiles[T]
	filter                    simd.Filter
	last                      lastPass
	taps                      []read // for each worker, what its first table taps read
	tapsOf                    []int  // for each worker, the rect that its taps are of
	table                     int

	weight *tensor.Tensor // w's

	// Of a transposed convolution: the weights in the order of taps, and of how many groups they
	// are; the rows of a tile and how many tiles there are.
	packed              []T
	cachedPacked        operand.Cached[T]
	packedGroups        int
	tileRows, tileCount int
}

const blockPoints = gemm.BlockCols

const macsPerRange = gemm.MACsPerRange

// worker returns the scratch memory of a worker.
func (p *pass[T]) worker(i int) []T { return p.scratch[i*p.perWorker:][:p.perWorker] }

// reserve allocates n elements of scratch memory for each worker.
func (p *pass[T]) reserve(c *kernels.Ctx, n int) {
	p.perWorker = n
	p.scratch = kernels.Scratch[T](c, c.Threads()*n)
}

// startRows initializes rows of y, ld apart, with their bias.
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

// biasFrom returns the bias from channel m, or nil.
func (p *pass[T]) biasFrom(m int) []T {
	if p.bias == nil {
		return nil
	}
	return p.bias[m:]
}

// rowTiles is the plan of a convolution whose groups have one input channel each. A tile of input rows is copied with
// its padding to one plane for each phase of the stride. Every tap of the kernel is then a shift of one of the
// planes, and a tile of output rows is a sum of shifted slices.
type rowTiles[T tensor.Compute] struct {
	taps    func(y, x []T, off []int, w []T)
	rows    int // output rows of a tile
	width   int // of a row of a phase plane
	height  int // rows of a phase plane
	phases  [2]int
	offsets []int // where each tap starts in the planes
}

// grid divides the output points into rects.
type grid struct {
	rows, cols           int // of a rect
	rowBlocks, colBlocks int // rects along the height and the width
	count                int // all of them, over the depth too
}

// lastPass is the state of a convolution with channels last.
type lastPass struct {
	nhwc.Depthwise
	weights operand.Cached[float32] // [taps, channels]
}
