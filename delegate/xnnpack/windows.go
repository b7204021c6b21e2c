package xnnpack

import "github.com/etrun-go/etrun/internal/gemm"

// windowGrid is the windows of a convolution's output pixels over an input of these sizes.
type windowGrid struct {
	w         *window
	in, out   shape
	top, left int
}

// windows returns the windows of a node over an input without elements. A column of pixels is
// treated as a line.
func (n *node) windows(in, out shape) windowGrid {
	top, left := n.padding(in.dim[1], in.dim[2])
	s := windowGrid{w: n.window(), in: in, out: out, top: top, left: left}
	if in.dim[2] == 1 && out.dim[2] == 1 && s.w.kernelW == 1 && left == 0 {
		w := *s.w
		w.kernelH, w.kernelW, w.strideH, w.strideW = 1, w.kernelH, 1, w.strideH
		w.dilationH, w.dilationW = 1, w.dilationH
		s.w, s.top, s.left = &w, 0, top
		s.in.dim[1], s.in.dim[2], s.out.dim[1], s.out.dim[2] = 1, in.dim[1], 1, out.dim[1]
	}
	return s
}

// contiguousTaps returns the number of taps of a row of the kernel that are contiguous in the input.
func (w *window) contiguousTaps() int {
	if w.dilationW == 1 && w.groups == 1 {
		return w.kernelW
	}
	return 1
}

// isPointwise reports whether each window is one pixel, in order.
func (s *windowGrid) isPointwise() bool {
	w := s.w
	return w.kernelH*w.kernelW*w.strideH*w.strideW == 1 && s.in.dim[1] == s.out.dim[1] && s.in.dim[2] == s.out.dim[2] && s.top+s.left == 0
}

// Lines are computed one by one if they have at least longLine pixels, which suffice for tiles of
// rows, or at least shortLine pixels and a filter of at most smallFilter elements, which stays in the
// second-level cache from line to line. Contiguous taps must have at least shortRow elements.
const longLine, shortLine, smallFilter, shortRow = 12, 4, 64 << 10, 3

// padded returns the number of elements of an input line with the padding that windows cover.
func (s *windowGrid) padded() int {
	return ((s.out.dim[2]-1)*s.w.strideW + (s.w.kernelW-1)*s.w.dilationW + 1) * s.in.dim[3]
}

// maxPadded limits the length of a padded copy, relative to the input.
const maxPadded = 4

// suitsLines reports whether a convolution is computed by lines.
func (s *windowGrid) suitsLines() bool {
	w, width := s.w, s.out.dim[2]
	if k := s.w.contiguousTaps() * w.groupIn; k < shortRow || w.groups > 1 && k < 4*shortRow {
		return false
	}
	if s.padded() > maxPadded*s.in.dim[2]*s.in.dim[3] {
		return false
	}
	return width >= longLine || width >= shortLine && w.kernelH*w.kernelW*w.groupIn*w.groupOut <= smallFilter
}

// copied returns the number of elements of a line that is copied because it needs padding, 0 if it
// needs none.
func (s *windowGrid) copied() int {
	if padded := s.padded(); s.left > 0 || padded > s.in.dim[2]*s.in.dim[3] {
		return padded
	}
	return 0
}

// maxBlock is the maximum of lineProduct.block, and maxCopied the maximum number of elements of
// the copies of its lines.
const maxBlock, maxCopied = 4, 16 << 10

// block returns lineProduct.block.
func (s *windowGrid) block() int {
	w := s.w
	if w.groups > 1 || w.contiguousTaps() < w.kernelW || w.kernelH*w.kernelW*w.groupIn > gemm.Depth {
		return 0
	}
	if s.copied() == 0 {
		return maxBlock
	}
	for n := maxBlock; n > 0; n-- {
		if s.linesOf(n)*s.copied() <= maxCopied {
			return n
		}
	}
	return 0
}

// linesOf returns the number of input lines that the windows of so many output lines span.
func (s *windowGrid) linesOf(n int) int { return (n-1)*s.w.strideH + (s.w.kernelH-1)*s.w.dilationH + 1 }

// copies returns the number of elements of copied lines for a worker.
func (s *windowGrid) copies() int {
	if n := s.block(); n > 0 {
		return s.linesOf(n) * s.copied()
	}
	return s.copied()
}

// gatheredRows by gatheredDepth elements of windows are gathered at a time. They stay in the second-level
// cache while they are multiplied by all panels.
const gatheredRows, gatheredDepth = 64, 512

// Lines of at most fewPixels, or of at most narrowLine if windows have more than manyWindowTaps taps, are computed from
// a padded copy of the input. Without padding, nearly every pixel would read another part of its window.
const fewPixels, narrowLine, manyWindowTaps = 7, 16, 25

// isNarrow reports whether that is so for a line of the output.
func (w *window) isNarrow(pixels int) bool {
	taps := w.kernelH * w.kernelW
	return taps > 1 && pixels <= fewPixels || taps > manyWindowTaps && pixels <= narrowLine
}

// joined reports whether the pixels of a kernel row are contiguous in the input.
func (n *node) joined() bool {
	w := n.window()
	return n.Type.tag != tagConvTranspose2d && w.groups == 1 && (w.dilationW == 1 || w.kernelW == 1)
}
