package cortexm

import (
	"fmt"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// depthwiseConv2d is cortex_m::quantized_depthwise_conv2d.out. Weights are [1, height,
// width, out]; output channel o reads input channel o / depth_multiplier.
func depthwiseConv2d(c *kernels.Ctx, a kernels.Args) error {
	r := reader{Args: a}
	multiplier := int(r.within(convPad+2, 1, limit))
	if r.err == nil && multiplier > 1 {
		return multiplyDepth(c, &r, multiplier)
	}
	p := kernels.Keep[depthwise](c)
	p.depthGeometry(&r, 1)
	p.xOffset = depthwiseTail.finish(&r, &p.images, &p.codes, p.channels)
	if r.err != nil {
		return r.err
	}
	p.weights.set(a.Tensor(convWeights))
	p.run = 1
	if p.Stride[2] == 1 {
		p.run = min(max(runElements/(p.Kernel[1]*p.Kernel[2]*p.channels), 1), p.Out[2])
	}
	return again(c, p)
}

// depthGeometry reads and checks the geometry of a depthwise convolution.
func (w *images) depthGeometry(r *reader, multiplier int) {
	if depthwiseTail.read(r, w, convPad+1); r.err != nil {
		return
	}
	if t := r.Tensor(convWeights); t.Sizes[0] != 1 || t.Sizes[3] != w.channels*multiplier {
		r.bad(convWeights, "%v", fmt.Sprintf("[1, height, width, %d]", w.channels*multiplier), t)
	}
}

// multiplyDepth is a depthwise convolution with several output channels per input channel: a
// grouped convolution.
func multiplyDepth(c *kernels.Ctx, r *reader, multiplier int) error {
	p := kernels.Keep[product](c)
	if p.depthGeometry(r, multiplier); r.err != nil {
		return r.err
	}
	p.groups, p.outChannels = p.channels, p.channels*multiplier
	p.xOffset = depthwiseTail.finish(r, &p.images, &p.codes, p.outChannels)
	p.weights.in.setChannelsFirst(r.Tensor(convWeights))
	return p.begin(c, r)
}

// runElements is the approximate number of weights stored for a run of points.
const runElements = 1 << 14

// depthwise is a depthwise convolution with one output channel per input channel. Its ranges are
// rows of output points; runs of points that are adjacent in the input are processed together.
type depthwise struct {
	images
	c       *kernels.Ctx
	xOffset int32 // added to codes of the input
	codes   channels
	weights layout
	run     int     // points
	x, w    []int32 // the input with its offset; per tap a run of weights
	y       []int8
	sums    []int32 // per thread: a run of sums, and of products
}

// Repeat computes the same tensors again.
func (p *depthwise) Repeat(c *kernels.Ctx) error {
	if err := p.codes.check(); err != nil {
		return err
	}
	if p.output.t.Numel() == 0 {
		return nil
	}
	p.y = target[int8](c, &p.output)
	p.widen(c)
	p.c, p.sums = c, kernels.Scratch[int32](c, 2*p.run*p.channels*c.Threads())
	const elements = 1 << 16 // of about 20 µs
	c.Parallel(p.batch*p.Out[1], 1+elements/max(p.Out[2]*p.Kernel[1]*p.Kernel[2]*p.channels, 1), p)
	store(c, &p.output, p.y)
	return nil
}

// widen converts the input and the weights to int32.
func (p *depthwise) widen(c *kernels.Ctx) {
	x, w := load[int8](c, &p.input), load[int8](c, &p.weights)
	p.x, p.w = kernels.Scratch[int32](c, len(x)), kernels.Scratch[int32](c, len(w)*p.run)
	for i, v := range x {
		p.x[i] = int32(v) + p.xOffset
	}
	for i, v := range w {
		t, channel := i/p.channels, i%p.channels
		p.w[t*p.run*p.channels+channel] = int32(v)
	}
	size := p.run * p.channels
	for at := 0; at < len(p.w); at += size {
		repeat(p.w[at:][:size], p.channels)
	}
}

// repeat fills row with its first n elements.
func repeat(row []int32, n int) {
	for n < len(row) {
		n += copy(row[n:], row[:n])
	}
}

// Range computes rows [lo, hi) of output points.
func (p *depthwise) Range(worker, lo, hi int) {
	size := p.run * p.channels
	sums := p.sums[2*worker*size:][:2*size]
	for r := lo; r < hi; r++ {
		for col := 0; col < p.Out[2]; col += p.run {
			p.c.Poll()
			n := min(p.run, p.Out[2]-col) * p.channels
			p.start(sums[:n])
			p.points(sums[:n], sums[size:], r, col)
			for i := 0; i < n; i += p.channels {
				p.codes.store(p.y[r*p.Out[2]*p.channels+col*p.channels+i:], sums[i:i+p.channels], 0)
			}
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
	repeat(sums, p.channels)
}

// points adds the products of the points of a row, starting at col, to sums. Rows are numbered
// across all images.
func (p *depthwise) points(sums, products []int32, row, col int) {
	x := p.x[row/p.Out[1]*p.In[1]*p.In[2]*p.channels:]
	count := len(sums) / p.channels
	for ky := range p.Kernel[1] {
		iy, ok := p.source(1, row%p.Out[1], ky)
		if !ok {
			continue
		}
		for kx := range p.Kernel[2] {
			first := col*p.Stride[2] - p.Pad[2] + kx*p.Dilate[2] // of a run of adjacent points
			lo := min(max(-first, 0), count)
			hi := max(min(p.In[2]-first, count), lo)
			n, at := (hi-lo)*p.channels, (iy*p.In[2]+first+lo)*p.channels
			if n == 0 {
				continue
			}
			w := p.w[(ky*p.Kernel[2]+kx)*p.run*p.channels:]
			simd.MulInt32(products[:n], x[at:at+n], w[:n])
			to := sums[lo*p.channels:][:n]
			simd.AddInt32(to, to, products[:n])
		}
	}
}
