package pool

import (
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Arguments of max_pool2d_with_indices.out.
const (
	maxCeil, maxOut, maxIndices = 5, 6, 7
	maxDilation                 = 4
)

// windowsPerRange is the number of window elements of about 20 µs of work.
const windowsPerRange = 20_000

// maxPool finds the largest element of each window and where it lies in its plane,
// height · width of the plane + width. The first of equal ones wins; NaN wins.
func maxPool(c *kernels.Ctx, a kernels.Args) error {
	x := a.Tensor(0)
	f := operand.ByType(x.DType, maxPoolOf[float32], maxPoolOf[float64], maxPoolOf[int64])
	switch {
	case f == nil:
		return kernels.Bad(0, x.DType.String(), "an integer or floating type")
	case a.Tensor(maxOut).DType != x.DType:
		return kernels.Bad(maxOut, a.Tensor(maxOut).DType.String(), "the input's "+x.DType.String())
	case a.Tensor(maxIndices).DType != tensor.Int64:
		return kernels.Bad(maxIndices, a.Tensor(maxIndices).DType.String(), "int64")
	}
	return f(c, a)
}

func maxPoolOf[T tensor.Compute](c *kernels.Ctx, a kernels.Args) error {
	x, out, indices := a.Tensor(0), a.Tensor(maxOut), a.Tensor(maxIndices)
	p := kernels.Keep[maxPass[T]](c)
	if err := p.input(0, x); err != nil {
		return err
	}
	if err := p.slide(a, 1, maxDilation, a.Bool(maxCeil)); err != nil {
		return err
	}
	var dst [4]int
	sizes := p.sizes(&dst, x)
	if err := kernels.ResizeOut(a, maxOut, sizes); err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, maxIndices, sizes); err != nil {
		return err
	}
	p.lowest = lowest[T](x.DType)
	p.prepare(c)
	y, index := operand.Out[T](c, out), operand.Out[int64](c, indices)
	p.x, p.y, p.index = operand.In[T](c, x), y, index
	work := p.out[0] * p.out[1] * min(p.kernel[0], p.in[0]) * min(p.kernel[1], p.in[1])
	c.Parallel(p.planes, 1+windowsPerRange/work, p)
	p.x, p.y, p.index, p.room, p.at = nil, nil, nil, nil, nil
	operand.Store(c, out, y)
	operand.Store(c, indices, index)
	return nil
}

type maxPass[T tensor.Compute] struct {
	window
	x, y  []T
	index []int64
	// lowest stands for a window whose taps all miss the input, which dilation allows.
	lowest T

	// Whole rows at a time, for float32.
	taps []tap
	room []float32 // a row for each worker
	at   []int32   // a row of indices for each worker, then the first column of each window
}

// mostTaps is the widest kernel that is pooled a whole row at a time, and mostPoints
// the largest plane: its indices fit an int32.
const mostTaps, mostPoints = 64, 1 << 30

// prepare plans rows where the element type is float32.
func (p *maxPass[T]) prepare(c *kernels.Ctx) {
	p.taps = p.taps[:0]
	if _, ok := any(p).(*maxPass[float32]); !ok || p.kernel[1] > mostTaps || p.in[0]*p.in[1] > mostPoints {
		return
	}
	p.taps = p.tapsAcross(p.taps)
	p.room = kernels.Scratch[float32](c, c.Threads()*p.out[1])
	p.at = kernels.Scratch[int32](c, (c.Threads()+1)*p.out[1])
	first := p.at[c.Threads()*p.out[1]:]
	for j := range first {
		start, w0, _ := p.span(1, j)
		first[j] = int32(start + w0*p.dilate[1])
	}
}

// Range pools planes [lo, hi).
func (p *maxPass[T]) Range(worker, lo, hi int) {
	whole, _ := any(p).(*maxPass[float32])
	points, outPoints := p.in[0]*p.in[1], p.out[0]*p.out[1]
	for i := lo; i < hi; i++ {
		x, y, index := p.x[i*points:][:points], p.y[i*outPoints:][:outPoints], p.index[i*outPoints:][:outPoints]
		for r := range p.out[0] {
			if len(p.taps) > 0 {
				wholeRow(whole, worker, i, r)
			} else {
				p.row(x, y[r*p.out[1]:][:p.out[1]], index[r*p.out[1]:], r)
			}
		}
	}
}

