package quantized

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// float is the type of the computation: that of the scales.
type float interface{ float32 | float64 }

// byType returns a function that computes in float64 if tensor argument i is float64, else in float32.
func byType(i int, f32, f64 kernels.Func) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		if a.Tensor(i).DType == tensor.Float64 {
			return f64(c, a)
		}
		return f32(c, a)
	}
}

// blockSize elements are converted at a time, so that they fit the first-level cache.
const blockSize = 512

// elementCost is the cost of an element in picoseconds.
const elementCost = 1200

// params are scales and zero points with the elements that they belong to: element i in memory uses
// index (i / run) mod len(scale).
type params[F float] struct {
	scale, zero []F
	run         int
	own         [2]F // see persist
}

// persist moves the parameters of a whole tensor from scratch to persistent memory. p must not move
// afterwards.
func (p *params[F]) persist() {
	p.own = [2]F{p.scale[0], p.zero[0]}
	p.scale, p.zero = p.own[:1], p.own[1:]
}

// uniform returns the index that elements [at, at+n) share, if there is one.
func (p *params[F]) uniform(at, n int) (index int, ok bool) {
	first, last := at/p.run, (at+n-1)/p.run
	return first % len(p.scale), first == last || len(p.scale) == 1
}

// expand writes the parameters of elements at, at+1, … into scale and zero, which
// have the same length.
func (p *params[F]) expand(scale, zero []F, at int) {
	if p.run == 1 {
		repeat(scale, p.scale, at%len(p.scale))
		repeat(zero, p.zero, at%len(p.scale))
		return
	}
	index, left := at/p.run%len(p.scale), p.run-at%p.run
	for i := 0; i < len(scale); {
		n := min(left, len(scale)-i)
		s, z := p.scale[index], p.zero[index]
		for j := range n {
			scale[i+j], zero[i+j] = s, z
		}
		i += n
		if index++; index == len(p.scale) {
			index = 0
		}
		left = p.run
	}
}

// repeat fills dst with repetitions of src, starting at src[at].
func repeat[F float](dst, src []F, at int) {
	for n := 0; n < len(dst); at = 0 {
		n += copy(dst[n:], src[at:])
	}
}

// codeRange returns the range of a quantized type; ok is false for other types.
func codeRange(d tensor.DType) (lo, hi int64, ok bool) {
	s := stored(d)
	lo, hi = s.IntRange()
	return lo, hi, s.IsInt() && s.Size() <= 4 && s != tensor.Uint32
}

// stored returns the type used to load and store quantized values.
func stored(d tensor.DType) tensor.DType {
	if d == tensor.Bits16 {
		return tensor.Uint16
	}
	return d
}

// checkQuantized checks that tensor argument i has the type in argument dtype, and that the bounds in
// the two arguments before dtype fit it.
func checkQuantized(a kernels.Args, i, dtype int) error {
	t := a.Tensor(i)
	lo, hi, ok := codeRange(t.DType)
	if !ok {
		return kernels.Bad(i, t.DType.String(), codeTypes)
	}
	if a.Int(dtype) != int64(t.DType) {
		return kernels.Badf(dtype, "the tensor's type, "+t.DType.String(), "%d", a.Int(dtype))
	}
	if v := a.Int(dtype - 2); v < lo {
		return kernels.Badf(dtype-2, fmt.Sprintf("at least %d", lo), "%d", v)
	}
	if v := a.Int(dtype - 1); v > hi {
		return kernels.Badf(dtype-1, fmt.Sprintf("at most %d", hi), "%d", v)
	}
	return nil
}

// resizeLike resizes out to the sizes of input and checks that both have the same memory order.
func resizeLike(a kernels.Args, input, out int) error {
	if err := kernels.ResizeOut(a, out, a.Tensor(input).Sizes); err != nil {
		return err
	}
	return sameOrder(a, input, out)
}

// sameOrder checks that tensors i and j of the same sizes have the same layout.
func sameOrder(a kernels.Args, i, j int) error {
	x, y := a.Tensor(i), a.Tensor(j)
	for d, size := range x.Sizes {
		if size > 1 && x.Strides[d] != y.Strides[d] {
			return kernels.Badf(j, fmt.Sprintf("the dim order of argument %d, %v", i, x.DimOrder), "%v", y.DimOrder)
		}
	}
	return nil
}

// wantContiguous returns an error for the first of the tensor arguments that is not contiguous. It skips None.
func wantContiguous(a kernels.Args, args ...int) error {
	for _, i := range args {
		if t := a.OptTensor(i); t != nil && !t.IsContiguous() {
			return kernels.Badf(i, "a contiguous tensor", "dim order %v", t.DimOrder)
		}
	}
	return nil
}

