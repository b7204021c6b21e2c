package cost

import (
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
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
	return (lib == nil || lib.Build == DebianBuild) && UsesTiles(cpu.ReadHardware())
}

// inTiles reports whether the library computes a node in tiles.
func (e *Estimator) inTiles(n *graph.Node) bool {
	if !e.tiles || n.IsDepthwise() || !n.Type.Convolution && n.Type.Tag != graph.TagFullyConnected {
		return false
	}
	filter := e.FilterOf(n)
	return (filter == graph.QInt8 || filter == graph.QCInt8) && e.Values[n.In[0]].Datatype.Info().Bits == 8
}

// tilesTime returns the time of a node that is computed in tiles.
func (e *Estimator) tilesTime(n *graph.Node) float64 {
	in, out := e.Shapes[n.In[0]], e.Shapes[n.Out[0]]
	if n.Type.Tag == graph.TagFullyConnected {
		rows := out.Numel() / max(out.Last(), 1)
		return e.tileProducts(rows, graph.CeilDiv(rows, amxRows), 1, in.Last(), out.Last(), 0)
	}
	w := n.Window()
	taps, gathered, rows := w.KernelH*w.KernelW, 1, out.Leading(3)*w.Groups
	tiles := out.Dim[0] * w.Groups * graph.CeilDiv(out.Dim[1]*out.Dim[2], amxRows)
	switch phases := phases(w); {
	case n.Type.Tag == graph.TagConvTranspose2d && phases > 1: // one convolution for each position in a stride, line by line
		tiles = out.Leading(2) * w.Groups * w.StrideW * graph.CeilDiv(graph.CeilDiv(out.Dim[2], w.StrideW), amxRows)
		taps = graph.CeilDiv(taps, phases)
	case w.AreInputPixels():
		gathered = 0
	}
	return e.tileProducts(rows, tiles, taps, w.GroupIn, w.GroupOut, gathered)
}

// tileProducts returns the time of products of rows that are divided into tiles, for each tap.
func (e *Estimator) tileProducts(rows, tiles, taps, channels, columns, gathered int) float64 {
	wide := graph.CeilDiv(columns, amxWidth)
	q := quantities{node: 1, row: float64(rows), tile: float64(tiles * wide), tap: float64(rows * taps * wide * gathered)}
	q.work = q.tile * float64(taps*graph.CeilDiv(channels, amxWidth))
	return q.times(&libraryTiles)
}

// UsesTiles reports whether the library selects kernels for AMX on a processor.
func UsesTiles(h cpu.Hardware) bool { return h.AMXInt8 }

// DebianBuild is the build of Debian's version, see xnn.Soname.
const DebianBuild = "4ea82e595b36"
