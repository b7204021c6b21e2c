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

// check checks types and scratch tensors.
func (t tail) check(a kernels.Args) error {
	if err := wantInt8(a, convInput, convWeights, t.out); err != nil {
		return err
	}
	for i := t.scratch; i < t.out; i++ {
		if err := wantBytes(a, i); err != nil {
			return err
		}
	}
	return nil
}

// read reads the parameters of a convolution with n output channels.
func (t tail) read(a kernels.Args, q *channels, n int) (xOffset int32, err error) {
	if err := q.setBias(a, convBias, n); err != nil {
		return 0, err
	}
	if err := q.set(a, t.multipliers(), n); err != nil {
		return 0, err
	}
	if q.zero, err = zeroPoint(a, t.zero()); err != nil {
		return 0, err
	}
	if q.least, q.most, err = bounds(a, t.least(), t.least()+1); err != nil {
		return 0, err
	}
	return within(a, t.xOffset, -maxInputOffset, maxInputOffset)
}

// geometry reads input, kernel, stride, padding, and the dilation, argument dilation.
func (w *images) geometry(a kernels.Args, dilation int) error {
	if err := w.setInput(a, convInput); err != nil {
		return err
	}
	if err := w.setKernel(a, convWeights); err != nil {
		return err
	}
	if err := pair(&w.Stride, a, convStride, 1); err != nil {
		return err
	}
	if err := pair(&w.Pad, a, convPad, 0); err != nil {
		return err
	}
	return pair(&w.Dilate, a, dilation, 1)
}

// conv2d is cortex_m::quantized_conv2d.out. Weights are [out, height, width, in / groups]; their
// last size determines the groups. The padding value is the input's zero point.
func conv2d(c *kernels.Ctx, a kernels.Args) error {
	p := kernels.Keep[product](c)
	if err := convTail.check(a); err != nil {
		return err
	}
	if err := p.geometry(a, convPad+1); err != nil {
		return err
	}
	return p.convolve(c, a, convTail)
}

// transposeConv2d is cortex_m::quantized_transpose_conv2d.out, with weights as conv2d's. CMSIS-NN's
// kernel shifts rows if there is padding; this one does not.
func transposeConv2d(c *kernels.Ctx, a kernels.Args) error {
	p := kernels.Keep[product](c)
	if err := transposedTail.check(a); err != nil {
		return err
	}
	if err := p.geometry(a, convPad+2); err != nil {
		return err
	}
	p.transposed = true
	if err := pair(&p.outPad, a, convPad+1, 0); err != nil {
		return err
	}
	for d, n := range p.outPad {
		if n > 0 && n >= max(p.Stride[d], p.Dilate[d]) {
			return kernels.Badf(convPad+1, "less than the stride or the dilation", "%v", p.outPad)
		}
	}
	return p.convolve(c, a, transposedTail)
}

// convolve computes a convolution after its geometry has been read.
func (p *product) convolve(c *kernels.Ctx, a kernels.Args, t tail) (err error) {
	w := a.Tensor(convWeights)
	inGroup := w.Sizes[3]
	if p.outChannels = w.Sizes[0]; p.channels%inGroup != 0 || p.outChannels%(p.channels/inGroup) != 0 {
		return kernels.Badf(convWeights, fmt.Sprintf("channels that divide an input of %d in groups", p.channels), "%v", w)
	}
	p.groups = p.channels / inGroup
	if p.xOffset, err = t.read(a, &p.codes, p.outChannels); err != nil {
		return err
	}
	if err := p.slide(convWeights, false); err != nil {
		return err
	}
	if err := p.resize(a, t.out, p.outChannels); err != nil {
		return err
	}
	p.input.setImage(a.Tensor(convInput))
	p.output.setImage(a.Tensor(t.out))
	p.weights.in.set(w)
	return p.begin(c)
}
