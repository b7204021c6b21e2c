package cortexm

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels"
)

// Arguments of all convolutions, and how many stand between dilation and the rest.
const convInput, convWeights, convBias, convStride, convPad = 0, 1, 2, 3, 4

// tail contains the indices of the arguments after a convolution's geometry: offsets, scales,
// bounds and scratch tensors, then the out.
type tail struct{ xOffset, scratch, out int }

func (t tail) zero() int        { return t.xOffset + 1 }
func (t tail) multipliers() int { return t.xOffset + 2 }
func (t tail) least() int       { return t.xOffset + 4 }

var (
	convTail       = tail{6, 12, 13}
	depthwiseTail  = tail{7, 13, 14}
	transposedTail = tail{7, 13, 15}
)

// read checks types and scratch tensors, then reads the geometry: input, kernel, stride, padding, and
// the dilation, argument dilation.
func (t tail) read(r *reader, w *images, dilation int) {
	r.int8(convInput, convWeights, t.out)
	for i := t.scratch; i < t.out; i++ {
		r.bytes(i)
	}
	w.setInput(r, convInput)
	w.setKernel(r, convWeights)
	r.pair(&w.Stride, convStride, 1)
	r.pair(&w.Pad, convPad, 0)
	r.pair(&w.Dilate, dilation, 1)
}

// finish reads the other parameters of a convolution with n output channels, and resizes the out.
func (t tail) finish(r *reader, w *images, q *channels, n int) (xOffset int32) {
	q.setBias(r, convBias, n)
	q.set(r, t.multipliers(), n)
	q.zero = r.int32(t.zero())
	q.least, q.most = r.bounds(t.least(), t.least()+1)
	xOffset = r.inputOffset(t.xOffset)
	w.place(r, convWeights, false, t.out, n)
	return xOffset
}

// conv2d is cortex_m::quantized_conv2d.out. Weights are [out, height, width, in / groups]; their
// last size determines the groups. The padding value is the input's zero point.
func conv2d(c *kernels.Ctx, a kernels.Args) error {
	p, r := kernels.Keep[product](c), reader{Args: a}
	convTail.read(&r, &p.images, convPad+1)
	return p.convolve(c, &r, convTail)
}

// transposeConv2d is cortex_m::quantized_transpose_conv2d.out, with weights as conv2d's. CMSIS-NN's
// kernel shifts rows if there is padding; this one does not.
func transposeConv2d(c *kernels.Ctx, a kernels.Args) error {
	p, r := kernels.Keep[product](c), reader{Args: a}
	transposedTail.read(&r, &p.images, convPad+2)
	p.transposed = true
	r.pair(&p.outPad, convPad+1, 0)
	for d, n := range p.outPad {
		if n > 0 && n >= max(p.Stride[d], p.Dilate[d]) {
			r.bad(convPad+1, "%v", "less than the stride or the dilation", p.outPad)
		}
	}
	return p.convolve(c, &r, transposedTail)
}

// convolve computes a convolution after its geometry has been read.
func (p *product) convolve(c *kernels.Ctx, r *reader, t tail) error {
	if r.err != nil {
		return r.err
	}
	w := r.Tensor(convWeights)
	inGroup := w.Sizes[3]
	if p.outChannels = w.Sizes[0]; p.channels%inGroup != 0 || p.outChannels%(p.channels/inGroup) != 0 {
		return kernels.Badf(convWeights, fmt.Sprintf("channels that divide an input of %d in groups", p.channels), "%v", w)
	}
	p.groups = p.channels / inGroup
	p.xOffset = t.finish(r, &p.images, &p.codes, p.outChannels)
	p.weights.in.set(w)
	return p.begin(c, r)
}
