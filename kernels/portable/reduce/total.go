package reduce

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// state is the state of an instruction.
type state[C cell] struct {
	plan  plan
	stage stage[C]
}

// total is a reduction to one number: a fold for each compute type.
type total struct {
	f32     *fold[float32]
	f64     *fold[float64]
	i64     *fold[int64]
	mean    bool // divide by the number of elements, for a floating or complex out
	real    bool // of real types only
	extreme bool // of ordered types, and of at least one element
}

var (
	sums     = total{f32: &sum32, f64: &sum64, i64: &sumInt}
	means    = total{f32: &sum32, f64: &sum64, mean: true}
	products = total{f32: &prod32, f64: &prod64, i64: &prodInt, real: true}
	maxima   = total{f32: &max32, f64: &max64, i64: &maxInt, extreme: true}
	minima   = total{f32: &min32, f64: &min64, i64: &minInt, extreme: true}
)

// call is one call of a total: argument 0 into out argument o without the dimensions in the set.
type call struct {
	*total
	a kernels.Args
	o int
	dims
}

// reduce runs (Tensor self, …, out) with the arguments that readDims reads, then an optional dtype.
func (t *total) reduce(c *kernels.Ctx, a kernels.Args) error {
	k := call{total: t, a: a, o: len(a) - 2}
	d, err := readDims(a, k.o)
	if err != nil {
		return err
	}
	k.dims = d
	if err := k.check(); err != nil {
		return err
	}
	return k.run(c)
}

// check checks the types.
func (k *call) check() error {
	self, out := k.a.Tensor(0), k.a.Tensor(k.o)
	if d := k.o - 1; d == 1 || d == 3 { // a dtype is before the out
		if want := k.a.OptInt(d, int64(out.DType)); want != int64(out.DType) {
			return kernels.Badf(d, "the out's type, "+out.DType.String(), "%v", tensor.DType(want))
		}
	}
	switch {
	case k.mean && !out.DType.IsFloat() && !out.DType.IsComplex():
		return kernels.Bad(k.o, out.DType.String(), "a floating type")
	case k.real && self.DType.IsComplex():
		return kernels.Bad(0, self.DType.String(), "a real type")
	case !k.extreme:
		return nil
	case k.o == 3:
		if err := kernels.WantDType(k.o, out, self.DType); err != nil {
			return err
		}
	case !tensor.CanCast(self.DType, out.DType):
		return kernels.Bad(k.o, out.DType.String(), "a type that "+self.DType.String()+" casts to")
	}
	return checkExtreme(k.a, k.set)
}

// checkExtreme returns an error for argument 0 if it has no extreme along the dimensions in the set.
func checkExtreme(a kernels.Args, set uint32) error {
	self := a.Tensor(0)
	if _, ok := tensor.ComputeType(self.DType); !ok || self.DType == tensor.Uint64 {
		return kernels.Bad(0, self.DType.String(), "a real type that operators compare")
	}
	for d, n := range self.Sizes {
		if n == 0 && set>>d&1 != 0 {
			return kernels.Bad(0, self.String(), "elements along the reduced dimensions")
		}
	}
	return nil
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
	if err := k.resize(k.a, k.o); err != nil {
		return err
	}
	if k.fitsFloat(from) {
		compute = tensor.Float32
	}
	switch compute { // not operand.ByCompute: k would escape to the heap
	case tensor.Float32:
		reduce(c, k, k.f32, from, to)
	case tensor.Float64:
		reduce(c, k, k.f64, from, to)
	default:
		reduce(c, k, k.i64, from, to)
	}
	return nil
}

// fitsFloat reports whether float32 represents the results of integers of type d exactly: extremes of two bytes, and
// sums of one byte that stay below 2^24.
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

// reduce folds elements of the real type from to results of the real type to.
func reduce[C tensor.Compute](c *kernels.Ctx, k *call, f *fold[C], from, to tensor.DType) {
	s := kernels.Keep[state[C]](c)
	self, out := k.a.Tensor(0), k.a.Tensor(k.o)
	data, l := s.plan.set(c, self, k.set), s.plan.layout
	if self.DType.IsComplex() {
		l.inner *= 2
	}
	var src source[C]
	if f.shortRows(l) {
		src = newSource(c, data, from.Size(), loader[C](from))
		src.half = from == tensor.Float16
	} else {
		src = sourceOf[C](c, data, from, l)
	}
	results := s.stage.results(c, f, l, src)
	if k.mean {
		divide(results, C(l.n))
	}
	s.plan.write(c, out, self, k.set, operand.Bytes(c, to, results))
}

func divide[C tensor.Compute](x []C, by C) {
	if x, ok := any(x).([]float32); ok {
		n := [1]float32{float32(by)}
		simd.DivRows(x, x, n[:], len(x))
		return
	}
	for i := range x {
		x[i] /= by
	}
}

// loader returns the conversion from d, nil if its elements are stored as C.
func loader[C tensor.Compute](d tensor.DType) func(dst []C, src []byte) {
	if d == tensor.TypeOf[C]() {
		return nil
	}
	return tensor.Loader[C](d)
}
