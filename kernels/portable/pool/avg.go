package pool

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/nhwc"
	"github.com/etrun-go/etrun/kernels/portable/loops"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// Arguments of avg_pool2d.out and avg_pool3d.out. That over one dimension has no divisor.
const avgCeil, avgIncludePad, avgDivisor = 4, 5, 6

// avgPool computes the mean of each window: its sum divided by divisor_override, or by the number of its elements in
// the padded input (count_include_pad) or in the input.
func avgPool(dims int) kernels.Func {
	out := avgDivisor + 1
	if dims == 1 {
		out = avgDivisor
	}
	return byMeanType(out, avgPoolOf[float32](dims, out), avgPoolOf[float64](dims, out), avgPoolOf[int64](dims, out))
}

// byMeanType returns the function for the type of an average's input and out, which it checks.
func byMeanType(out int, f32, f64, i64 kernels.Func) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		x := a.Tensor(0)
		if !x.DType.IsFloat() && x.DType != tensor.Int64 {
			return kernels.Bad(0, x.DType.String(), "a floating type or int64")
		}
		if t := a.Tensor(out); t.DType != x.DType {
			return kernels.Bad(out, t.DType.String(), "the input's "+x.DType.String())
		}
		return operand.ByType(x.DType, f32, f64, i64)(c, a)
	}
}

func avgPoolOf[T tensor.Compute](dims, out int) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		p := kernels.Keep[avgPass[T]](c)
		p.c = c
		if err := p.input(0, a.Tensor(0), dims); err != nil {
			return err
		}
		if err := p.slide(a, 1, -1, a.Bool(avgCeil)); err != nil {
			return err
		}
		p.includePad, p.divisor = a.Bool(avgIncludePad), 0
		if out > avgDivisor && !a.IsNone(avgDivisor) {
			if p.divisor = int(a.Int(avgDivisor)); p.divisor == 0 {
				return kernels.Bad(avgDivisor, "0", "anything but 0")
			}
		}
		return p.run(c, a, out)
	}
}

// adaptiveAvgPool averages windows that divide the input into output_size parts.
func adaptiveAvgPool(dims int) kernels.Func {
	return byMeanType(2, adaptiveOf[float32](dims), adaptiveOf[float64](dims), adaptiveOf[int64](dims))
}

func adaptiveOf[T tensor.Compute](dims int) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		p := kernels.Keep[avgPass[T]](c)
		p.c = c
		if err := p.input(0, a.Tensor(0), dims); err != nil {
			return err
		}
		if err := p.outSizes(a, dims); err != nil {
			return err
		}
		p.divisor = 0
		return p.run(c, a, 2)
	}
}

type avgPass[T tensor.Compute] struct {
	planar[T]
	includePad bool
	divisor    int // 0 for the size of the window
	last       lastPool[T]
	whole      bool // a window is a whole plane
	off        []int
	scratch    []T // a row of columns' sums for each worker
}

func (p *avgPass[T]) run(c *kernels.Ctx, a kernels.Args, outArg int) error {
	x, out := a.Tensor(0), a.Tensor(outArg)
	var dst [5]int
	if err := kernels.ResizeOut(a, outArg, p.sizes(&dst, x)); err != nil {
		return err
	}
	if out.Numel() == 0 {
		return nil
	}
	p.slideEvenly()
	p.countShares(c)
	if area := p.longest(0) * p.longest(1) * p.longest(2); area <= maxArea && channelsLast[T](x, out) {
		p.last.Mean, p.last.Adaptive, p.last.Shares = true, p.adaptive, p.shares
		p.last.run(c, &p.pooling, x, out)
		p.shares = [3][]T{}
		return nil
	}
	p.x, p.y, p.mean, p.whole = operand.In[T](c, x), operand.Out[T](c, out), true, p.coversPlane()
	y := p.y
	if p.short() && !p.whole {
		p.planar.run(c)
	} else {
		p.runRows(c)
	}
	operand.Store(c, out, y)
	return nil
}

// maxArea is the largest window whose elements are listed, and of maxima the largest number of its rows.
const maxArea = 1 << 14

// short reports whether windows are pooled in tiles: those of one size with few elements. Columns more than two apart take
// transpositions there, which vectors have to be worth. Long windows have more than one partial sum instead.
func (p *avgPass[T]) short() bool {
	const columns = 8
	lanes := tensor.TypeOf[T]() == tensor.Float32 && max(p.Kernel[2], p.Stride[2]) <= columns
	return !p.adaptive && p.tapped() && (p.Stride[2] <= 2 || lanes)
}

