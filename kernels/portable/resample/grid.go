package resample

import (
	"math"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Interpolation and padding modes of grid_sampler_2d.
const (
	modeBilinear, modeNearest, modeBicubic = 0, 1, 2
	padZeros, padBorder, padReflection     = 0, 1, 2
)

// gridSampler samples the input at the points of a grid [batch, height, width, (x, y)], whose coordinates from -1 to
// 1 span the image.
func gridSampler(c *kernels.Ctx, a kernels.Args) error {
	x, grid := a.Tensor(0), a.Tensor(1)
	f := operand.ByType(x.DType, gridSamplerOf[float32], gridSamplerOf[float64], nil)
	if f == nil {
		return kernels.Bad(0, x.DType.String(), "a floating type")
	}
	var m image
	if err := m.input(x); err != nil {
		return err
	}
	if grid.Rank() != 4 || grid.Sizes[0] != x.Sizes[0] || grid.Sizes[3] != 2 {
		return kernels.Badf(1, "[batch, height, width, 2]", "%v for %v", grid, x)
	}
	for i := 2; i <= 3; i++ {
		if a.Int(i) < 0 || a.Int(i) > 2 {
			return kernels.Badf(i, "a mode of 0 to 2", "%d", a.Int(i))
		}
	}
	sizes := [4]int{x.Sizes[0], x.Sizes[1], grid.Sizes[1], grid.Sizes[2]}
	if err := kernels.ResizeOut(a, 5, sizes[:]); err != nil {
		return err
	}
	if a.Tensor(5).Numel() == 0 {
		return nil
	}
	return f(c, a)
}

func gridSamplerOf[T real](c *kernels.Ctx, a kernels.Args) error {
	x, grid, out := a.Tensor(0), a.Tensor(1), a.Tensor(5)
	p := kernels.Keep[sampler[T]](c)
	p.c, p.channels, p.in, p.rows, p.cols = c, x.Sizes[1], [2]int(x.Sizes[2:]), grid.Sizes[1], grid.Sizes[2]
	p.mode, p.padding, p.align = a.Int(2), a.Int(3), a.Bool(4)
	p.steps = x.DType
	if p.mode == modeBilinear {
		p.steps = tensor.TypeOf[T]()
	}
	y := operand.Out[T](c, out)
	p.x, p.grid, p.y = operand.In[T](c, x), operand.In[T](c, grid), y
	c.Parallel(x.Sizes[0]*p.rows, cpu.Grain(p.cols*p.channels*4, elementCost), p)
	p.x, p.grid, p.y = nil, nil, nil
	operand.Store(c, out, y)
	return nil
}

type sampler[T real] struct {
	c                    *kernels.Ctx
	channels, rows, cols int
	in                   [2]int // height, width
	mode, padding        int64
	align                bool
	x, grid, y           []T
	steps                tensor.DType // what each step on the way to the points to read is rounded to
}

// stencil contains the elements of a plane that one output point reads, and their weights.
type stencil[T real] struct {
	n      int
	at     [16]int
	weight [16]T
}

func (s *stencil[T]) add(at int, weight T) {
	s.at[s.n], s.weight[s.n] = at, weight
	s.n++
}

// Range samples rows [lo, hi) of the grid, counted over the batch.
func (p *sampler[T]) Range(_, lo, hi int) {
	points, outPoints := p.in[0]*p.in[1], p.rows*p.cols
	var s stencil[T]
	poll := p.c.Poller()
	for t := lo; t < hi; t++ {
		n, r := t/p.rows, t%p.rows
		for j := range p.cols {
			poll.Done(p.channels * len(s.at))
			g := p.grid[(t*p.cols+j)*2:]
			p.stencil(&s, p.unnormalize(g[0], 1), p.unnormalize(g[1], 0))
			for ch := range p.channels {
				plane := p.x[(n*p.channels+ch)*points:][:points]
				var v T
				for k, at := range s.at[:s.n] {
					v += plane[at] * s.weight[k]
				}
				p.y[(n*p.channels+ch)*outPoints+r*p.cols+j] = v
			}
		}
	}
}

// unnormalize converts a coordinate of -1 to 1 to one of dimension d.
func (p *sampler[T]) unnormalize(v T, d int) T {
	size, r := T(p.in[d]), p.round
	if p.align {
		return r(r(r(v+1)/2) * (size - 1))
	}
	return r(r(r(r(v+1)*size)-1) / 2)
}

// round rounds a step in the computation of coordinates and cubic weights to the element type, as PyTorch does except
// in bilinear mode: with the few bits of a half float that determines which elements are read.
func (p *sampler[T]) round(v T) T {
	switch p.steps {
	case tensor.Float16:
		return T(tensor.HalfToFloat(tensor.FloatToHalf(float32(v))))
	case tensor.BFloat16:
		return T(tensor.BFloatToFloat(tensor.FloatToBFloat(float32(v))))
	}
	return v
}

func (p *sampler[T]) stencil(s *stencil[T], x, y T) {
	s.n = 0
	switch p.mode {
	case modeNearest:
		p.tap(s, even(p.pad(x, 1)), even(p.pad(y, 0)), 1)
	case modeBilinear:
		x, y = p.pad(x, 1), p.pad(y, 0)
		x0, y0 := floor(x), floor(y)
		wx, wy := x-x0, y-y0
		p.tap(s, x0, y0, (1-wx)*(1-wy))
		p.tap(s, x0+1, y0, wx*(1-wy))
		p.tap(s, x0, y0+1, (1-wx)*wy)
		p.tap(s, x0+1, y0+1, wx*wy)
	default:
		x0, y0 := floor(x), floor(y)
		wx, wy := p.cubic(x-x0), p.cubic(y-y0)
		for i := range 4 {
			for j := range 4 {
				p.tap(s, p.pad(x0+T(j-1), 1), p.pad(y0+T(i-1), 0), wx[j]*wy[i])
			}
		}
	}
}

// tap adds the element at integral coordinates, unless they are outside or NaN.
func (p *sampler[T]) tap(s *stencil[T], x, y, weight T) {
	if x >= 0 && x < T(p.in[1]) && y >= 0 && y < T(p.in[0]) {
		s.add(int(y)*p.in[1]+int(x), weight)
	}
}

// even rounds to nearest, ties to even.
func even[T real](x T) T { return T(math.RoundToEven(float64(x))) }

// pad moves a coordinate of dimension d into the image, unless elements outside are zero.
func (p *sampler[T]) pad(v T, d int) T {
	size := T(p.in[d])
	switch {
	case p.padding == padZeros:
		return v
	case p.padding == padReflection && p.align:
		v = reflect(v, 0, 2*(size-1))
	case p.padding == padReflection:
		v = reflect(v, -1, 2*size-1)
	}
	if !(v > 0) { // NaN too
		return 0
	}
	return min(v, size-1)
}

// reflect reflects v into [low/2, high/2].
func reflect[T real](v, low, high T) T {
	if low == high {
		return 0
	}
	start, span := low/2, (high-low)/2
	v -= start
	if v < 0 {
		v = -v
	}
	extra := T(math.Mod(float64(v), float64(span)))
	if flips := math.Floor(float64(v / span)); math.Mod(flips, 2) == 0 {
		return extra + start
	}
	return span - extra + start
}

// cubic returns the weights of the four points around t in [0, 1).
func (p *sampler[T]) cubic(t T) [4]T {
	return [4]T{p.far(p.round(t + 1)), p.near(t), p.near(p.round(1 - t)), p.far(p.round(2 - t))}
}

// cubicA is the parameter of the cubic convolution (Keys).
const cubicA = -0.75

// near is the cubic convolution kernel up to 1.
func (p *sampler[T]) near(x T) T {
	v := p.round(p.round((cubicA+2)*x) - (cubicA + 3))
	return p.round(p.round(p.round(v*x)*x) + 1)
}

// far is the cubic convolution kernel from 1 to 2.
func (p *sampler[T]) far(x T) T {
	v := p.round(p.round(cubicA*x) - 5*cubicA)
	v = p.round(p.round(v*x) + 8*cubicA)
	return p.round(p.round(v*x) - 4*cubicA)
}
