package pool

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Arguments of avg_pool2d.out.
const avgCeil, avgIncludePad, avgDivisor, avgOut = 4, 5, 6, 7

// avgPool is the mean of each window: its sum by divisor_override, else by the
// elements of the window within the padded input (count_include_pad) or the input.
func avgPool(c *kernels.Ctx, a kernels.Args) error {
	return byMeanType(c, a, avgOut, avgPoolOf[float32], avgPoolOf[float64], avgPoolOf[int64])
}

// byMeanType checks the types of an average's input and out and calls its function.
func byMeanType(c *kernels.Ctx, a kernels.Args, out int, f32, f64, i64 kernels.Func) error {
	x := a.Tensor(0)
	if !x.DType.IsFloat() && x.DType != tensor.Int64 {
		return kernels.Bad(0, x.DType.String(), "a floating type or int64")
	}
	if t := a.Tensor(out); t.DType != x.DType {
		return kernels.Bad(out, t.DType.String(), "the input's "+x.DType.String())
	}
	return operand.ByType(x.DType, f32, f64, i64)(c, a)
}

func avgPoolOf[T tensor.Compute](c *kernels.Ctx, a kernels.Args) error {
	x, out := a.Tensor(0), a.Tensor(avgOut)
	p := kernels.Keep[avgPass[T]](c)
	if err := p.input(0, x); err != nil {
		return err
	}
	if err := p.slide(a, 1, -1, a.Bool(avgCeil)); err != nil {
		return err
	}
	p.includePad, p.divisor, p.adaptive = a.Bool(avgIncludePad), int(a.OptInt(avgDivisor, 0)), false
	if p.divisor == 0 && !a.IsNone(avgDivisor) {
		return kernels.Bad(avgDivisor, "0", "anything but 0")
	}
	return p.run(c, a, x, out, avgOut)
}

// adaptiveAvgPool averages windows that cut the input into output_size parts.
func adaptiveAvgPool(c *kernels.Ctx, a kernels.Args) error {
	return byMeanType(c, a, 2, adaptiveOf[float32], adaptiveOf[float64], adaptiveOf[int64])
}

func adaptiveOf[T tensor.Compute](c *kernels.Ctx, a kernels.Args) error {
	x, out := a.Tensor(0), a.Tensor(2)
	p := kernels.Keep[avgPass[T]](c)
	if err := p.input(0, x); err != nil {
		return err
	}
	if n := len(a.Ints(1)); n != 2 {
		return kernels.Badf(1, "2 entries", "%d", n)
	}
	if err := pair(&p.out, a, 1, 0, nil); err != nil {
		return err
	}
	p.adaptive = true
	return p.run(c, a, x, out, 2)
}

type avgPass[T tensor.Compute] struct {
	window
	includePad bool
	divisor    int // 0 for the size of the window
	adaptive   bool
	x, y       []T

	tapped   bool // by bands
	bands    bands[T]
	channels int // not 0 where they lie last
	off      []int
	taps     int     // of off for each worker
	room     []T     // a row of columns' sums for each worker
	cols     []int64 // where each window of a row starts and ends
	across   []T     // and what its length counts for in its divisor
	divisors []T     // what a band or a point's channels are divided by, for each worker
	plot     int     // of divisors for each worker
}

func (p *avgPass[T]) run(c *kernels.Ctx, a kernels.Args, x, out *tensor.Tensor, outArg int) error {
	var dst [4]int
	if err := kernels.ResizeOut(a, outArg, p.sizes(&dst, x)); err != nil {
		return err
	}
	if out.Numel() == 0 {
		return nil
	}
	p.slideEvenly()
	p.channels = 0
	if area := p.longest(0) * p.longest(1); area <= mostArea && channelsLast[T](x, out) {
		p.channels = x.Sizes[1]
		p.x, p.y = tensor.Data[T](x), tensor.Data[T](out)
		p.compute(c)
		return nil
	}
	y := operand.Out[T](c, out)
	p.x, p.y = operand.In[T](c, x), y
	p.compute(c)
	operand.Store(c, out, y)
	return nil
}

// mostArea is the largest window whose points are listed.
const mostArea = 1 << 14

// slideEvenly makes a sliding window of an adaptive one that divides the input without
// a remainder.
func (p *avgPass[T]) slideEvenly() {
	if !p.adaptive || p.in[0]%p.out[0] != 0 || p.in[1]%p.out[1] != 0 {
		return
	}
	p.kernel = [2]int{p.in[0] / p.out[0], p.in[1] / p.out[1]}
	p.stride, p.pad, p.dilate = p.kernel, [2]int{}, [2]int{1, 1}
	p.adaptive, p.includePad, p.divisor = false, false, 0
}

// longest bounds the length of the windows along a dimension.
func (p *avgPass[T]) longest(d int) int {
	if p.adaptive {
		return min(p.in[d]/p.out[d]+2, p.in[d])
	}
	return min(p.kernel[d], p.in[d])
}

