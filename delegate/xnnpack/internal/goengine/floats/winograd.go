package floats

import (
	"math"
	"sync/atomic"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
)

// winogradBias is the matrix whose products the bias is added to: the transform adds them to all four pixels.
const winogradBias = 5

// winogradProduct computes a convolution in blocks of 2×2 pixels, tile by tile. Sums of numbers that are not finite, or exceed
// the range of float32 on the way, are not those of the convolution: faults reports that there were any.
type winogradProduct struct {
	*windowRows
	*floatProduct
	down, across int // blocks of an image
	blocks, tile int // all blocks, and those of a tile
	parts        int // of the panels, if there are few tiles
	units, grain int
	faults       atomic.Bool
}

// plan divides the work.
func (l *winogradProduct) plan(e *frame.Frame) {
	l.down, l.across = l.WinogradBlocks()
	l.blocks, l.tile = l.Out.Dim[0]*l.down*l.across, l.WinogradTile()
	tiles := graph.CeilDiv(l.blocks, l.tile)
	if l.parts = 1; tiles < 2*e.Threads() {
		l.parts = min(l.filter.Panels[0].Panels(), 2*e.Threads())
	} else { // each thread has as many
		l.tile = graph.CeilDiv(l.blocks, graph.RoundUp(tiles, e.Threads()))
		tiles = graph.CeilDiv(l.blocks, l.tile)
	}
	l.units = tiles * l.parts
	l.grain = 1 + macsPerRange*l.parts/max(1, gemm.Work(l.tile, l.W.GroupOut, l.W.GroupIn)*graph.WinogradTerms)
	e.Reserve(l.WinogradWork())
}

// run computes the convolution, and reports whether all sums were finite.
func (l *winogradProduct) run() bool {
	l.faults.Store(false)
	l.e.Parallel(l.units, l.grain, l)
	return !l.faults.Load()
}

// Range computes parts of tiles [lo, hi).
func (l *winogradProduct) Range(worker, lo, hi int) {
	for t := lo; t < hi && !l.faults.Load(); t++ {
		l.e.Run.Poll()
		first, part, panels := t/l.parts*l.tile, t%l.parts, l.filter.Panels[0].Panels()
		l.multiplyBlocks(l.e.Workers[worker].Line, first, min(l.tile, l.blocks-first), panels*part/l.parts, panels*(part+1)/l.parts)
	}
}

// multiplyBlocks computes panels [from, to) of n blocks from the given one on.
func (l *winogradProduct) multiplyBlocks(scratch []float32, first, n, from, to int) {
	c, cols, f, inf := l.W.GroupIn, l.W.GroupOut, l.filter.Winograd, float32(math.Inf(1))
	scratch = scratch[:l.WinogradWork()]
	v, scratch := scratch[:graph.WinogradTerms*n*c], scratch[graph.WinogradTerms*n*c:]
	sums, edge := scratch[:graph.WinogradTerms*n*cols], scratch[graph.WinogradTerms*n*cols:]
	for i := range n {
		l.input(edge, first+i, v[i*c:], n*c)
	}
	for i, m := range f.Matrices {
		start := f.Zeros
		if i == winogradBias {
			start = l.filter.Bias
		}
		m.Mul(n, v[i*n*c:], c, start, sums[i*n*cols:], cols, -inf, inf, from, to)
	}
	at := from * simd.PanelCols
	for i := range n {
		l.output(edge, first+i, sums[i*cols+at:], n*cols, at, min(to*simd.PanelCols, cols)-at)
	}
}

// position returns the image of a block, and its row and column in it.
func (l *winogradProduct) position(block int) (image, y, x int) {
	line := block / l.across
	return line / l.down, line % l.down, block % l.across
}

// input transforms the pixels of a block, those outside of the image being 0.
func (l *winogradProduct) input(edge []float32, block int, v []float32, each int) {
	image, y, x := l.position(block)
	c, height, width := l.W.GroupIn, l.In.Dim[1], l.In.Dim[2]
	pixels := l.points.X[image*height*width*c:]
	if y, x = 2*y-l.Top, 2*x-l.Left; y >= 0 && x >= 0 && y+4 <= height && x+4 <= width {
		simd.WinogradInput(c, pixels[(y*width+x)*c:], width*c, c, v, each)
		return
	}
	edge = edge[:16*c]
	clear(edge)
	from, to := max(x, 0), min(x+4, width)
	for i := max(0, -y); i < min(4, height-y) && from < to; i++ {
		copy(edge[(4*i+from-x)*c:], pixels[((y+i)*width+from)*c:((y+i)*width+to)*c])
	}
	simd.WinogradInput(c, edge, 4*c, c, v, each)
}

// output transforms the sums of n columns of a block to pixels, and applies the merged function.
func (l *winogradProduct) output(edge []float32, block int, sums []float32, each, at, n int) {
	image, y, x := l.position(block)
	cols, width := l.W.GroupOut, l.Out.Dim[2]
	rows, pixels := min(2, l.Out.Dim[1]-2*y), min(2, width-2*x)
	to, pitch := l.y[((image*l.Out.Dim[1]+2*y)*width+2*x)*cols:], width*cols
	if rows == 2 && pixels == 2 {
		l.pixels(n, sums, each, to[at:], pitch, cols)
	} else {
		l.pixels(n, sums, each, edge, 2*n, n)
		for i := range rows * pixels {
			copy(to[i/pixels*pitch+i%pixels*cols+at:][:n], edge[(i/pixels*2+i%pixels)*n:])
		}
	}
	for i := range rows {
		finishNode(l.node, to[i*pitch:], pixels, cols, at, n)
	}
}

// pixels transforms sums to four pixels.
func (l *winogradProduct) pixels(n int, sums []float32, each int, y []float32, row, pixel int) {
	if !simd.WinogradOutput(n, sums, each, y, row, pixel, l.node.Min, l.node.Max) {
		l.faults.Store(true)
	}
}
