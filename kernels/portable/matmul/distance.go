package matmul

import (
	"math"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// cdist is the p-norm of the difference of every row of x1 and every row of x2, for
// each matrix of their broadcast batches.
func cdist(c *kernels.Ctx, a kernels.Args) error {
	x, y := a.Tensor(0), a.Tensor(1)
	if !x.DType.IsFloat() {
		return kernels.Bad(0, x.DType.String(), floatTypes)
	}
	for i := range 2 {
		if t := a.Tensor(i); t.Rank() < 2 {
			return kernels.Bad(i, t.String(), "rank 2 or more")
		}
	}
	if x.Sizes[x.Rank()-1] != y.Sizes[y.Rank()-1] {
		return kernels.Bad(1, y.String(), "rows as long as those of "+x.String())
	}
	if !(a.Float(2) >= 0) {
		return kernels.Badf(2, "a norm of at least 0", "%v", a.Float(2))
	}
	var dst [tensor.MaxRank]int
	sizes, ok := batchSizes(&dst, x, y)
	if !ok {
		return kernels.Bad(1, y.String(), "batches that broadcast with "+x.String())
	}
	if err := kernels.ResizeOut(a, 4, sizes); err != nil {
		return err
	}
	if a.Tensor(4).Numel() == 0 {
		return nil
	}
	return operand.ByType(x.DType, cdistOf[float32], cdistOf[float64], nil)(c, a)
}

// batchSizes broadcasts the leading sizes of x and y and appends their row counts.
func batchSizes(dst *[tensor.MaxRank]int, x, y *tensor.Tensor) ([]int, bool) {
	sizes, ok := strided.Broadcast(append(dst[:0], x.Sizes[:x.Rank()-2]...), y.Sizes[:y.Rank()-2])
	return append(sizes, sizeAt(x, -2), sizeAt(y, -2)), ok
}

// sizeAt returns the size of dimension d counted from the end, 1 if there is none.
func sizeAt(t *tensor.Tensor, d int) int {
	if i := t.Rank() + d; i >= 0 {
		return t.Sizes[i]
	}
	return 1
}

func cdistOf[T float32 | float64](c *kernels.Ctx, a kernels.Args) error {
	x, y, out := a.Tensor(0), a.Tensor(1), a.Tensor(4)
	p := kernels.Keep[distances[T]](c)
	p.c, p.norm, p.length = c, a.Float(2), x.Sizes[x.Rank()-1]
	p.rows, p.cols = sizeAt(x, -2), sizeAt(y, -2)
	p.a, p.b, p.aSizes, p.bSizes, p.sizes = operand.In[T](c, x), operand.In[T](c, y), x, y, out.Sizes
	dst := operand.Out[T](c, out)
	p.out = dst
	c.Parallel(out.Numel()/p.cols, cpu.Grain(p.cols*(p.length+1), pairCost), p)
	p.a, p.b, p.out, p.aSizes, p.bSizes, p.sizes = nil, nil, nil, nil, nil, nil
	operand.Store(c, out, dst)
	return nil
}

// pairCost is the cost of a pair of elements in picoseconds.
const pairCost = 1000

// distances is the state of a cdist.
type distances[T float32 | float64] struct {
	c                  *kernels.Ctx
	norm               float64
	length, rows, cols int
	a, b, out          []T
	aSizes, bSizes     *tensor.Tensor
	sizes              []int
}

// Range computes rows [lo, hi) of the output, counted over all batches.
func (p *distances[T]) Range(_, lo, hi int) {
	poll := p.c.Poller()
	for t := lo; t < hi; t++ {
		batch, r := t/p.rows, t%p.rows
		a := p.a[(p.batchOf(p.aSizes, batch)*p.rows+r)*p.length:][:p.length]
		b := p.b[p.batchOf(p.bSizes, batch)*p.cols*p.length:]
		for j := range p.cols {
			poll.Done(p.length + 1)
			p.out[t*p.cols+j] = distance(p.c, a, b[j*p.length:][:p.length], p.norm)
		}
	}
}

// batchOf returns the index of the matrix of t for a matrix of the output.
func (p *distances[T]) batchOf(t *tensor.Tensor, batch int) int {
	at, stride := 0, 1
	for i := -3; i >= -len(p.sizes); i-- {
		size := p.sizes[len(p.sizes)+i]
		if n := sizeAt(t, i); n > 1 {
			at += batch % size * stride
			stride *= n
		}
		batch /= size
	}
	return at
}

// pdist is the distances of all pairs of rows, (0, 1), (0, 2), … (n-2, n-1).
func pdist(c *kernels.Ctx, a kernels.Args) error {
	x := a.Tensor(0)
	switch {
	case !x.DType.IsFloat():
		return kernels.Bad(0, x.DType.String(), floatTypes)
	case x.Rank() != 2:
		return kernels.Bad(0, x.String(), "a matrix")
	case !(a.Float(1) >= 0):
		return kernels.Badf(1, "a norm of at least 0", "%v", a.Float(1))
	}
	n := x.Sizes[0]
	if int64(n) > 1<<31 {
		return kernels.Bad(0, x.String(), "at most 2^31 rows")
	}
	if err := kernels.ResizeOut(a, 2, []int{n * max(n-1, 0) / 2}); err != nil {
		return err
	}
	if a.Tensor(2).Numel() == 0 {
		return nil
	}
	return operand.ByType(x.DType, pdistOf[float32], pdistOf[float64], nil)(c, a)
}

func pdistOf[T float32 | float64](c *kernels.Ctx, a kernels.Args) error {
	x, out := a.Tensor(0), a.Tensor(2)
	src, dst := operand.In[T](c, x), operand.Out[T](c, out)
	n, k, at := x.Sizes[0], x.Sizes[1], 0
	poll := c.Poller()
	for i := range n {
		for j := i + 1; j < n; j++ {
			poll.Done(k + 1)
			dst[at] = distance(c, src[i*k:][:k], src[j*k:][:k], a.Float(1))
			at++
		}
	}
	operand.Store(c, out, dst)
	return nil
}

// distance computes the p-norm of a-b; for 0 the number of differences, for infinity the largest.
func distance[T float32 | float64](c *kernels.Ctx, a, b []T, p float64) T {
	b = b[:len(a)]
	var s T
	switch {
	case p == 0:
		for i := range a {
			if a[i] != b[i] {
				s++
			}
		}
	case p == 1:
		for i := range a {
			s += abs(a[i] - b[i])
		}
	case p == 2:
		for i := range a {
			s += (a[i] - b[i]) * (a[i] - b[i])
		}
		s = T(math.Sqrt(float64(s)))
	case math.IsInf(p, 1):
		for i := range a {
			s = max(s, abs(a[i]-b[i]))
		}
	default:
		sum, poll := 0.0, c.Poller()
		for i := range a {
			poll.Done(1)
			sum += math.Pow(float64(abs(a[i]-b[i])), p)
		}
		s = T(math.Pow(sum, 1/p))
	}
	return s
}

func abs[T float32 | float64](x T) T { return T(math.Abs(float64(x))) }
