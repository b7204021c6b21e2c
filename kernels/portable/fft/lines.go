package fft

import (
	"math/cmplx"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// pointCost is the cost of a point in picoseconds.
const pointCost = 10_000

// line describes the transforms along one dimension.
type line struct {
	n               int // points per transform
	in, out         *tensor.Tensor
	inSize, outSize int // of the dimension
	inner           int // elements from one point to the next
	plan            *plan
	c               *kernels.Ctx
	scratch         []complex128 // per thread: the points, their transform, working memory
	perWorker       int
}

// lines transforms along dimension d.
func (t *transform) lines(c *kernels.Ctx, d int, l line) {
	t.line = l
	t.c = c
	t.inner = 1
	for _, s := range l.in.Sizes[d+1:] {
		t.inner *= s
	}
	t.plan = t.planFor(c, l.n)
	t.perWorker = 2*l.n + t.plan.work()
	t.scratch = kernels.Scratch[complex128](c, t.perWorker*c.Threads())
	c.Parallel(l.in.Numel()/l.inSize, cpu.Grain(l.n, pointCost), t)
}

// Range transforms lines [lo, hi).
func (t *transform) Range(worker, lo, hi int) {
	s := t.scratch[worker*t.perWorker:][:t.perWorker]
	x, y, work := s[:t.n], s[t.n:2*t.n], s[2*t.n:]
	for i := lo; i < hi; i++ {
		outer, inner := i/t.inner, i%t.inner
		t.read(x, outer*t.inSize*t.inner+inner)
		if t.inverse { // the conjugate of the transform of the conjugate
			for k, v := range x {
				x[k] = cmplx.Conj(v)
			}
		}
		t.plan.transform(t.c, y, x, work)
		t.write(y, outer*t.outSize*t.inner+inner)
	}
}

// read reads a line starting at element at; it completes a half sequence.
func (t *transform) read(x []complex128, at int) {
	switch t.in.DType {
	case tensor.Float32:
		for k, s := 0, tensor.Data[float32](t.in); k < t.inSize; k++ {
			x[k] = complex(float64(s[at+k*t.inner]), 0)
		}
	case tensor.Float64:
		for k, s := 0, tensor.Data[float64](t.in); k < t.inSize; k++ {
			x[k] = complex(s[at+k*t.inner], 0)
		}
	case tensor.Complex64:
		for k, s := 0, tensor.Data[complex64](t.in); k < t.inSize; k++ {
			x[k] = complex128(s[at+k*t.inner])
		}
	case tensor.Complex128:
		for k, s := 0, tensor.Data[complex128](t.in); k < t.inSize; k++ {
			x[k] = s[at+k*t.inner]
		}
	}
	if t.inSize == t.n {
		return
	}
	x[0] = complex(real(x[0]), 0) // real for a real sequence
	if t.n%2 == 0 {
		x[t.n/2] = complex(real(x[t.n/2]), 0)
	}
	for k := t.inSize; k < t.n; k++ {
		x[k] = cmplx.Conj(x[t.n-k])
	}
}

// write scales a line and stores the part that the out contains.
func (t *transform) write(y []complex128, at int) {
	scale := complex(t.scale, 0)
	sign := 1.0
	if t.inverse {
		sign = -1
	}
	for k := range t.outSize {
		v := y[k] * scale
		i := at + k*t.inner
		switch t.out.DType {
		case tensor.Float32:
			tensor.Data[float32](t.out)[i] = float32(real(v))
		case tensor.Float64:
			tensor.Data[float64](t.out)[i] = real(v)
		case tensor.Complex64:
			tensor.Data[complex64](t.out)[i] = complex64(complex(real(v), sign*imag(v)))
		case tensor.Complex128:
			tensor.Data[complex128](t.out)[i] = complex(real(v), sign*imag(v))
		}
	}
}
