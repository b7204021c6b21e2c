package norm

import (
	"math"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func softmax(c *kernels.Ctx, a kernels.Args) error    { return softmaxLike(c, a, false) }
func logSoftmax(c *kernels.Ctx, a kernels.Args) error { return softmaxLike(c, a, true) }

// softmaxLike is exp(x-m)/Σexp(x-m) along dim, or its logarithm, m being the largest
// element. half_to_float makes a float32 of a Float16.
func softmaxLike(c *kernels.Ctx, a kernels.Args, log bool) error {
	x, out := a.Tensor(0), a.Tensor(3)
	if err := floating(a, 0); err != nil {
		return err
	}
	want := x.DType
	if a.Bool(2) {
		if x.DType != tensor.Float16 {
			return kernels.Bad(2, "true for "+x.DType.String(), "half_to_float with float16 only")
		}
		want = tensor.Float32
	}
	if out.DType != want {
		return kernels.Bad(3, out.DType.String(), want.String())
	}
	dim, err := kernels.WrapDim(1, a.Int(1), x.Rank())
	if err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, 3, x.Sizes); err != nil {
		return err
	}
	if out.Numel() == 0 {
		return nil
	}
	if x.DType == tensor.Float64 {
		runSoftmax[float64](c, x, out, dim, log)
	} else {
		runSoftmax[float32](c, x, out, dim, log)
	}
	return nil
}

// softmaxPass is one execute: outer · size · inner elements, normalised over size.
// Inner elements are taken a block at a time, so that a block's rows stay in cache.
type softmaxPass[T real] struct {
	ops         *rowOps[T]
	x, y        []T
	size, inner int
	block       int
	blocks      int // per outer index
	log         bool
	scratch     []T // two rows of a block for each worker
}

func runSoftmax[T real](c *kernels.Ctx, x, out *tensor.Tensor, dim int, log bool) {
	p := kernels.Keep[softmaxPass[T]](c)
	p.ops, p.log, p.size, p.inner = rowsOf[T](), log, 1, 1
	inPlace := sameOrder(x, out) && x.DType == tensor.TypeOf[T]() && out.DType == x.DType
	switch {
	case x.Rank() == 0:
	case inPlace: // in memory order, whichever it is
		p.size, p.inner = x.Sizes[dim], x.Strides[dim]
	default:
		p.size = x.Sizes[dim]
		for _, n := range x.Sizes[dim+1:] {
			p.inner *= n
		}
	}
	outer := x.Numel() / (p.size * p.inner)
	const block = 64
	p.block = min(p.inner, block)
	p.blocks = (p.inner + p.block - 1) / p.block
	p.scratch = kernels.Scratch[T](c, c.Threads()*2*block)
	if inPlace {
		p.x, p.y = tensor.Data[T](x), tensor.Data[T](out)
	} else {
		p.x, p.y = operand.In[T](c, x), operand.Out[T](c, out)
	}
	c.Parallel(outer*p.blocks, cpu.Grain(p.size*p.block, elementCost), p)
	y := p.y
	p.x, p.y, p.scratch = nil, nil, nil
	if !inPlace {
		operand.Store(c, out, y)
	}
}

// Range normalises blocks [lo, hi).
func (p *softmaxPass[T]) Range(worker, lo, hi int) {
	if p.inner == 1 && !p.log {
		p.ops.softmax(p.y[lo*p.size:hi*p.size], p.x[lo*p.size:hi*p.size], p.size)
		return
	}
	if p.inner == 1 {
		for i := lo; i < hi; i++ {
			p.logRow(p.y[i*p.size:][:p.size], p.x[i*p.size:][:p.size])
		}
		return
	}
	s := p.scratch[worker*2*p.block:]
	for t := lo; t < hi; t++ {
		from := t % p.blocks * p.block
		n := min(p.block, p.inner-from)
		from += t / p.blocks * p.size * p.inner
		p.columns(p.y[from:], p.x[from:], s[:n], s[p.block:][:n])
	}
}

// logRow normalises one dense row.
func (p *softmaxPass[T]) logRow(y, x []T) {
	m := p.ops.max(x)
	s := p.ops.expSum(y, x, m)
	p.ops.scaleShift(y, x, 1, -m)
	p.ops.scaleShift(y, y, 1, -T(math.Log(float64(s))))
}

// columns normalises len(m) adjacent columns of p.size rows, p.inner apart.
func (p *softmaxPass[T]) columns(y, x, m, s []T) {
	copy(m, x)
	for r := 1; r < p.size; r++ {
		p.ops.maximum(m, m, x[r*p.inner:])
	}
	clear(s)
	for r := range p.size {
		d := y[r*p.inner:][:len(m)]
		p.ops.sub(d, x[r*p.inner:], m)
		p.ops.expSum(d, d, 0)
		p.ops.add(s, s, d)
	}
	for j, v := range s {
		if p.log {
			s[j] = T(math.Log(float64(v)))
		} else {
			s[j] = 1 / v
		}
	}
	for r := range p.size {
		d := y[r*p.inner:][:len(m)]
		if p.log {
			p.ops.sub(d, x[r*p.inner:], m)
			p.ops.sub(d, d, s)
		} else {
			p.ops.mul(d, d, s)
		}
	}
}
