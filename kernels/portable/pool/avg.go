package pool

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/simd"
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

	// Whole rows at a time, for float32.
	taps  []tap
	room  []float32 // a row for each worker
	width []float32 // what each window of a row is divided by, along the width
}

// prepare plans rows where the element type is float32.
func (p *avgPass[T]) prepare(c *kernels.Ctx) {
	p.taps = p.taps[:0]
	if _, ok := any(p).(*avgPass[float32]); !ok || p.adaptive || p.kernel[1] > mostTaps {
		return
	}
	p.taps = p.tapsAcross(p.taps)
	p.room = kernels.Scratch[float32](c, c.Threads()*p.out[1])
	p.width = kernels.Scratch[float32](c, p.out[1])
	for j := range p.width {
		lo, hi, padded := p.bounds(1, j)
		p.width[j] = float32(max(p.share(hi-lo, padded), 1))
	}
}

// share is what a window's length counts for in its divisor: n elements of the input,
// padded of the padded one.
func (p *avgPass[T]) share(n, padded int) int {
	switch {
	case p.divisor != 0:
		return 1
	case p.includePad && !p.adaptive:
		return padded
	}
	return n
}

func (p *avgPass[T]) run(c *kernels.Ctx, a kernels.Args, x, out *tensor.Tensor, outArg int) error {
	var dst [4]int
	if err := kernels.ResizeOut(a, outArg, p.sizes(&dst, x)); err != nil {
		return err
	}
	if out.Numel() == 0 {
		return nil
	}
	y := operand.Out[T](c, out)
	p.prepare(c)
	p.x, p.y = operand.In[T](c, x), y
	c.Parallel(p.planes, 1+windowsPerRange/(p.in[0]*p.in[1]+p.out[0]*p.out[1]), p)
	p.x, p.y, p.room, p.width = nil, nil, nil, nil
	operand.Store(c, out, y)
	return nil
}

// Range pools planes [lo, hi).
func (p *avgPass[T]) Range(worker, lo, hi int) {
	points, outPoints := p.in[0]*p.in[1], p.out[0]*p.out[1]
	for i := lo; i < hi; i++ {
		if len(p.taps) > 0 {
			whole, _ := any(p).(*avgPass[float32])
			for r := range p.out[0] {
				averageRow(whole, worker, i, r)
			}
			continue
		}
		x, y := p.x[i*points:][:points], p.y[i*outPoints:][:outPoints]
		for r := range p.out[0] {
			for j := range p.out[1] {
				y[r*p.out[1]+j] = p.mean(x, r, j)
			}
		}
	}
}

// mean is the average of one window of plane x.
func (p *avgPass[T]) mean(x []T, r, j int) T {
	h0, h1, rows := p.bounds(0, r)
	w0, w1, cols := p.bounds(1, j)
	if h0 >= h1 || w0 >= w1 {
		return 0
	}
	var sum T
	for h := h0; h < h1; h++ {
		for _, v := range x[h*p.in[1]+w0 : h*p.in[1]+w1] {
			sum += v
		}
	}
	if p.divisor != 0 {
		return sum / T(p.divisor)
	}
	return sum / T(p.share(h1-h0, rows)*p.share(w1-w0, cols))
}

// averageRow averages the windows of output row r of a plane together, tap by tap.
func averageRow(p *avgPass[float32], worker, plane, r int) {
	n := p.out[1]
	x := p.x[plane*p.in[0]*p.in[1]:][:p.in[0]*p.in[1]]
	y, room := p.y[(plane*p.out[0]+r)*n:][:n], p.room[worker*n:][:n]
	h0, h1, rows := p.bounds(0, r)
	clear(y)
	for h := h0; h < h1; h++ {
		for _, t := range p.taps {
			simd.Axpy(y[t.lo:t.hi], p.across(x[h*p.in[1]:][:p.in[1]], room, t), 1)
		}
	}
	height := float32(max(p.share(h1-h0, rows), 1))
	if p.divisor != 0 {
		height = float32(p.divisor)
	}
	for j, w := range p.width {
		y[j] /= height * w
	}
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
