package resample

import (
	"math"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
)

// bilinear interpolates between the four nearest points.
func bilinear[T real](c *kernels.Ctx, a kernels.Args) error {
	x, out := a.Tensor(0), a.Tensor(4)
	p := kernels.Keep[bilinearPass[T]](c)
	p.c = c
	if err := p.upsample(a, 3, 4); err != nil {
		return err
	}
	if out.Numel() == 0 {
		return nil
	}
	for d := range p.axes {
		p.axes[d].plan(c, &p.image, d, a.Bool(2))
	}
	y := operand.Out[T](c, out)
	p.x, p.y = operand.In[T](c, x), y
	p.scratch = kernels.Scratch[T](c, c.Threads()*2*p.out[1])
	c.Parallel(p.planes, 1+elementsPerRange/(p.out[0]*p.out[1]), p)
	p.x, p.y, p.scratch, p.axes = nil, nil, nil, [2]axis[T]{}
	operand.Store(c, out, y)
	return nil
}

type bilinearPass[T real] struct {
	image
	c       *kernels.Ctx
	axes    [2]axis[T]
	x, y    []T
	scratch []T // two resized rows for each worker
}

// axis holds for each output index the two input indices around it and the weight of
// the second.
type axis[T real] struct {
	first, second []int32
	weight        []T
}

func (s *axis[T]) plan(c *kernels.Ctx, m *image, d int, alignCorners bool) {
	n, in := m.out[d], m.in[d]
	s.first, s.second, s.weight = kernels.Scratch[int32](c, n), kernels.Scratch[int32](c, n), kernels.Scratch[T](c, n)
	step := scale[T](m, d, alignCorners)
	for i := range n {
		if n == in { // whatever the factor, as in PyTorch
			s.first[i], s.second[i], s.weight[i] = int32(i), int32(i), 0
			continue
		}
		at := step * T(i)
		if !alignCorners {
			at = max(step*(T(i)+0.5)-0.5, 0)
		}
		lo := int(min(at, T(in-1)))
		lo = min(lo, in-1)
		s.first[i], s.second[i] = int32(lo), int32(min(lo+1, in-1))
		s.weight[i] = min(max(at-T(lo), 0), 1)
	}
}

// Range resizes planes [lo, hi): each input row along the width, once, then two of these along the
// height.
func (p *bilinearPass[T]) Range(worker, lo, hi int) {
	n := p.out[1]
	poll := p.c.Poller()
	var wide [2]wideRow[T]
	for i := range wide {
		wide[i].row = p.scratch[(2*worker+i)*n:][:n]
	}
	for i := lo; i < hi; i++ {
		x, y := p.x[i*p.in[0]*p.in[1]:], p.y[i*p.out[0]*n:]
		wide[0].from, wide[1].from = -1, -1
		for r, h := range p.axes[0].weight {
			poll.Done(n)
			first, second := int(p.axes[0].first[r]), int(p.axes[0].second[r])
			if wide[1].from == first {
				wide[0], wide[1] = wide[1], wide[0]
			}
			top, bottom := p.widen(&wide[0], x, first), wide[0].row
			if second != first {
				bottom = p.widen(&wide[1], x, second)
			}
			blend(y[r*n:][:n], top, bottom, h)
		}
	}
}

// wideRow is an input row resized along the width.
type wideRow[T real] struct {
	from int // the row's number, or -1
	row  []T
}

// widen makes w that of an input row of plane x.
func (p *bilinearPass[T]) widen(w *wideRow[T], x []T, from int) []T {
	if w.from != from {
		cols := &p.axes[1]
		simd.Interpolate(w.row, x[from*p.in[1]:][:p.in[1]], cols.first, cols.second, cols.weight)
		w.from = from
	}
	return w.row
}

// blend is (1-h)·top + h·bottom.
func blend[T real](dst, top, bottom []T, h T) {
	if d, ok := any(dst).([]float32); ok {
		simd.Blend(d, any(top).([]float32), any(bottom).([]float32), float32(1-h), float32(h))
		return
	}
	for j := range dst {
		dst[j] = (1-h)*top[j] + h*bottom[j]
	}
}