// vector loads tensor argument i, which must have n elements of a numeric type.
func vector[F float](c *kernels.Ctx, a kernels.Args, i, n int) ([]F, error) {
	t := a.Tensor(i)
	load := tensor.Loader[F](t.DType)
	if load == nil {
		return nil, kernels.Bad(i, t.DType.String(), "numbers")
	}
	if t.Numel() != n {
		return nil, kernels.Badf(i, fmt.Sprintf("%d elements", n), "%v", t)
	}
	v := kernels.Scratch[F](c, n)
	load(v, t.Data)
	return v, nil
}

// load reads n scales, argument 1, and zero points, argument 2, which may be None.
func load[F float](c *kernels.Ctx, a kernels.Args, n, run int, inverse bool) (p params[F], err error) {
	if err := kernels.WantDType(1, a.Tensor(1), tensor.Float32, tensor.Float64); err != nil {
		return p, err
	}
	if p.scale, err = vector[F](c, a, 1, n); err != nil {
		return p, err
	}
	for i, s := range p.scale {
		if inverse {
			p.scale[i] = 1 / s
		}
	}
	p.run = max(run, 1)
	if !a.IsNone(2) {
		p.zero, err = vector[F](c, a, 2, n)
		for i, z := range p.zero {
			if !(z >= math.MinInt32 && z <= math.MaxInt32) {
				return p, kernels.Badf(2, "zero points of int32", "%v at %d", z, i)
			}
		}
		return p, err
	}
	p.zero = kernels.Scratch[F](c, n)
	clear(p.zero)
	return p, nil
}

// wantZero returns an error for a zero point, argument i, that is not an int32 number, which is its type in PyTorch.
func wantZero(i int, zero int64) error {
	if zero != int64(int32(zero)) {
		return kernels.Badf(i, "a zero point of int32", "%d", zero)
	}
	return nil
}

// one returns the parameters of a whole tensor.
func one[F float](c *kernels.Ctx, scale float64, zero int64, n int) params[F] {
	v := kernels.Scratch[F](c, 2)
	v[0], v[1] = F(scale), F(zero)
	return params[F]{scale: v[:1], zero: v[1:], run: max(n, 1)}
}

// A reader reads the parameters of argument 0 from the arguments after it: scales, or their reciprocals if inverse is
// set, and zero points.
type reader[F float] func(c *kernels.Ctx, a kernels.Args, inverse bool) (params[F], error)

// ofTensor reads the parameters of a whole tensor from tensors of one element.
func ofTensor[F float](c *kernels.Ctx, a kernels.Args, inverse bool) (p params[F], err error) {
	for i := 1; i <= 2; i++ {
		t := a.Tensor(i)
		if t.Numel() != 1 {
			return p, kernels.Badf(i, "one element", "%v", t)
		}
		if tensor.Loader[F](t.DType) == nil {
			return p, kernels.Bad(i, t.DType.String(), "a number")
		}
	}
	scale, _ := tensor.Get[float64](a.Tensor(1).Data, a.Tensor(1).DType)
	zero, _ := tensor.Get[int64](a.Tensor(2).Data, a.Tensor(2).DType)
	if err := wantZero(2, zero); err != nil {
		return p, err
	}
	if inverse {
		scale = 1 / scale
	}
	return one[F](c, scale, zero, a.Tensor(0).Numel()), nil
}

// ofChannels reads the parameters of each index along an axis, argument 3.
func ofChannels[F float](c *kernels.Ctx, a kernels.Args, inverse bool) (p params[F], err error) {
	t := a.Tensor(0)
	d, err := kernels.WrapDim(3, a.Int(3), t.Rank())
	if err != nil {
		return p, err
	}
	if t.Rank() == 0 {
		return load[F](c, a, 1, 1, inverse)
	}
	return load[F](c, a, t.Sizes[d], t.Strides[d], inverse)
}

// ofTokens reads the parameters of each row of the last dimension.
func ofTokens[F float](c *kernels.Ctx, a kernels.Args, inverse bool) (p params[F], err error) {
	if err := wantContiguous(a, 0); err != nil {
		return p, err
	}
	rows, n := rowsOf(a.Tensor(0))
	return load[F](c, a, rows, n, inverse)
}

// rowsOf returns the number of rows, and the size of the last dimension.
func rowsOf(t *tensor.Tensor) (rows, n int) {
	if t.Rank() == 0 {
		return 1, 1
	}
	last := t.Rank() - 1
	rows, _ = tensor.Product(t.Sizes[:last])
	return rows, t.Sizes[last]
}
