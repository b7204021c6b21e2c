package pool

import (
	"math"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Arguments of max_pool2d_with_indices.out.
const (
	maxCeil, maxOut, maxIndices = 5, 6, 7
	maxDilation                 = 4
)

// windowsPerRange and tappedPerRange are the numbers of window elements of about 20 µs
// of work, one by one and tap by tap.
const windowsPerRange, tappedPerRange = 5_000, 50_000

// maxPool finds the largest element of each window and where it lies in its plane,
// height · width of the plane + width. The first of equal ones wins; NaN wins. A
// float32 holds integers of 8 and 16 bits exactly.
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
	if x.DType.Size() <= 2 {
		f = maxPoolOf[float32]
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
	if out.Numel() == 0 {
		return nil
	}
	if channelsLast[T](x, out, indices) && p.kernel[0]*p.kernel[1] <= mostTaps && p.in[0]*p.in[1] <= mostPoints {
		p.lastRun(c, x, out, indices)
		return nil
	}
	y, index := operand.Out[T](c, out), operand.Out[int64](c, indices)
	p.x, p.y, p.index = operand.In[T](c, x), y, index
	p.run(c)
	p.x, p.y, p.index, p.at = nil, nil, nil, nil
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

	tapped   bool // by bands
	bands    bands[T]
	tag      []int32 // how far behind a window's first element each tap lies
	at       []int32 // places of a band's results for each worker
	channels int     // not 0 where they lie last
	off      []int   // of a window's taps then, for each worker
}

// mostPoints is the largest plane whose places fit an int32.
const mostPoints = 1 << 30

func (p *maxPass[T]) run(c *kernels.Ctx) {
	p.channels = 0
	work := p.out[0] * p.out[1] * min(p.kernel[0], p.in[0]) * min(p.kernel[1], p.in[1])
	reach := (p.dilate[0]*(p.kernel[0]-1) + 1) * p.in[1]
	p.tapped = reach <= mostPoints && p.in[0]*p.in[1] <= mostPoints && p.bands.plan(c, &p.window, p.lowest)
	if !p.tapped {
		c.Parallel(p.planes, 1+windowsPerRange/work, p)
		return
	}
	p.tag = p.tag[:0]
	for h := range p.kernel[0] {
		for k := range p.kernel[1] {
			p.tag = append(p.tag, int32(h*p.dilate[0]*p.in[1]+k*p.dilate[1]))
		}
	}
	p.at = kernels.Scratch[int32](c, c.Threads()*p.bands.rows*p.out[1])
	c.Parallel(p.bands.planes*p.bands.count, 1+tappedPerRange/(p.bands.rows*work/p.out[0]), p)
}

// Range pools bands, planes or, where channels lie last, rows [lo, hi).
func (p *maxPass[T]) Range(worker, lo, hi int) {
	points, outPoints := p.in[0]*p.in[1], p.out[0]*p.out[1]
	for i := lo; i < hi; i++ {
		switch {
		case p.channels > 0:
			p.lastRow(worker, i)
		case p.tapped:
			p.band(worker, i)
		default:
			for r := range p.out[0] {
				at := i*outPoints + r*p.out[1]
				p.row(p.x[i*points:][:points], p.y[at:][:p.out[1]], p.index[at:], r)
			}
		}
	}
}

// band pools one band.
func (p *maxPass[T]) band(worker, i int) {
	b := &p.bands
	plane, row, n := b.at(i)
	cols, points := p.out[1], b.in[0]*b.in[1]
	from := (plane*b.out[0] + row) * cols
	y, index, at := p.y[from:][:n*cols], p.index[from:][:n*cols], p.at[worker*b.rows*cols:][:n*cols]
	simd.ExtremeTaps(y, at, b.load(worker, p.x[plane*points:][:points], row, n), b.off, p.tag, n, cols, cols, b.step, false)
	row %= p.out[0]
	for r := 0; r < n*cols; r += cols {
		start := (row*p.stride[0]-p.pad[0])*p.in[1] - p.pad[1]
		spread(index[r:r+cols], at[r:], start, p.stride[1])
		if !b.direct {
			p.mend(y[r:r+cols], index[r:], row)
		}
		if row++; row == p.out[0] {
			row = 0
		}
	}
}

// spread makes places of the tags that windows step apart took.
func spread(index []int64, at []int32, start, step int) {
	at = at[:len(index)]
	for j := range index {
		index[j] = int64(int(at[j]) + start)
		start += step
	}
}

// mend corrects the places of row r's windows that start in the padding and hold
// nothing larger than it.
func (p *maxPass[T]) mend(y []T, index []int64, r int) {
	if r*p.stride[0] >= p.pad[0] && p.pad[1] == 0 {
		return
	}
	start0, h0, _ := p.span(0, r)
	for j, v := range y {
		start1, w0, _ := p.span(1, j)
		if start0 >= 0 && start1 >= 0 {
			return
		}
		if v == p.lowest {
			index[j] = int64((start0+h0*p.dilate[0])*p.in[1] + start1 + w0*p.dilate[1])
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