// antialiased interpolates linearly with a triangle as wide as the scale, so that a
// smaller image takes every point into account.
func antialiased[T real](c *kernels.Ctx, a kernels.Args) error {
	x, out := a.Tensor(0), a.Tensor(5)
	p := kernels.Keep[triangles[T]](c)
	if err := p.input(x); err != nil {
		return err
	}
	if err := p.sizes(a.Ints(1)); err != nil {
		return err
	}
	p.factor = [2]float64{}
	for d := range 2 {
		if f := 3 + d; !a.IsNone(f) {
			if p.factor[d] = a.Float(f); !(p.factor[d] > 0) || math.IsInf(float64(T(1/p.factor[d])), 0) {
				return kernels.Badf(f, "a scale above 0 with a finite reciprocal", "%v", p.factor[d])
			}
		}
	}
	if err := p.resize(a, 5, x); err != nil {
		return err
	}
	if out.Numel() == 0 {
		return nil
	}
	p.c, p.step = c, [2]T{scale[T](&p.image, 0, a.Bool(2)), scale[T](&p.image, 1, a.Bool(2))}
	p.perWorker = p.in[0]*p.out[1] + max(p.in[0], p.in[1])
	p.scratch = kernels.Scratch[T](c, c.Threads()*p.perWorker)
	y := operand.Out[T](c, out)
	p.x, p.y = operand.In[T](c, x), y
	c.Parallel(p.planes, 1, p)
	p.x, p.y, p.scratch = nil, nil, nil
	operand.Store(c, out, y)
	return nil
}

type triangles[T real] struct {
	image
	c         *kernels.Ctx
	step      [2]T
	x, y      []T
	scratch   []T // for each worker: a plane resized along its width, and weights
	perWorker int
}

// Range resizes planes [lo, hi), first along the width, then along the height.
func (p *triangles[T]) Range(worker, lo, hi int) {
	scratch := p.scratch[worker*p.perWorker:][:p.perWorker]
	narrow, weights := scratch[:p.in[0]*p.out[1]], scratch[p.in[0]*p.out[1]:]
	poll := p.c.Poller()
	for i := lo; i < hi; i++ {
		x := p.x[i*p.in[0]*p.in[1]:]
		for j := range p.out[1] {
			from, w := p.weights(weights, 1, j)
			for r := range p.in[0] {
				poll.Done(len(w))
				narrow[r*p.out[1]+j] = weighted(w, x[r*p.in[1]+from:])
			}
		}
		y := p.y[i*p.out[0]*p.out[1]:]
		for r := range p.out[0] {
			row := y[r*p.out[1]:][:p.out[1]]
			clear(row)
			from, w := p.weights(weights, 0, r)
			for k, v := range w {
				poll.Done(len(row))
				for j, x := range narrow[(from+k)*p.out[1]:][:len(row)] {
					row[j] += v * x
				}
			}
		}
	}
}

func weighted[T real](w, x []T) (s T) {
	x = x[:len(w)]
	for i, v := range w {
		s += v * x[i]
	}
	return s
}

// weights is the first input index of output index i along dimension d, and the
// weights from there on, which add up to 1.
func (p *triangles[T]) weights(dst []T, d, i int) (int, []T) {
	step, in := p.step[d], T(p.in[d])
	support, inverse := T(1), T(1)
	if step >= 1 {
		support, inverse = step, 1/step
	}
	center := step * (T(i) + 0.5)
	from := int(min(max(center-support+0.5, 0), in))
	to := int(min(max(center+support+0.5, 0), in))
	dst = dst[:max(to-from, 0)]
	var total T
	for j := range dst {
		at := (T(j+from) - center + 0.5) * inverse
		dst[j] = max(1-max(at, -at), 0)
		total += dst[j]
	}
	if total != 0 {
		for j := range dst {
			dst[j] /= total
		}
	}
	return from, dst
}
