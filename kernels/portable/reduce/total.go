package reduce

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// state is what an instruction of this package keeps.
type state[C cell] struct {
	plan  plan
	stage stage[C]
}

// total is a reduction to one number: a fold for each compute type.
type total struct {
	f32  *fold[float32]
	f64  *fold[float64]
	i64  *fold[int64]
	mean bool // divide by the number of elements
}

var (
	sums     = total{&sum32, &sum64, &sumInt, false}
	means    = total{&sum32, &sum64, nil, true}
	products = total{&prod32, &prod64, &prodInt, false}
	maxima   = total{&max32, &max64, &maxInt, false}
	minima   = total{&min32, &min64, &minInt, false}
)

// call is one call of a total: argument 0 into out argument o without the
// dimensions in the set.
type call struct {
	total
	a       kernels.Args
	o       int
	dims    uint32
	keepdim bool
}

// run computes in the compute type of the out. A complex tensor is a real one whose
// elements come in pairs.
func (k *call) run(c *kernels.Ctx) error {
	self, out := k.a.Tensor(0), k.a.Tensor(k.o)
	from, to := self.DType.Component(), out.DType.Component()
	compute, ok := tensor.ComputeType(to)
	if _, known := tensor.ComputeType(from); !ok || !known {
		return kernels.Bad(0, self.DType.String()+" into "+out.DType.String(), "types that operators compute on")
	}
	if self.DType.IsComplex() != out.DType.IsComplex() {
		return kernels.Bad(k.o, out.DType.String(), self.DType.String())
	}
	if err := resize(k.a, k.o, k.dims, k.keepdim); err != nil {
		return err
	}
	if k.fitsFloat(from) {
		compute = tensor.Float32
	}
	switch compute {
	case tensor.Float32:
		reduce(c, k, k.f32, from, to)
	case tensor.Float64:
		reduce(c, k, k.f64, from, to)
	default:
		reduce(c, k, k.i64, from, to)
	}
	return nil
}

// fitsFloat reports integers of type d whose results a float32 holds exactly: extremes
// of two bytes, and sums of one byte that stay below 2^24.
func (k *call) fitsFloat(d tensor.DType) bool {
	if d.IsFloat() || d.Size() > 2 || k.mean {
		return false
	}
	switch k.f32 {
	case &max32, &min32:
		return true
	case &sum32:
		return d.Size() == 1 && k.a.Tensor(0).Numel() <= k.a.Tensor(k.o).Numel()<<16
	}
	return false
}

// reduce folds elements of type from to results of type to; both are real.
func reduce[C tensor.Compute](c *kernels.Ctx, k *call, f *fold[C], from, to tensor.DType) {
	s := kernels.Keep[state[C]](c)
	self, out := k.a.Tensor(0), k.a.Tensor(k.o)
	data, l := s.plan.set(c, self, k.dims), s.plan.layout
	if self.DType.IsComplex() {
		l.inner *= 2
	}
	results := s.stage.results(c, f, l, sourceOf[C](c, data, from, l))
	if k.mean {
		for i := range results {
			results[i] /= C(l.n)
		}
	}
	s.plan.write(c, out, self, k.dims, operand.Bytes(c, to, results))
}

// loader is the conversion from d, nil where C stores it.
func loader[C tensor.Compute](d tensor.DType) func(dst []C, src []byte) {
	if d == tensor.TypeOf[C]() {
		return nil
	}
	return tensor.Loader[C](d)
}

// sumDims is aten::sum.dim_IntList: over the listed dimensions, or all.
func sumDims(c *kernels.Ctx, a kernels.Args) error { return overDims(c, a, sums, 3, 4) }

// meanDims is aten::mean.dim.
func meanDims(c *kernels.Ctx, a kernels.Args) error {
	if err := wantFloat(a, 4); err != nil {
		return err
	}
	return overDims(c, a, means, 3, 4)
}

// meanAll is aten::mean.
func meanAll(c *kernels.Ctx, a kernels.Args) error {
	if err := wantFloat(a, 2); err != nil {
		return err
	}
	return overAll(c, a, means, 1, 2)
}

// prodAll is aten::prod.
func prodAll(c *kernels.Ctx, a kernels.Args) error {
	if err := wantReal(a); err != nil {
		return err
	}
	return overAll(c, a, products, 1, 2)
}

// prodDim is aten::prod.dim_int.
func prodDim(c *kernels.Ctx, a kernels.Args) error {
	if err := wantReal(a); err != nil {
		return err
	}
	dims, err := oneDim(a, 1, a.Tensor(0))
	if err != nil {
		return err
	}
	if err := sameDType(a, 3, 4); err != nil {
		return err
	}
	return (&call{products, a, 4, dims, a.Bool(2)}).run(c)
}

// overDims reduces the dimensions that argument 1 lists; keepdim is argument 2,
// dtype argument d and the out argument o.
func overDims(c *kernels.Ctx, a kernels.Args, t total, d, o int) error {
	dims, err := dimSet(a, 1, a.Tensor(0))
	if err != nil {
		return err
	}
	if err := sameDType(a, d, o); err != nil {
		return err
	}
	return (&call{t, a, o, dims, a.Bool(2)}).run(c)
}

// overAll reduces every dimension.
func overAll(c *kernels.Ctx, a kernels.Args, t total, d, o int) error {
	if err := sameDType(a, d, o); err != nil {
		return err
	}
	return (&call{t, a, o, all(a.Tensor(0)), false}).run(c)
}

func wantFloat(a kernels.Args, o int) error {
	if d := a.Tensor(o).DType; !d.IsFloat() && !d.IsComplex() {
		return kernels.Bad(o, d.String(), "a floating type")
	}
	return nil
}

func wantReal(a kernels.Args) error {
	if d := a.Tensor(0).DType; d.IsComplex() {
		return kernels.Bad(0, d.String(), "a real type")
	}
	return nil
}

// wantOrdered reports argument 0 unless its elements can be compared.
func wantOrdered(a kernels.Args) error {
	d := a.Tensor(0).DType
	if _, ok := tensor.ComputeType(d); !ok || d == tensor.Uint64 {
		return kernels.Bad(0, d.String(), "a real type that operators compare")
	}
	return nil
}

// extreme is aten::amax or aten::amin.
func extreme(t total) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		dims, err := dimSet(a, 1, a.Tensor(0))
		if err != nil {
			return err
		}
		if err := chooses(a, dims); err != nil {
			return err
		}
		if err := kernels.WantDType(3, a.Tensor(3), a.Tensor(0).DType); err != nil {
			return err
		}
		return (&call{t, a, 3, dims, a.Bool(2)}).run(c)
	}
}

// extremeAll is aten::max or aten::min of all elements, cast to the out's type.
func extremeAll(t total) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		self, out := a.Tensor(0), a.Tensor(1)
		if err := chooses(a, all(self)); err != nil {
			return err
		}
		if !tensor.CanCast(self.DType, out.DType) {
			return kernels.Bad(1, out.DType.String(), "a type that "+self.DType.String()+" casts to")
		}
		return (&call{t, a, 1, all(self), false}).run(c)
	}
}

// chooses reports an argument 0 that has no extreme along the dimensions in the set.
func chooses(a kernels.Args, dims uint32) error {
	if err := wantOrdered(a); err != nil {
		return err
	}
	return nonempty(a, dims)
}
