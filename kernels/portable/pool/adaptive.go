package pool

import (
	"fmt"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// adaptiveMaxOp is aten::adaptive_max_pool2d or 3d.
func adaptiveMaxOp(dims int) kernels.Op {
	run := operand.Typed(0, "a number type", adaptiveMax[float32](dims), adaptiveMax[float64](dims), adaptiveMax[int64](dims))
	return kernels.Op{
		Schema: fmt.Sprintf("aten::adaptive_max_pool%dd.out(Tensor self, int[%d] output_size, *, Tensor(a!) out, Tensor(b!) indices)", dims,
			dims),
		Func: operand.SameType(run, 0, 2), Flow: opclass.Inner0 + opclass.Flow(dims), DTypes: "integers, float16, bfloat16, float32, float64", Note: "NaN wins, as in PyTorch",
	}
}

// maxParts finds the maxima of windows that divide planes into output_size parts, and their places in the plane.
type maxParts[C tensor.Compute] struct {
	pooling
	x, y []C
	at   []int64
}

func adaptiveMax[C tensor.Compute](dims int) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		p := kernels.Keep[maxParts[C]](c)
		p.c = c
		self, out, indices := a.Tensor(0), a.Tensor(2), a.Tensor(3)
		if err := p.input(0, self, dims); err != nil {
			return err
		}
		if self.DType == tensor.Uint64 { // computed as int64, which orders them otherwise
			return kernels.Bad(0, self.DType.String(), "a type that int64 represents")
		}
		if err := p.outSizes(a, dims); err != nil {
			return err
		}
		if err := kernels.WantDType(3, indices, tensor.Int64); err != nil {
			return err
		}
		var dst [5]int
		sizes := p.sizes(&dst, self)
		for i := 2; i <= 3; i++ {
			if err := kernels.ResizeOut(a, i, sizes); err != nil {
				return err
			}
		}
		p.x, p.y, p.at = operand.In[C](c, self), operand.Out[C](c, out), operand.Out[int64](c, indices)
		if out.Numel() > 0 {
			c.Parallel(p.planes*p.Out[0]*p.Out[1], cpu.Grain(p.In[2]*(p.In[1]/p.Out[1]+1)*(p.In[0]/p.Out[0]+1), 3000), p)
		}
		operand.Store(c, out, p.y)
		operand.Store(c, indices, p.at)
		p.x, p.y, p.at = nil, nil, nil
		return nil
	}
}

// Range computes rows lo to hi of the output.
func (p *maxParts[C]) Range(_, lo, hi int) {
	volume, poll := window.Volume(p.In), p.c.Poller()
	for r := lo; r < hi; r++ {
		plane, d, h := p.point(r)
		x := p.x[plane*volume:][:volume]
		for w := range p.Out[2] {
			poll.Done((p.In[0]/p.Out[0] + 1) * (p.In[1]/p.Out[1] + 1) * (p.In[2]/p.Out[2] + 1))
			i := r*p.Out[2] + w
			p.y[i], p.at[i] = p.largest(x, d, h, w)
		}
	}
}

// largest returns the maximum of a window of a plane, the first of equal ones but the last NaN, and its place.
func (p *maxParts[C]) largest(x []C, d, h, w int) (best C, at int64) {
	d0, d1 := window.Part(p.In[0], p.Out[0], d)
	h0, h1 := window.Part(p.In[1], p.Out[1], h)
	w0, w1 := window.Part(p.In[2], p.Out[2], w)
	first := p.place(d0, h0, w0)
	best, at = x[first], int64(first)
	for i := d0; i < d1; i++ {
		for j := h0; j < h1; j++ {
			row := p.place(i, j, 0)
			for k, v := range x[row+w0 : row+w1] {
				if v > best || v != v {
					best, at = v, int64(row+w0+k)
				}
			}
		}
	}
	return best, at
}
