package graph

import (
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
)

// WindowGrid is the windows of a convolution's output pixels over an input of these sizes.
type WindowGrid struct {
	W         *Window
	In, Out   Shape
	Top, Left int
}

// Windows returns the windows of a node over an input without elements. A column of pixels is
// treated as a line.
func (n *Node) Windows(in, out Shape) WindowGrid {
	top, left := n.Padding(in.Dim[1], in.Dim[2])
	s := WindowGrid{W: n.Window(), In: in, Out: out, Top: top, Left: left}
	if in.Dim[2] == 1 && out.Dim[2] == 1 && s.W.KernelW == 1 && left == 0 {
		w := *s.W
		w.KernelH, w.KernelW, w.StrideH, w.StrideW = 1, w.KernelH, 1, w.StrideH
		w.DilationH, w.DilationW = 1, w.DilationH
		s.W, s.Top, s.Left = &w, 0, top
		s.In.Dim[1], s.In.Dim[2], s.Out.Dim[1], s.Out.Dim[2] = 1, in.Dim[1], 1, out.Dim[1]
	}
	return s
}

// ContiguousTaps returns the number of taps of a row of the kernel that are contiguous in the input.
func (w *Window) ContiguousTaps() int {
	if w.DilationW == 1 && w.Groups == 1 {
		return w.KernelW
	}
	return 1
}

// IsPointwise reports whether each window is one pixel, in order.
func (s *WindowGrid) IsPointwise() bool {
	w := s.W
	return w.KernelH*w.KernelW*w.StrideH*w.StrideW == 1 && s.In.Dim[1] == s.Out.Dim[1] && s.In.Dim[2] == s.Out.Dim[2] && s.Top+s.Left == 0
}

// Lines are computed one by one if they have at least longLine pixels, which suffice for tiles of
// rows, or at least shortLine pixels and a filter of at most smallFilter elements, which stays in the
// second-level cache from line to line. Contiguous taps must have at least shortRow elements.
const longLine, shortLine, smallFilter, shortRow = 12, 4, 64 << 10, 3

// padded returns the number of elements of an input line with the padding that windows cover.
func (s *WindowGrid) padded() int {
	return ((s.Out.Dim[2]-1)*s.W.StrideW + (s.W.KernelW-1)*s.W.DilationW + 1) * s.In.Dim[3]
}

// MaxPadded limits the length of a padded copy, relative to the input.
const MaxPadded = 4

// ByLines reports whether a convolution is computed by lines.
func (s *WindowGrid) ByLines() bool {
	w, width := s.W, s.Out.Dim[2]
	if k := s.W.ContiguousTaps() * w.GroupIn; k < shortRow || w.Groups > 1 && k < 4*shortRow {
		return false
	}
	if s.padded() > MaxPadded*s.In.Dim[2]*s.In.Dim[3] {
		return false
	}
	return width >= longLine || width >= shortLine && w.KernelH*w.KernelW*w.GroupIn*w.GroupOut <= smallFilter
}

// Copied returns the number of elements of a line that is copied because it needs padding, 0 if it
// needs none.
func (s *WindowGrid) Copied() int {
	if padded := s.padded(); s.Left > 0 || padded > s.In.Dim[2]*s.In.Dim[3] {
		return padded
	}
	return 0
}

// maxBlock is the maximum of lineProduct.block, and maxCopied the maximum number of elements of
// the copies of its lines.
const maxBlock, maxCopied = 4, 16 << 10

// Block returns lineProduct.block.
func (s *WindowGrid) Block() int {
	w := s.W
	if w.Groups > 1 || w.ContiguousTaps() < w.KernelW || w.KernelH*w.KernelW*w.GroupIn > gemm.Depth {
		return 0
	}
	if s.Copied() == 0 {
		return maxBlock
	}
	for n := maxBlock; n > 0; n-- {
		if s.LinesOf(n)*s.Copied() <= maxCopied {
			return n
		}
	}
	return 0
}

// LinesOf returns the number of input lines that the windows of so many output lines span.
func (s *WindowGrid) LinesOf(n int) int { return (n-1)*s.W.StrideH + (s.W.KernelH-1)*s.W.DilationH + 1 }

