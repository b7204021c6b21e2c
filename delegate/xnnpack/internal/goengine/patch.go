package goengine

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// patch is the input of a convolution, [N, H, W, groups*GroupIn], read window by window. Elements
// outside of it are 0.
type patch struct {
	x         []float32
	w         *graph.Window
	in, out   graph.Shape
	top, left int
}

// pixel returns image, line and column of an output row.
func (p *patch) pixel(at int) (image, y, x int) {
	x = at % p.out.Dim[2]
	y = at / p.out.Dim[2] % p.out.Dim[1]
	return at / p.out.Dim[2] / p.out.Dim[1], y, x
}

func (p *patch) row(dst []float32, group, at int) {
	image, oy, ox := p.pixel(at)
	w := p.w
	for ky := range w.KernelH {
		y := oy*w.StrideH - p.top + ky*w.DilationH
		for kx := range w.KernelW {
			x := ox*w.StrideW - p.left + kx*w.DilationW
			p.gather(dst[(ky*w.KernelW+kx)*w.GroupIn:][:w.GroupIn], group, image, y, x)
		}
	}
}

// at returns the channels of an input pixel, nil outside of the input.
func (p *patch) at(image, y, x int) []float32 {
	h, v, c := p.in.Dim[1], p.in.Dim[2], p.in.Dim[3]
	if uint(y) >= uint(h) || uint(x) >= uint(v) {
		return nil
	}
	return p.x[((image*h+y)*v+x)*c:][:c]
}

// gather copies the channels of a group of one input pixel to dst.
func (p *patch) gather(dst []float32, group, image, y, x int) {
	if pixel := p.at(image, y, x); pixel != nil {
		copy(dst, pixel[group*len(dst):])
	} else {
		clear(dst)
	}
}

// transposedPatch is a patch of a transposed convolution: input pixels are strides apart in the
// output.
type transposedPatch patch

func (t *transposedPatch) row(dst []float32, group, at int) {
	p := (*patch)(t)
	image, oy, ox := p.pixel(at)
	w := p.w
	for ky := range w.KernelH {
		y := upsampled(oy+p.top-ky*w.DilationH, w.StrideH)
		for kx := range w.KernelW {
			x := upsampled(ox+p.left-kx*w.DilationW, w.StrideW)
			p.gather(dst[(ky*w.KernelW+kx)*w.GroupIn:][:w.GroupIn], group, image, y, x)
		}
	}
}

// upsampled returns the input position of an output position, or -1 if that is between strides.
func upsampled(at, stride int) int {
	if at < 0 || at%stride != 0 {
		return -1
	}
	return at / stride
}
