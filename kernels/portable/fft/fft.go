// Package fft (no compatibility promise) contains the discrete Fourier transforms of the ATen
// operator list.
package fft

import (
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Ops returns the package's operators.
func Ops() []kernels.Op { return ops }

var ops = []kernels.Op{
	{
		Schema: "aten::_fft_r2c.out(Tensor self, int[] dim, int normalization, bool onesided, *, Tensor(a!) out)",
		Func:   realToComplex, Flow: opclass.Along, DTypes: "float32 → complex64, float64 → complex128", Family: kernels.Sum, Note: "computes in float64",
	},
	{
		Schema: "aten::_fft_c2r.out(Tensor self, int[] dim, int normalization, SymInt last_dim_size, *, Tensor(a!) out)",
		Func:   complexToReal, Flow: opclass.Along, DTypes: "complex64 → float32, complex128 → float64", Family: kernels.Sum, Note: "computes in float64",
	},
	{
		Schema: "aten::_fft_c2c.out(Tensor self, SymInt[] dim, int normalization, bool forward, *, Tensor(a!) out)",
		Func:   complexToComplex, Flow: opclass.Along, DTypes: "complex64, complex128", Family: kernels.Sum, Note: "computes in float64",
	},
}

// complexToComplex is aten::_fft_c2c: the transform, or its inverse, of a complex tensor along the dimensions in dim.
func complexToComplex(c *kernels.Ctx, a kernels.Args) error {
	t := kernels.Keep[transform](c)
	x, out := a.Tensor(0), a.Tensor(4)
	if x.DType != out.DType || x.DType != tensor.Complex64 && x.DType != tensor.Complex128 {
		return kernels.Badf(0, "complex64 or complex128, as the out", "%v for %v", x.DType, out.DType)
	}
	if err := t.prepare(a, x.Sizes, 4); err != nil {
		return err
	}
	t.sizes = append(t.sizes[:0], x.Sizes...)
	if err := t.resize(a, 4); err != nil || out.Numel() == 0 {
		return err
	}
	t.inverse, t.scale = !a.Bool(3), normal(x.Sizes, t.dims, a.Int(2))
	in := x
	for _, d := range t.dims {
		t.lines(c, d, line{n: x.Sizes[d], in: in, out: out, inSize: x.Sizes[d], outSize: x.Sizes[d]})
		t.scale, in = 1, out
	}
	return nil
}

// complexOf returns the complex type of a real one; ok is false for other types.
func complexOf(d tensor.DType) (c tensor.DType, ok bool) {
	switch d {
	case tensor.Float32:
		return tensor.Complex64, true
	case tensor.Float64:
		return tensor.Complex128, true
	}
	return d, false
}

// realToComplex is aten::_fft_r2c: the forward transform of a real tensor along the dimensions in
// dim. onesided keeps the first n/2+1 elements of the last one; the rest are their conjugates.
func realToComplex(c *kernels.Ctx, a kernels.Args) error {
	t := kernels.Keep[transform](c)
	x, out := a.Tensor(0), a.Tensor(4)
	if d, ok := complexOf(x.DType); !ok || d != out.DType {
		return kernels.Badf(0, "float32 for a complex64 out, or float64 for complex128", "%v for %v", x.DType, out.DType)
	}
	if err := t.prepare(a, x.Sizes, 4); err != nil {
		return err
	}
	n := x.Sizes[t.last()]
	t.sizes = append(t.sizes[:0], x.Sizes...)
	if a.Bool(3) {
		t.sizes[t.last()] = n/2 + 1
	}
	if err := t.resize(a, 4); err != nil || out.Numel() == 0 {
		return err
	}
	t.scale = normal(x.Sizes, t.dims, a.Int(2))
	t.lines(c, t.last(), line{n: n, in: x, out: out, inSize: n, outSize: t.sizes[t.last()]})
	t.scale = 1
	for _, d := range t.dims[:len(t.dims)-1] {
		t.lines(c, d, line{n: x.Sizes[d], in: out, out: out, inSize: x.Sizes[d], outSize: x.Sizes[d]})
	}
	return nil
}

// complexToReal is aten::_fft_c2r: the inverse transform of a tensor whose last transformed
// dimension contains the first last_dim_size/2+1 elements of a conjugate-symmetric sequence.
func complexToReal(c *kernels.Ctx, a kernels.Args) error {
	t := kernels.Keep[transform](c)
	x, out := a.Tensor(0), a.Tensor(4)
	if d, ok := complexOf(out.DType); !ok || d != x.DType {
		return kernels.Badf(0, "complex64 for a float32 out, or complex128 for float64", "%v for %v", x.DType, out.DType)
	}
	if err := t.prepare(a, x.Sizes, 4); err != nil {
		return err
	}
	n := int(a.Int(3))
	if n < 1 || n/2+1 != x.Sizes[t.last()] {
		return kernels.Badf(3, fmt.Sprintf("a size of which half and one is %d", x.Sizes[t.last()]), "%d", a.Int(3))
	}
	t.sizes = append(t.sizes[:0], x.Sizes...)
	t.sizes[t.last()] = n
	if err := t.resize(a, 4); err != nil || out.Numel() == 0 {
		return err
	}
	t.inverse, t.scale = true, normal(t.sizes, t.dims, a.Int(2))
	in := x
	for i, d := range t.dims[:len(t.dims)-1] {
		if i == 0 {
			in = t.copyOf(x)
		}
		t.lines(c, d, line{n: x.Sizes[d], in: in, out: in, inSize: x.Sizes[d], outSize: x.Sizes[d]})
		t.scale = 1
	}
	t.lines(c, t.last(), line{n: n, in: in, out: out, inSize: n/2 + 1, outSize: n})
	return nil
}

// normal returns the factor of a normalization argument: 1, 1/√n or 1/n for the n points of all
// dimensions.
func normal(sizes, dims []int, normalization int64) float64 {
	n := 1.0
	for _, d := range dims {
		n *= float64(sizes[d])
	}
	switch normalization {
	case 1:
		return 1 / math.Sqrt(n)
	case 2:
		return 1 / n
	}
	return 1
}

// transform is one call.
type transform struct {
	dims    []int // the last is that of the real side
	sizes   []int
	inverse bool
	scale   float64
	plans   []*plan
	middle  *tensor.Tensor // a copy of a complex input that is transformed along several dimensions
	line
}

func (t *transform) last() int { return t.dims[len(t.dims)-1] }

// prepare checks the arguments common to both directions, and resolves dim.
func (t *transform) prepare(a kernels.Args, sizes []int, out int) error {
	t.inverse = false
	t.dims = t.dims[:0]
	for _, v := range a.Ints(1) {
		d, err := kernels.WrapDim(1, v, len(sizes))
		if err != nil {
			return err
		}
		if len(sizes) == 0 || slices.Contains(t.dims, d) || sizes[d] == 0 {
			return kernels.Badf(1, "different dimensions that are not empty", "%v of %v", a.Ints(1), sizes)
		}
		t.dims = append(t.dims, d)
	}
	if len(t.dims) == 0 {
		return kernels.Bad(1, "no dimension", "at least one")
	}
	if m := a.Int(2); m < 0 || m > 2 {
		return kernels.Badf(2, "0, 1 or 2", "%d", m)
	}
	for _, i := range [...]int{0, out} {
		if x := a.Tensor(i); !x.IsContiguous() {
			return kernels.Badf(i, "a contiguous tensor", "dim order %v", x.DimOrder)
		}
	}
	return nil
}

func (t *transform) resize(a kernels.Args, out int) error {
	if _, ok := tensor.Product(t.sizes); !ok {
		return kernels.Badf(0, "an out whose size fits", "%v", t.sizes)
	}
	return kernels.ResizeOut(a, out, t.sizes)
}

// copyOf returns a copy of x in memory that is reused by later calls.
func (t *transform) copyOf(x *tensor.Tensor) *tensor.Tensor {
	if t.middle == nil || t.middle.DType != x.DType || !slices.Equal(t.middle.Sizes, x.Sizes) {
		t.middle = tensor.New(x.DType, x.Sizes...)
	}
	copy(t.middle.Data, x.Data)
	return t.middle
}

// planFor returns the cached or a new plan for a length.
func (t *transform) planFor(c *kernels.Ctx, n int) *plan {
	for _, p := range t.plans {
		if p.n == n {
			return p
		}
	}
	if len(t.plans) > 8 { // for a program whose sizes keep changing
		t.plans = t.plans[:0]
	}
	p := newPlan(c, n)
	t.plans = append(t.plans, p)
	return p
}