// row pools the windows of output row r.
func (p *maxPass[T]) row(x, y []T, index []int64, r int) {
	start0, h0, h1 := p.span(0, r)
	for j := range y {
		start1, w0, w1 := p.span(1, j)
		at := (start0+h0*p.dilate[0])*p.in[1] + start1 + w0*p.dilate[1]
		best := p.lowest
		if h0 < h1 && w0 < w1 {
			best = x[at]
		}
		for h := h0; h < h1; h++ {
			i := (start0+h*p.dilate[0])*p.in[1] + start1 + w0*p.dilate[1]
			for range w1 - w0 {
				if v := x[i]; v > best || v != v {
					best, at = v, i
				}
				i += p.dilate[1]
			}
		}
		y[j], index[j] = best, int64(at)
	}
}

// wholeRow pools the windows of output row r of a plane together, tap by tap.
func wholeRow(p *maxPass[float32], worker, plane, r int) {
	n := p.out[1]
	x := p.x[plane*p.in[0]*p.in[1]:][:p.in[0]*p.in[1]]
	best, index := p.y[(plane*p.out[0]+r)*n:][:n], p.index[(plane*p.out[0]+r)*n:][:n]
	room, at := p.room[worker*n:][:n], p.at[worker*n:][:n]
	start, h0, h1 := p.span(0, r)
	top := int32((start + h0*p.dilate[0]) * p.in[1])
	for j, first := range p.at[len(p.at)-n:] {
		best[j], at[j] = p.lowest, top+first
	}
	for h := h0; h < h1; h++ {
		row := (start + h*p.dilate[0]) * p.in[1]
		for _, t := range p.taps {
			simd.MaxTap(best[t.lo:t.hi], at[t.lo:t.hi], p.across(x[row:][:p.in[1]], room, t), int32(row+t.from), int32(p.stride[1]))
		}
	}
	for j, v := range at {
		index[j] = int64(v)
	}
}

// lowest is the least value of d.
func lowest[T tensor.Compute](d tensor.DType) T {
	switch inf := math.Inf(-1); {
	case d.IsFloat():
		return T(inf)
	case d == tensor.Uint8 || d >= tensor.Uint16:
		return 0
	}
	low := int64(-1) << (8*d.Size() - 1)
	return T(low)
}

// Arguments of max_pool2d_with_indices_backward.grad_input.
const (
	backCeil, backIndices, backOut = 6, 7, 8
	backDilation                   = 5
)

// maxPoolBackward adds each gradient to the element that its window took.
func maxPoolBackward(c *kernels.Ctx, a kernels.Args) error {
	grad, x := a.Tensor(0), a.Tensor(1)
	if !x.DType.IsFloat() {
		return kernels.Bad(1, x.DType.String(), "a floating type")
	}
	for _, i := range []int{0, backOut} {
		if t := a.Tensor(i); t.DType != x.DType {
			return kernels.Bad(i, t.DType.String(), "the input's "+x.DType.String())
		}
	}
	indices := a.Tensor(backIndices)
	if indices.DType != tensor.Int64 {
		return kernels.Bad(backIndices, indices.DType.String(), "int64")
	}
	var w window
	if err := w.input(1, x); err != nil {
		return err
	}
	if err := w.slide(a, 2, backDilation, a.Bool(backCeil)); err != nil {
		return err
	}
	var dst [4]int
	sizes := w.sizes(&dst, x)
	for _, i := range []int{0, backIndices} {
		if t := a.Tensor(i); !slices.Equal(t.Sizes, sizes) {
			return kernels.Badf(i, "the pooling's output sizes", "%v", t)
		}
	}
	if err := kernels.ResizeOut(a, backOut, x.Sizes); err != nil {
		return err
	}
	if grad.DType == tensor.Float64 {
		return scatter[float64](c, a, &w)
	}
	return scatter[float32](c, a, &w)
}

func scatter[T tensor.Compute](c *kernels.Ctx, a kernels.Args, w *window) error {
	out := a.Tensor(backOut)
	grad, index := operand.In[T](c, a.Tensor(0)), operand.In[int64](c, a.Tensor(backIndices))
	dst := operand.Out[T](c, out)
	clear(dst)
	points, outPoints := w.in[0]*w.in[1], w.out[0]*w.out[1]
	for i, at := range index {
		if at < 0 || at >= int64(points) {
			return kernels.Badf(backIndices, "indices into a plane of the input", "%d for %d elements", at, points)
		}
		dst[i/outPoints*points+int(at)] += grad[i]
	}
	operand.Store(c, out, dst)
	return nil
}
