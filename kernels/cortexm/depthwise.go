package cortexm

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// depthwiseConv2d is cortex_m::quantized_depthwise_conv2d.out. Weights are [1, height,
// width, out]; output channel o reads input channel o / depth_multiplier.
func depthwiseConv2d(c *kernels.Ctx, a kernels.Args) (err error) {
	p := kernels.Keep[depthwise](c)
	if err := depthwiseTail.check(a); err != nil {
		return err
	}
	if err := p.geometry(a, convPad+1); err != nil {
		return err
	}
	w := a.Tensor(convWeights)
	multiplier, err := within(a, convPad+2, 1, limit)
	if err != nil {
		return err
	}
	p.multiplier = int(multiplier)
	if out := w.Sizes[3]; w.Sizes[0] != 1 || out != p.channels*p.multiplier {
		return kernels.Badf(convWeights, fmt.Sprintf("[1, height, width, %d]", p.channels*p.multiplier), "%v", w)
	}
	if p.xOffset, err = depthwiseTail.read(a, &p.codes, w.Sizes[3]); err != nil {
		return err
	}
	if err := p.slide(convWeights, false); err != nil {
		return err
	}
	if err := p.resize(a, depthwiseTail.out, w.Sizes[3]); err != nil {
		return err
	}
	p.input.setImage(a.Tensor(convInput))
	p.output.setImage(a.Tensor(depthwiseTail.out))
	p.weights.set(w)
	return again(c, p)
}

// depthwise is what an instruction keeps. Its ranges are rows of output points.
type depthwise struct {
	window
	multiplier    int   // output channels of an input channel
	xOffset       int32 // added to codes of the input
	codes         channels
	input, output layout
	weights       layout
	x, y, w       []int8
	sums          []int32 // per thread: a point's
}

// Repeat computes the same tensors again.
func (p *depthwise) Repeat(c *kernels.Ctx) error {
	if err := p.codes.check(); err != nil {
		return err
	}
	if p.output.t.Numel() == 0 {
		return nil
	}
	channels := p.channels * p.multiplier
	p.x, p.y, p.w = load[int8](c, &p.input), target[int8](c, &p.output), load[int8](c, &p.weights)
	p.sums = kernels.Scratch[int32](c, channels*c.Threads())
	const elements = 1 << 15 // of about 20 µs
	c.Parallel(p.batch*p.out[0], 1+elements/max(p.out[1]*len(p.w), 1), p)
	store(c, &p.output, p.y)
	return nil
}

// Range computes rows [lo, hi) of output points.
func (p *depthwise) Range(worker, lo, hi int) {
	n := p.channels * p.multiplier
	sums := p.sums[worker*n:][:n]
	for r := lo; r < hi; r++ {
		x := p.x[r/p.out[0]*p.in[0]*p.in[1]*p.channels:]
		for col := range p.out[1] {
			p.start(sums)
			p.point(sums, x, r%p.out[0], col)
			p.codes.store(p.y[(r*p.out[1]+col)*n:], sums, 0)
		}
	}
}

// start sets sums to the bias.
func (p *depthwise) start(sums []int32) {
	if p.codes.bias == nil {
		clear(sums)
		return
	}
	copy(sums, tensor.Data[int32](p.codes.bias))
}

// point adds the products of output point (row, col) of image x to sums.
func (p *depthwise) point(sums []int32, x []int8, row, col int) {
	for ky := range p.kernel[0] {
		iy, ok := p.source(0, row, ky)
		if !ok {
			continue
		}
		for kx := range p.kernel[1] {
			if ix, ok := p.source(1, col, kx); ok {
				at := (iy*p.in[1] + ix) * p.channels
				w := p.w[(ky*p.kernel[1]+kx)*len(sums):][:len(sums)]
				addProducts(sums, x[at:at+p.channels], w, p.xOffset, p.multiplier)
			}
		}
	}
}

// addProducts adds (x + offset) · w, each x with several weights.
func addProducts(sums []int32, x, w []int8, offset int32, multiplier int) {
	if multiplier == 1 {
		x, w = x[:len(sums)], w[:len(sums)]
		for i := range sums {
			sums[i] += (int32(x[i]) + offset) * int32(w[i])
		}
		return
	}
	for _, v := range x {
		f, row := int32(v)+offset, w[:multiplier]
		s := sums[:multiplier]
		for i, u := range row {
			s[i] += f * int32(u)
		}
		sums, w = sums[multiplier:], w[multiplier:]
	}
}
