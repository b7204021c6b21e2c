package cortexm

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/kernels"
)

// pooling is the state of an instruction. Its ranges are rows of output points.
type pooling struct {
	images
	input, output layout
	average       bool
	least, most   int8 // of a maximum
	x, y          []int8
	sums          []int32 // per thread: a point's
}

// Arguments common to both operators.
const poolKernel, poolStride, poolPad = 1, 2, 3

// slide reads kernel size, stride and padding.
func (p *pooling) slide(a kernels.Args, ceil bool) error {
	if err := pair(&p.Kernel, a, poolKernel, 1); err != nil {
		return err
	}
	if err := pair(&p.Stride, a, poolStride, 1); err != nil {
		return err
	}
	if err := pair(&p.Pad, a, poolPad, 0); err != nil {
		return err
	}
	for d, n := range p.Pad {
		if n >= p.Kernel[d] {
			return kernels.Badf(poolPad, fmt.Sprintf("less than the kernel, %v", p.Kernel[1:]), "%v", p.Pad[1:])
		}
	}
	return p.images.slide(poolKernel, ceil)
}

// finish resizes the out and pools.
func (p *pooling) finish(c *kernels.Ctx, a kernels.Args, out int) error {
	if err := p.resize(a, out, p.channels); err != nil {
		return err
	}
	p.input.setImage(a.Tensor(0))
	p.output.setImage(a.Tensor(out))
	return again(c, p)
}

// avgPool is cortex_m::quantized_avg_pool2d.out: the mean of the stored values inside the input,
// rounded half away from 0. It does not change scale and zero point, which are ignored.
func avgPool(c *kernels.Ctx, a kernels.Args) error {
	p := kernels.Keep[pooling](c)
	if err := wantInt8(a, 0, 9); err != nil {
		return err
	}
	if err := wantBytes(a, 8); err != nil {
		return err
	}
	if err := p.setInput(a, 0); err != nil {
		return err
	}
	if err := p.slide(a, a.Bool(4)); err != nil {
		return err
	}
	if p.average = true; p.Kernel[1]*p.Kernel[2] > limit {
		return kernels.Badf(poolKernel, "fewer than 2^31 elements", "%v", p.Kernel[1:])
	}
	return p.finish(c, a, 9)
}

// maxPool is cortex_m::quantized_max_pool2d.out: the maximum inside the input, clamped. CMSIS-NN
// supports neither dilation nor ceil mode.
func maxPool(c *kernels.Ctx, a kernels.Args) error {
	p := kernels.Keep[pooling](c)
	if err := wantInt8(a, 0, 10); err != nil {
		return err
	}
	if err := p.setInput(a, 0); err != nil {
		return err
	}
	if err := p.checkMax(a); err != nil {
		return err
	}
	least, most, err := bounds(a, 8, 9)
	if err != nil {
		return err
	}
	p.average, p.least, p.most = false, int8(least), int8(most)
	if err := p.slide(a, false); err != nil {
		return err
	}
	return p.finish(c, a, 10)
}

// checkMax rejects parameters that the maximum does not support.
func (p *pooling) checkMax(a kernels.Args) error {
	var dilate [3]int
	if err := pair(&dilate, a, 4, 1); err != nil {
		return err
	}
	if dilate != ones {
		return kernels.Badf(4, "[1 1]", "%v", dilate[1:])
	}
	if a.Bool(5) {
		return kernels.Bad(5, "true", "false")
	}
	zero, err := code(a, 6)
	if err != nil {
		return err
	}
	if v := a.Int(7); v != int64(zero) {
		return kernels.Badf(7, fmt.Sprintf("the input's, %d", zero), "%d", v)
	}
	return nil
}

// Repeat pools the same tensors again.
func (p *pooling) Repeat(c *kernels.Ctx) error {
	if p.output.t.Numel() == 0 {
		return nil
	}
	p.x, p.y = load[int8](c, &p.input), target[int8](c, &p.output)
	p.sums = kernels.Scratch[int32](c, p.channels*c.Threads())
	taps := min(p.Kernel[1], p.In[1]) * min(p.Kernel[2], p.In[2])
	c.Parallel(p.batch*p.Out[1], 1+grain/max(p.Out[2]*p.channels*taps, 1), p)
	store(c, &p.output, p.y)
	return nil
}

// Range pools rows [lo, hi) of output points.
func (p *pooling) Range(worker, lo, hi int) {
	sums := p.sums[worker*p.channels:][:p.channels]
	for r := lo; r < hi; r++ {
		x := p.x[r/p.Out[1]*p.In[1]*p.In[2]*p.channels:]
		y := p.y[r*p.Out[2]*p.channels:]
		for i := range p.Out[2] {
			dst := y[i*p.channels:][:p.channels]
			if p.average {
				p.mean(dst, sums, x, r%p.Out[1], i)
			} else {
				p.largest(dst, x, r%p.Out[1], i)
			}
		}
	}
}

// rows calls f with the elements inside each row of the window at (row, col), and returns the
// number of points.
func (p *pooling) rows(x []int8, row, col int, f func(x []int8)) (points int) {
	top, h0, h1 := p.Taps(1, row)
	left, w0, w1 := p.Taps(2, col)
	for h := h0; h < h1; h++ {
		at := ((top+h)*p.In[2] + left + w0) * p.channels
		f(x[at : at+(w1-w0)*p.channels])
	}
	return (h1 - h0) * (w1 - w0)
}

// mean averages the window at (row, col) of image x.
func (p *pooling) mean(dst []int8, sums []int32, x []int8, row, col int) {
	clear(sums)
	n := int32(p.rows(x, row, col, func(x []int8) {
		for len(x) > 0 {
			for i, v := range x[:len(sums)] {
				sums[i] += int32(v)
			}
			x = x[len(sums):]
		}
	}))
	for i, s := range sums {
		if s > 0 {
			s += n / 2
		} else {
			s -= n / 2
		}
		dst[i] = int8(s / n)
	}
}

// largest is the maximum of the window at (row, col) of image x.
func (p *pooling) largest(dst, x []int8, row, col int) {
	for i := range dst {
		dst[i] = math.MinInt8
	}
	p.rows(x, row, col, func(x []int8) {
		for len(x) > 0 {
			for i, v := range x[:len(dst)] {
				dst[i] = max(dst[i], v)
			}
			x = x[len(dst):]
		}
	})
	for i, v := range dst {
		dst[i] = min(max(v, p.least), p.most)
	}
}
