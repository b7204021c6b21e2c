package pool

import (
	"math"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// Arguments of max_pool2d_with_indices.out and max_pool3d_with_indices.out.
const (
	maxCeil, maxOut, maxIndices = 5, 6, 7
	maxDilation                 = 4
)

// elementCost and tapCost are the costs of a window's element in picoseconds, in a loop over elements and tap by tap.
const elementCost, tapCost = 4_000, 400

// maxPool finds the largest element of each window and its index in the plane, (depth · height + row) · width +
// column. Of equal elements the first one wins; NaN wins. Integers of 8 and 16 bits are computed as float32, which is
// exact.
func maxPool(dims int) kernels.Func {
	f32, f64, i64 := maxPoolOf[float32](dims), maxPoolOf[float64](dims), maxPoolOf[int64](dims)
	return func(c *kernels.Ctx, a kernels.Args) error {
		x := a.Tensor(0)
		f := operand.ByType(x.DType, f32, f64, i64)
		switch {
		case f == nil:
			return kernels.Bad(0, x.DType.String(), "an integer or floating type")
		case a.Tensor(maxOut).DType != x.DType:
			return kernels.Bad(maxOut, a.Tensor(maxOut).DType.String(), "the input's "+x.DType.String())
		case a.Tensor(maxIndices).DType != tensor.Int64:
			return kernels.Bad(maxIndices, a.Tensor(maxIndices).DType.String(), "int64")
		}
		if x.DType.Size() <= 2 {
			f = f32
		}
		return f(c, a)
	}
}

func maxPoolOf[T tensor.Compute](dims int) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		x, out, indices := a.Tensor(0), a.Tensor(maxOut), a.Tensor(maxIndices)
		p := kernels.Keep[maxPass[T]](c)
		p.c = c
		if err := p.input(0, x, dims); err != nil {
			return err
		}
		if err := p.slide(a, 1, maxDilation, a.Bool(maxCeil)); err != nil {
			return err
		}
		var dst [5]int
		sizes := p.sizes(&dst, x)
		if err := kernels.ResizeOut(a, maxOut, sizes); err != nil {
			return err
		}
		if err := kernels.ResizeOut(a, maxIndices, sizes); err != nil {
			return err
		}
		if out.Numel() > 0 {
			p.lowest, p.only = lowest[T](x.DType), c.Unread(maxIndices)
			p.compute(c, x, out, indices)
		}
		return nil
	}
}

type maxPass[T tensor.Compute] struct {
	planar[T]
	// lowest is the result of a window that has no tap in the input, as dilation allows.
	lowest T
	only   bool // nothing reads the indices
	index  []int64

	byTiles  bool
	tiles    tiles[T]
	tag      []int32 // how far behind a window's first element each tap lies
	at       []int32 // places of a tile's results for each worker
	channels int     // not 0 where they lie last
	last     lastPool[T]
	taps     []int // offsets of a window's, for each worker, where channels lie last
}

// maxPoints is the largest plane whose indices fit int32.
const maxPoints = 1 << 30

func (p *maxPass[T]) compute(c *kernels.Ctx, x, out, indices *tensor.Tensor) {
	p.channels, p.empty = 0, p.lowest
	small := !p.adaptive && window.Volume(p.In) <= maxPoints && p.tapped()
	if small && channelsLast[T](x, out, indices) {
		p.lastRun(c, x, out, indices)
		return
	}
	y, index := operand.Out[T](c, out), operand.Out[int64](c, indices)
	p.x, p.y, p.index = operand.In[T](c, x), y, index
	if p.only && p.longest(0)*p.longest(1) <= maxArea {
		p.planar.run(c)
	} else {
		p.runPlaces(c, small)
	}
	p.x, p.y, p.index, p.at = nil, nil, nil, nil
	operand.Store(c, out, y)
	if !p.only {
		operand.Store(c, indices, index)
	}
}

