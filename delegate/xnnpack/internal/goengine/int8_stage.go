package goengine

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// overread is the number of bytes that 8-bit products may read past the last element that they use.
const overread = 16

// stage is the activations of a convolution, [N, H, W, C], in the form that its products read:
// surrounded by padding, and followed by readable bytes. If the input already has that form, it is
// used instead.
type stage struct {
	needed     bool
	n, h, w, c int     // of the input
	top, left  int     // padding
	rows, cols int     // rows and columns of an image, with padding
	padding    []uint8 // at least one row
}

// plan sets the stage up for windows over an input of [N, H, W, C]; tail is the number of bytes
// that products read past what they use. It reports whether the stage has a reasonable size.
func (s *stage) plan(n *graph.Node, in, out graph.Shape, tail int) bool {
	o := n.Window()
	top, left := n.Padding(in.Dim[1], in.Dim[2])
	*s = stage{n: in.Dim[0], h: in.Dim[1], w: in.Dim[2], c: in.Dim[3], top: top, left: left, padding: s.padding}
	s.rows = max(top+s.h, (out.Dim[1]-1)*o.StrideH+(o.KernelH-1)*o.DilationH+1)
	s.cols = max(left+s.w, (out.Dim[2]-1)*o.StrideW+(o.KernelW-1)*o.DilationW+1)
	s.needed = tail > 0 || s.rows != s.h || s.cols != s.w
	return s.bytes() <= stageLimit(in, out)
}

// stageLimit returns the largest reasonable size of a stage: a larger one is mostly padding.
func stageLimit(in, out graph.Shape) int64 { return int64(4*(in.Numel()+out.Numel())) + 1<<16 }

// bytes returns the size of the stage.
func (s *stage) bytes() int64 {
	return graph.Plus(graph.Times(s.n, s.rows, s.cols, s.c), overread)
}

// fill copies src to dst and pads each image with its zero.
func (s *stage) fill(dst, src []uint8, zero func(image int) uint8) {
	line, width := s.w*s.c, s.cols*s.c
	for image := range s.n {
		s.pad(zero(image), width)
		for y := range s.rows {
			row := dst[(image*s.rows+y)*width:][:width]
			if y < s.top || y >= s.top+s.h {
				copy(row, s.padding)
				continue
			}
			left := s.left * s.c
			copy(row[:left], s.padding)
			copy(row[left:], src[(image*s.h+y-s.top)*line:][:line])
			copy(row[left+line:], s.padding)
		}
	}
}

// pad sets s.padding to n bytes of zero.
func (s *stage) pad(zero uint8, n int) {
	if len(s.padding) >= n && s.padding[0] == zero {
		return
	}
	s.padding = grow(s.padding, n)
	for i := range s.padding {
		s.padding[i] = zero
	}
}

// pixel returns the offset of the window of an output pixel.
func (s *stage) pixel(image, y, x int, w *graph.Window) int {
	return ((image*s.rows+y*w.StrideH)*s.cols + x*w.StrideW) * s.c
}

// offsets appends the offsets of a window's segments in the stage: whole kernel rows if joined,
// else pixels.
func (s *stage) offsets(dst []int, w *graph.Window, joined bool) []int {
	for ky := range w.KernelH {
		row := ky * w.DilationH * s.cols * s.c
		if joined {
			dst = append(dst, row)
			continue
		}
		for kx := range w.KernelW {
			dst = append(dst, row+kx*w.DilationW*s.c)
		}
	}
	return dst
}