// Copies returns the number of elements of copied lines for a worker.
func (s *WindowGrid) Copies() int {
	if n := s.Block(); n > 0 {
		return s.LinesOf(n) * s.Copied()
	}
	return s.Copied()
}

// GatheredRows by GatheredDepth elements of windows are gathered at a time. They stay in the second-level
// cache while they are multiplied by all panels.
const GatheredRows, GatheredDepth = 64, 512

// denseElements is how many elements of rows that are not gathered are multiplied by all panels.
const denseElements = 64 << 10

// DenseRows returns how many rows of k elements that are not gathered are multiplied by all panels, which may be read from memory
// each time. They stay in the second-level cache.
func DenseRows(k int) int { return max(GatheredRows, denseElements/max(1, min(k, gemm.Depth))) }

// Lines of at most fewPixels or fewElements, or of at most narrowLine pixels if windows have more than manyWindowTaps taps, are
// computed from a padded copy of the input. Without padding, nearly every pixel would read another part of its window, or the
// pixels at the edges would take as long as the others.
const fewPixels, fewElements, narrowLine, manyWindowTaps = 7, 512, 64, 25

// IsNarrow reports whether that is so for a line of the output.
func (w *Window) IsNarrow(pixels int) bool {
	taps := w.KernelH * w.KernelW
	few := pixels <= fewPixels || pixels*w.Groups*w.GroupOut <= fewElements
	return taps > 1 && few || taps > manyWindowTaps && pixels <= narrowLine
}

// Joined reports whether the pixels of a kernel row are contiguous in the input.
func (n *Node) Joined() bool {
	w := n.Window()
	return n.Type.Tag != TagConvTranspose2d && w.Groups == 1 && (w.DilationW == 1 || w.KernelW == 1)
}

// AreInputPixels reports whether each window is a pixel of the input, in order.
func (w *Window) AreInputPixels() bool {
	return w.KernelH*w.KernelW*w.StrideH*w.StrideW == 1 && w.Top+w.Bottom+w.Left+w.Right == 0
}

// WinogradTerms is the number of products that a block of 2×2 pixels is computed from, for each pair of channels.
const WinogradTerms = 16

// Blocks of 2×2 pixels pay off from leastChannels and leastBlocks of an image on: filters in that form are 16/9 times as large,
// and are read from memory.
const leastChannels, leastBlocks = 32, 32

// Winograd reports whether a convolution is computed in blocks of 2×2 pixels, see [simd.WinogradInput]. It does not depend on the
// number of images: results of an image are the same in every batch.
func (s *WindowGrid) Winograd() bool {
	w := s.W
	for _, n := range []int{w.StrideH, w.StrideW, w.DilationH, w.DilationW, w.Groups} {
		if n != 1 {
			return false
		}
	}
	if w.KernelH != 3 || w.KernelW != 3 || w.GroupIn%simd.WinogradLanes > 0 || w.GroupOut%simd.WinogradLanes > 0 {
		return false
	}
	down, across := s.WinogradBlocks()
	return min(w.GroupIn, w.GroupOut) >= leastChannels && down*across >= leastBlocks
}

// WinogradBlocks returns the number of blocks of an image: below one another, and side by side.
func (s *WindowGrid) WinogradBlocks() (down, across int) {
	return CeilDiv(s.Out.Dim[1], 2), CeilDiv(s.Out.Dim[2], 2)
}

// Transformed blocks and their sums should stay in the second-level cache: at most winogradElements of them, but at least
// winogradLeast blocks, for which filters are read from memory each time.
const winogradElements, winogradLeast = 128 << 10, 24

// WinogradTile returns how many blocks are multiplied by the filter at once. All tiles have about as many.
func (s *WindowGrid) WinogradTile() int {
	down, across := s.WinogradBlocks()
	blocks := max(1, s.Out.Dim[0]*down*across)
	tiles := CeilDiv(blocks, max(winogradLeast, winogradElements/(WinogradTerms*(s.W.GroupIn+s.W.GroupOut))))
	return CeilDiv(blocks, tiles)
}

// WinogradWork returns the number of elements that a worker needs: for a tile of blocks, their sums, and one block at the edge.
func (s *WindowGrid) WinogradWork() int {
	in, out := s.W.GroupIn, s.W.GroupOut
	return WinogradTerms * (s.WinogradTile()*(in+out) + max(in, out))
}