// runPlaces finds maxima and their indices.
func (p *maxPass[T]) runPlaces(c *kernels.Ctx, small bool) {
	work := p.rowWork()
	small = small && p.Extent(0)-1 <= maxPoints/2/(p.In[1]*p.In[2]) && p.Extent(1)-1 <= maxPoints/2/p.In[2]
	p.byTiles = small && p.tiles.plan(c, &p.pooling, p.lowest)
	if !p.byTiles {
		c.Parallel(p.planes*p.Out[0]*p.Out[1], cpu.Grain(work, elementCost), p)
		return
	}
	p.tag = p.tag[:0]
	for d := range p.Kernel[0] {
		for h := range p.Kernel[1] {
			for k := range p.Kernel[2] {
				p.tag = append(p.tag, int32(p.place(d*p.Dilate[0], h*p.Dilate[1], k*p.Dilate[2])))
			}
		}
	}
	p.at = kernels.Scratch[int32](c, c.Threads()*p.tiles.rows*p.Out[2])
	c.Parallel(p.tiles.units(), cpu.Grain(p.tiles.rows*work, tapCost), p)
}

// Range pools tiles or rows [lo, hi).
func (p *maxPass[T]) Range(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		switch {
		case p.channels > 0:
			p.lastRow(worker, i)
		case p.byTiles:
			p.tile(worker, i)
		default:
			p.row(i)
		}
	}
}

// tile pools one tile.
func (p *maxPass[T]) tile(worker, i int) {
	b := &p.tiles
	plane, d, row, n := b.at(i)
	cols, points := p.Out[2], window.Volume(b.In)
	from := ((plane*b.Out[0]+d)*b.Out[1] + row) * cols
	y, index, at := p.y[from:][:n*cols], p.index[from:][:n*cols], p.at[worker*b.rows*cols:][:n*cols]
	x := b.load(worker, p.x[plane*points:][:points], d, row, n)
	row %= p.Out[1]
	simd.ExtremeTaps(y, at, x, b.off, p.tag, n, cols, cols, b.step, false)
	for r := 0; r < n*cols; r += cols {
		simd.Places(index[r:r+cols], at[r:], p.place(p.Start(0, d), p.Start(1, row), -p.Pad[2]), p.Stride[2])
		if !b.direct {
			p.correctPlaces(y[r:r+cols], index[r:], d, row)
		}
		if row++; row == p.Out[1] {
			row = 0
		}
	}
}

// correctPlaces corrects the indices of a row's windows that start in the padding and contain no larger element.
func (p *maxPass[T]) correctPlaces(y []T, index []int64, d, row int) {
	inside := p.Start(0, d) >= 0 && p.Start(1, row) >= 0
	if inside && p.Pad[2] == 0 {
		return
	}
	for j, v := range y {
		if inside && p.Start(2, j) >= 0 {
			return
		}
		if v == p.lowest {
			index[j] = int64(p.first(d, row, j))
		}
	}
}

// first returns the index of the first element of a window in the input.
func (p *maxPass[T]) first(d, row, j int) int {
	z, _ := p.span(0, d)
	y, _ := p.span(1, row)
	x, _ := p.span(2, j)
	return p.place(z, y, x)
}

// row pools the windows of output row i, counted over the planes, one by one.
func (p *maxPass[T]) row(i int) {
	plane, d, r := p.point(i)
	points := window.Volume(p.In)
	x, y, index := p.x[plane*points:][:points], p.y[i*p.Out[2]:][:p.Out[2]], p.index[i*p.Out[2]:]
	z, deep := p.span(0, d)
	top, tall := p.span(1, r)
	poll := p.c.Poller()
	for j := range y {
		left, wide := p.span(2, j)
		best, at := p.lowest, p.place(z, top, left)
		if deep > 0 && tall > 0 && wide > 0 {
			best = x[at]
		}
		for k := range deep {
			for h := range tall {
				poll.Done(1 + wide)
				from := p.place(z+k*p.Dilate[0], top+h*p.Dilate[1], left)
				for range wide {
					if v := x[from]; v > best || v != v {
						best, at = v, from
					}
					from += p.Dilate[2]
				}
			}
		}
		y[j], index[j] = best, int64(at)
	}
}

// lowest returns the smallest value of d.
func lowest[T tensor.Compute](d tensor.DType) T {
	if d.IsFloat() {
		inf := math.Inf(-1)
		return T(inf)
	}
	lo, _ := d.IntRange()
	return T(lo)
}
