package xnnpack

import (
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/hal/cpu"
)

// On processors with AMX, Debian's version of the library multiplies 8-bit weights in tiles of 16 rows, 64
// output channels and 64 input channels. Their time depends little on how much of them is used.
const amxRows, amxWidth = 16, 64

// libraryTiles are times of these products, fitted to 9,000 random ones: per node, output pixel, tile of
// the output, copy of a pixel of a window (tap) and product of tiles (work).
var libraryTiles = quantities{node: 24, row: 5, tile: 130, tap: 0.5, work: 39}

// hasTiles reports whether a version of the library has kernels for AMX and selects them.
func hasTiles(lib *xnn.Soname) bool {
	return (lib == nil || lib.Build == debianBuild) && usesTiles(cpu.ReadHardware())
}

// inTiles reports whether the library computes a node in tiles.
func (e *estimator) inTiles(n *node) bool {
	if !e.tiles || n.isDepthwise() || !n.Type.convolution && n.Type.tag != tagFullyConnected {
		return false
	}
	filter := e.filterOf(n)
	return (filter == qint8 || filter == qcint8) && e.Values[n.In[0]].Datatype.info().bits == 8
}

// tilesTime returns the time of a node that is computed in tiles.
func (e *estimator) tilesTime(n *node) float64 {
	in, out := e.shapes[n.In[0]], e.shapes[n.Out[0]]
	if n.Type.tag == tagFullyConnected {
		rows := out.numel() / max(out.last(), 1)
		return e.tileProducts(rows, ceilDiv(rows, amxRows), 1, in.last(), out.last(), 0)
	}
	w := n.window()
	taps, gathered, rows := w.kernelH*w.kernelW, 1, out.leading(3)*w.groups
	tiles := out.dim[0] * w.groups * ceilDiv(out.dim[1]*out.dim[2], amxRows)
	switch phases := phases(w); {
	case n.Type.tag == tagConvTranspose2d && phases > 1: // one convolution for each position in a stride, line by line
		tiles = out.leading(2) * w.groups * w.strideW * ceilDiv(ceilDiv(out.dim[2], w.strideW), amxRows)
		taps = ceilDiv(taps, phases)
	case w.areInputPixels():
		gathered = 0
	}
	return e.tileProducts(rows, tiles, taps, w.groupIn, w.groupOut, gathered)
}

// tileProducts returns the time of products of rows that are divided into tiles, for each tap.
func (e *estimator) tileProducts(rows, tiles, taps, channels, columns, gathered int) float64 {
	wide := ceilDiv(columns, amxWidth)
	q := quantities{node: 1, row: float64(rows), tile: float64(tiles * wide), tap: float64(rows * taps * wide * gathered)}
	q.work = q.tile * float64(taps*ceilDiv(channels, amxWidth))
	return q.times(&libraryTiles)
}
