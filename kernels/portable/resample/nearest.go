package resample

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// nearest repeats or drops elements: out[y,x] = in[⌊y·sy⌋, ⌊x·sx⌋].
func nearest[T tensor.Compute](c *kernels.Ctx, a kernels.Args) error {
	x, out := a.Tensor(0), a.Tensor(3)
	p := kernels.Keep[nearestPass[T]](c)
	if err := p.upsample(a, 2, 3); err != nil {
		return err
	}
	if out.Numel() == 0 {
		return nil
	}
	p.rows, p.cols = p.sources(c, 0), p.sources(c, 1)
	y := operand.Out[T](c, out)
	p.c = c
	p.x, p.y = operand.In[T](c, x), y
	c.Parallel(p.planes, cpu.Grain(p.out[0]*p.out[1], elementCost), p)
	p.x, p.y, p.rows, p.cols = nil, nil, nil, nil
	operand.Store(c, out, y)
	return nil
}

type nearestPass[T tensor.Compute] struct {
	image
	c          *kernels.Ctx
	rows, cols []int64 // the input index of each output index
	x, y       []T
}

// sources returns the input index of each output index along dimension d. As in PyTorch, equal and doubled sizes are
// computed without the scale.
func (m *image) sources(c *kernels.Ctx, d int) []int64 {
	s := kernels.Scratch[int64](c, m.out[d])
	step := scale[float32](m, d, false)
	for i := range s {
		switch m.out[d] {
		case m.in[d]:
			s[i] = int64(i)
		case 2 * m.in[d]:
			s[i] = int64(i / 2)
		default:
			s[i] = int64(min(floor(float32(i)*step), float32(m.in[d]-1)))
		}
	}
	return s
}

// Range resizes planes [lo, hi).
func (p *nearestPass[T]) Range(_, lo, hi int) {
	poll := p.c.Poller()
	for i := lo; i < hi; i++ {
		x := p.x[i*p.in[0]*p.in[1]:]
		y := p.y[i*p.out[0]*p.out[1]:]
		for r, from := range p.rows {
			poll.Done(len(p.cols))
			src, dst := x[int(from)*p.in[1]:][:p.in[1]], y[r*p.out[1]:][:p.out[1]]
			switch {
			case r > 0 && from == p.rows[r-1]:
				copy(dst, y[(r-1)*p.out[1]:])
			case p.out[1] == 2*p.in[1]: // see sources
				simd.Zip2Rows(dst, src, src, 1, len(src), 0, 0)
			default:
				for j, at := range p.cols {
					dst[j] = src[at]
				}
			}
		}
	}
}
