package cortexm

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/kernels"
)

// pooling is the state of an instruction. Its ranges are rows of output points.
type pooling struct {
	images
	c           *kernels.Ctx
	average     bool
	least, most int8 // of a maximum
	x, y        []int8
	sums        []int32 // per thread: a point's
}

// Arguments common to both operators.
const poolKernel, poolStride, poolPad = 1, 2, 3

// finish reads kernel size, stride and padding, resizes the out and pools.
func (p *pooling) finish(c *kernels.Ctx, r *reader, ceil bool, out int) error {
	r.pair(&p.Kernel, poolKernel, 1)
	r.pair(&p.Stride, poolStride, 1)
	r.pair(&p.Pad, poolPad, 0)
	for d, n := range p.Pad {
		if n >= p.Kernel[d] {
			r.bad(poolPad, "%v", fmt.Sprintf("less than the kernel, %v", p.Kernel[1:]), p.Pad[1:])
		}
	}
	if p.average && p.Kernel[1]*p.Kernel[2] > limit {
		r.bad(poolKernel, "%v", "fewer than 2^31 elements", p.Kernel[1:])
	}
	if p.place(r, poolKernel, ceil, out, p.channels); r.err != nil {
		return r.err
	}
	return again(c, p)
}

// avgPool is cortex_m::quantized_avg_pool2d.out: the mean of the stored values inside the input,
// rounded half away from 0. It does not change scale and zero point, which are ignored.
func avgPool(c *kernels.Ctx, a kernels.Args) error {
	p, r := kernels.Keep[pooling](c), reader{Args: a}
	r.int8(0, 9)
	r.bytes(8)
	p.setInput(&r, 0)
	p.average = true
	return p.finish(c, &r, a.Bool(4), 9)
}

// maxPool is cortex_m::quantized_max_pool2d.out: the maximum inside the input, clamped. CMSIS-NN
// supports neither dilation nor ceil mode.
func maxPool(c *kernels.Ctx, a kernels.Args) error {
	p, r := kernels.Keep[pooling](c), reader{Args: a}
	r.int8(0, 10)
	p.setInput(&r, 0)
	checkMax(&r)
	least, most := r.bounds(8, 9)
	p.average, p.least, p.most = false, int8(least), int8(most)
	return p.finish(c, &r, false, 10)
}

// checkMax rejects parameters that the maximum does not support.
func checkMax(r *reader) {
	dilate := ones
	if r.pair(&dilate, 4, 1); dilate != ones {
		r.bad(4, "%v", "[1 1]", dilate[1:])
	}
	if r.Bool(5) {
		r.bad(5, "true", "false")
	}
	if zero := r.code(6); r.Int(7) != int64(zero) {
		r.bad(7, "%d", fmt.Sprintf("the input's, %d", zero), r.Int(7))
	}
}

// Repeat pools the same tensors again.
func (p *pooling) Repeat(c *kernels.Ctx) error {
	if p.output.t.Numel() == 0 {
		return nil
	}
	p.x, p.y = load[int8](c, &p.input), target[int8](c, &p.output)
	p.c, p.sums = c, kernels.Scratch[int32](c, p.channels*c.Threads())
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
			p.c.Poll()
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
