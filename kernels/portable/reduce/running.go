package reduce

import (
	"math"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// running computes lines of results, each from the elements up to its own: products, logarithms of sums, extremes.
type running[C tensor.Compute] struct {
	layout
	src, dst []C
	at       []int64 // indices of extremes
	c        *kernels.Ctx
	line     func(r *running[C], from int)
}

// Range computes lines lo to hi. Their elements are inner apart.
func (r *running[C]) Range(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		r.line(r, i/r.inner*r.n*r.inner+i%r.inner)
	}
}

// run computes all lines of self along dimension d.
func (r *running[C]) run(c *kernels.Ctx, self, out *tensor.Tensor, d int, line func(r *running[C], from int)) {
	if self.Numel() == 0 { // its other sizes may be anything
		return
	}
	r.c, r.layout, r.line = c, layoutAlong(self, d), line
	r.src, r.dst = operand.In[C](c, self), operand.Out[C](c, out)
	c.Parallel(r.outer*r.inner, cpu.Grain(r.n, 3000), r)
	operand.Store(c, out, r.dst)
	r.src, r.dst = nil, nil
}

// cumprod is aten::cumprod, computed in float64 or int64.
func cumprod(c *kernels.Ctx, a kernels.Args) error {
	self, out := a.Tensor(0), a.Tensor(3)
	d, err := scanDim(a)
	if err != nil {
		return err
	}
	if out.DType.IsFloat() {
		kernels.Keep[running[float64]](c).run(c, self, out, d, products1[float64])
	} else {
		kernels.Keep[running[int64]](c).run(c, self, out, d, products1[int64])
	}
	return nil
}

func products1[C tensor.Compute](r *running[C], from int) {
	p, poll := C(1), r.c.Poller()
	for i := range r.n {
		poll.Done(1)
		p *= r.src[from+i*r.inner]
		r.dst[from+i*r.inner] = p
	}
}

// logCumSumExp is aten::logcumsumexp, computed in float64.
func logCumSumExp(c *kernels.Ctx, a kernels.Args) error {
	self, out := a.Tensor(0), a.Tensor(2)
	d, err := kernels.WrapDim(1, a.Int(1), self.Rank())
	if err != nil {
		return err
	}
	if !self.DType.IsFloat() {
		return kernels.Bad(0, self.DType.String(), "a float type")
	}
	if err := kernels.WantDType(2, out, self.DType); err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, 2, self.Sizes); err != nil {
		return err
	}
	kernels.Keep[running[float64]](c).run(c, self, out, d, logSums)
	return nil
}

func logSums(r *running[float64], from int) {
	sum, poll := math.Inf(-1), r.c.Poller()
	for i := range r.n {
		poll.Done(1)
		x := r.src[from+i*r.inner]
		switch {
		case math.IsInf(x, 0) && x == sum:
		case math.IsInf(sum, -1):
			sum = x
		default:
			sum = max(sum, x) + math.Log1p(math.Exp(-math.Abs(sum-x)))
		}
		r.dst[from+i*r.inner] = sum
	}
}

var (
	cumMax = cumExtreme(runExtreme(maxima1[float32]), runExtreme(maxima1[float64]), runExtreme(maxima1[int64]))
	cumMin = cumExtreme(runExtreme(minima1[float32]), runExtreme(minima1[float64]), runExtreme(minima1[int64]))
)

// cumExtreme runs aten::cummax and aten::cummin: (Tensor self, int dim, *, values, indices).
func cumExtreme(f32, f64, i64 extremeFunc) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		self, values, indices := a.Tensor(0), a.Tensor(2), a.Tensor(3)
		d, err := kernels.WrapDim(1, a.Int(1), self.Rank())
		if err != nil {
			return err
		}
		compute := operand.ByCompute(self.DType, f32, f64, i64)
		if compute == nil || self.DType == tensor.Uint64 {
			return kernels.Bad(0, self.DType.String(), "a real type that operators compute on")
		}
		if err := kernels.WantDType(2, values, self.DType); err != nil {
			return err
		}
		if err := kernels.WantDType(3, indices, tensor.Int64); err != nil {
			return err
		}
		for i := 2; i <= 3; i++ {
			if err := kernels.ResizeOut(a, i, self.Sizes); err != nil {
				return err
			}
		}
		compute(c, self, values, indices, d)
		return nil
	}
}

// extremeFunc computes the values and indices of running extremes of self along dimension d.
type extremeFunc func(c *kernels.Ctx, self, values, indices *tensor.Tensor, d int)

func runExtreme[C tensor.Compute](line func(r *running[C], from int)) extremeFunc {
	return func(c *kernels.Ctx, self, values, indices *tensor.Tensor, d int) {
		r := kernels.Keep[running[C]](c)
		r.at = operand.Out[int64](c, indices)
		r.run(c, self, values, d, line)
		operand.Store(c, indices, r.at)
		r.at = nil
	}
}

// Of equal extremes the index is the last one's. NaN is an extreme.

func maxima1[C tensor.Compute](r *running[C], from int) {
	extremes(r, from, func(x, best C) bool { return x >= best })
}

func minima1[C tensor.Compute](r *running[C], from int) {
	extremes(r, from, func(x, best C) bool { return x <= best })
}

func extremes[C tensor.Compute](r *running[C], from int, beats func(x, best C) bool) {
	best, at, poll := r.src[from], 0, r.c.Poller()
	for i := range r.n {
		poll.Done(1)
		p := from + i*r.inner
		if x := r.src[p]; x != x || best == best && beats(x, best) {
			best, at = x, i
		}
		r.dst[p], r.at[p] = best, int64(at)
	}
}