// slideEvenly replaces adaptive windows by sliding ones if they divide the input without a remainder.
func (p *avgPass[T]) slideEvenly() {
	if !p.adaptive || p.In[0]%p.Out[0] != 0 || p.In[1]%p.Out[1] != 0 || p.In[2]%p.Out[2] != 0 {
		return
	}
	p.Kernel = [3]int{p.In[0] / p.Out[0], p.In[1] / p.Out[1], p.In[2] / p.Out[2]}
	p.Stride, p.Pad, p.Dilate = p.Kernel, [3]int{}, [3]int{1, 1, 1}
	p.adaptive, p.includePad = false, false
}

// coversPlane reports whether the one window of a plane is all of it.
func (p *avgPass[T]) coversPlane() bool {
	for d := range 3 {
		if lo, hi, _ := p.bounds(d, 0); p.Out[d] != 1 || lo != 0 || hi != p.In[d] {
			return false
		}
	}
	return true
}

// countShares computes the divisors of the windows.
func (p *avgPass[T]) countShares(c *kernels.Ctx) {
	p.even = 1
	for d := range 3 {
		list := kernels.Scratch[T](c, p.Out[d])
		for at := range list {
			if list[at] = p.share(d, at); list[at] != list[0] {
				p.even = 0
			}
		}
		p.shares[d], p.even = list, p.even*list[0]
	}
}

// share returns the factor of a window's divisor for a dimension: the number of its indices in the padded input, or
// in the input. Along the depth it is divisor_override, if that is set.
func (p *avgPass[T]) share(d, at int) T {
	lo, hi, padded := p.bounds(d, at)
	switch {
	case p.divisor != 0 && d == 0:
		return T(p.divisor)
	case p.divisor != 0:
		return 1
	case p.includePad && !p.adaptive:
		return T(max(padded, 1))
	}
	return T(max(hi-lo, 1))
}

// runRows averages whole planes, or rows of windows.
func (p *avgPass[T]) runRows(c *kernels.Ctx) {
	p.lists = p.longest(0) * p.longest(1)
	units, width := p.planes*p.outRows(), p.In[2]
	if p.whole {
		p.lists, width = 0, 0
	}
	p.off = pack.Grow(p.off, c.Threads()*p.lists)
	p.scratch = kernels.Scratch[T](c, c.Threads()*width)
	c.Parallel(units, cpu.Grain(p.rowWork(), tapCost), p)
	p.x, p.y, p.scratch, p.shares = nil, nil, nil, [3][]T{}
}

// Range averages planes or rows [lo, hi).
func (p *avgPass[T]) Range(worker, lo, hi int) {
	if p.whole {
		points := window.Volume(p.In)
		sumPlanes(p.y[lo:hi], p.x[lo*points:], points)
		nhwc.Divide(p.y[lo:hi], p.even)
		return
	}
	for i := lo; i < hi; i++ {
		p.row(worker, i)
	}
}

// row averages output row i, counted over the planes: it sums the columns of the input, then those of each window.
func (p *avgPass[T]) row(worker, i int) {
	plane, d, r := p.point(i)
	in, points := p.In[2], window.Volume(p.In)
	x, y, scratch := p.x[plane*points:][:points], p.y[i*p.Out[2]:][:p.Out[2]], p.scratch[worker*in:][:in]
	off, _ := p.listLines(p.off[worker*p.lists:], d, r)
	simd.SumTaps(scratch, x, off, 1, in, in, in)
	tall, poll := p.shares[0][d]*p.shares[1][r], p.c.Poller()
	for j, wide := range p.shares[2] {
		first, n := p.span(2, j)
		poll.Done(1 + n)
		y[j] = sumOf(scratch[first:][:n]) / (tall * wide)
	}
}

// sumPlanes sums planes of so many points.
func sumPlanes[T tensor.Compute](y, x []T, points int) {
	const short = 256 // several are summed at a time
	if y, ok := any(y).([]float32); ok && points <= short {
		simd.SumRows(y, any(x).([]float32), points)
		return
	}
	for i := range y {
		y[i] = sumOf(x[i*points:][:points])
	}
}

func sumOf[T tensor.Compute](x []T) (s T) {
	if x, ok := any(x).([]float32); ok && len(x) >= 16 {
		return T(simd.Sum(x))
	}
	return loops.Sum(0, x)
}

// bounds returns the range of input indices of a window along a dimension, and its length in the padded input.
func (p *avgPass[T]) bounds(dim, at int) (lo, hi, padded int) {
	in := p.In[dim]
	if p.adaptive {
		lo, hi = window.Part(in, p.Out[dim], at)
		return lo, hi, hi - lo
	}
	start := p.Start(dim, at)
	end := min(start+p.Kernel[dim], in+p.Pad[dim])
	return max(start, 0), min(end, in), end - start
}