// compute averages p.x to p.y.
func (p *avgPass[T]) compute(c *kernels.Ctx) {
	units, work := p.planes*p.out[0], p.out[1]*p.longest(0)*p.longest(1)
	p.tapped = p.channels == 0 && !p.adaptive && p.stride[1] <= 2 && p.bands.plan(c, &p.window, 0)
	switch {
	case p.tapped:
		units, work = p.bands.planes*p.bands.count, p.bands.rows*work
		p.plot = p.bands.rows * p.out[1]
	case p.channels > 0:
		units, work = units/p.channels, work*p.channels
		p.taps, p.plot = p.longest(0)*p.longest(1), p.channels
		p.off = grow(p.off, c.Threads()*p.taps)
	default:
		p.taps, p.plot = p.longest(0), 0
		p.off = grow(p.off, c.Threads()*p.taps)
		p.room = kernels.Scratch[T](c, c.Threads()*p.in[1])
	}
	p.cols, p.across = kernels.Scratch[int64](c, 2*p.out[1]), kernels.Scratch[T](c, p.out[1])
	for j := range p.across {
		w0, w1, _ := p.bounds(1, j)
		p.cols[2*j], p.cols[2*j+1] = int64(w0), int64(max(w1, w0))
		p.across[j] = p.share(1, j)
	}
	p.divisors = kernels.Scratch[T](c, c.Threads()*p.plot)
	c.Parallel(units, 1+tappedPerRange/work, p)
	p.x, p.y, p.room, p.cols, p.across, p.divisors = nil, nil, nil, nil, nil, nil
}

// share is what a window's length along a dimension counts for in its divisor: its
// elements of the padded input, or of the input.
func (p *avgPass[T]) share(d, at int) T {
	lo, hi, padded := p.bounds(d, at)
	switch {
	case p.divisor != 0:
		return T(1)
	case p.includePad && !p.adaptive:
		return T(max(padded, 1))
	}
	return T(max(hi-lo, 1))
}

// height is share along the height, or the divisor that was given.
func (p *avgPass[T]) height(r int) T {
	if p.divisor != 0 {
		return T(p.divisor)
	}
	return p.share(0, r)
}

// Range averages bands or rows [lo, hi).
func (p *avgPass[T]) Range(worker, lo, hi int) {
	divisors := p.divisors[worker*p.plot:][:p.plot]
	switch {
	case p.tapped:
		p.bandsOf(worker, lo, hi, divisors)
	case p.channels > 0:
		for i := lo; i < hi; i++ {
			p.lastRow(worker, i, divisors)
		}
	default:
		for i := lo; i < hi; i++ {
			p.row(worker, i)
		}
	}
}

// bandsOf averages bands [lo, hi).
func (p *avgPass[T]) bandsOf(worker, lo, hi int, divisors []T) {
	b, cols := &p.bands, p.out[1]
	have, filled := -1, 0 // the first of the rows that divisors are for, and how many
	for i := lo; i < hi; i++ {
		plane, row, n := b.at(i)
		points := b.in[0] * b.in[1]
		y := p.y[(plane*b.out[0]+row)*cols:][:n*cols]
		simd.SumTaps(y, b.load(worker, p.x[plane*points:][:points], row, n), b.off, n, cols, cols, b.step)
		if row %= p.out[0]; row != have || n > filled {
			p.divisorsOf(divisors, row, n)
			have, filled = row, n
		}
		divide(y, divisors)
	}
}

// divisorsOf are what the windows of n rows from row on are divided by.
func (p *avgPass[T]) divisorsOf(dst []T, row, n int) {
	for r := range n {
		height := p.height((row + r) % p.out[0])
		for j, w := range p.across {
			dst[r*p.out[1]+j] = height * w
		}
	}
}

func divide[T tensor.Compute](y, by []T) {
	if y, ok := any(y).([]float32); ok {
		simd.Div(y, y, any(by).([]float32))
		return
	}
	for i := range y {
		y[i] /= by[i]
	}
}

// row averages output row i, counted through the planes: it sums up the columns of
// the input, then those of each window.
func (p *avgPass[T]) row(worker, i int) {
	r, in := i%p.out[0], p.in[1]
	x, y, room := p.x[i/p.out[0]*p.in[0]*in:][:p.in[0]*in], p.y[i*p.out[1]:][:p.out[1]], p.room[worker*in:][:in]
	h0, h1, _ := p.bounds(0, r)
	switch height := p.height(r); {
	case h0 >= h1:
		clear(y)
	case len(y) == 1 && p.cols[0] == 0 && p.cols[1] == int64(in):
		y[0] = sumOf(x[h0*in:h1*in]) / (height * p.across[0])
	default:
		off := p.off[worker*p.taps:][:h1-h0]
		for h := range off {
			off[h] = (h0 + h) * in
		}
		simd.SumTaps(room, x, off, 1, in, in, in)
		for j, w := range p.across {
			y[j] = sumOf(room[p.cols[2*j]:p.cols[2*j+1]]) / (height * w)
		}
	}
}

func sumOf[T tensor.Compute](x []T) (s T) {
	if len(x) >= 16 {
		if x, ok := any(x).([]float32); ok {
			return T(simd.Sum(x))
		}
	}
	for _, v := range x {
		s += v
	}
	return s
}

// bounds is the range of input points of a window along a dimension, and its length
// within the padded input.
func (p *avgPass[T]) bounds(dim, at int) (lo, hi, padded int) {
	in := p.in[dim]
	if p.adaptive {
		out := p.out[dim]
		lo, hi = at*in/out, ((at+1)*in+out-1)/out
		return lo, hi, hi - lo
	}
	start := at*p.stride[dim] - p.pad[dim]
	end := min(start+p.kernel[dim], in+p.pad[dim])
	return max(start, 0), min(end, in), end - start
}
